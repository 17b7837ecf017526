//! Any bytes as a log of every format: a new format is included through the table of formats.

#![no_main]

mod reading;

use libfuzzer_sys::fuzz_target;
use pulsetrain_formats::FORMATS;

fuzz_target!(|bytes: &[u8]| {
    for format in FORMATS {
        reading::read_alike(format, bytes);
    }
});
