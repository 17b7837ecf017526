//! Any text as the response of a trace store: each converted message is OTLP within its limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pulsetrain_otlp::limits::{Limits, check};
use pulsetrain_backends::{looks_like_response, convert_response};

fuzz_target!(|text: &[u8]| {
    looks_like_response(text);
    for (signal, bytes) in convert_response(text, &Limits::default()).messages {
        check(signal, &bytes, &Limits::default()).unwrap();
    }
});
