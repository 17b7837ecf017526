//! Any text as what a trace store answered: each message that comes of it is OTLP within its limits.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pulsetrain_otlp::limits::{Limits, check};
use pulsetrain_backends::{begins_answer, convert_answer};

fuzz_target!(|text: &[u8]| {
    begins_answer(text);
    for (signal, bytes) in convert_answer(text, &Limits::default()).messages {
        check(signal, &bytes, &Limits::default()).unwrap();
    }
});
