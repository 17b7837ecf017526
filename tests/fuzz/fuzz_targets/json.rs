//! Any text as OTLP/JSON: a decoded message passes the check, and encoding and decoding it again gives the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pulsetrain_otlp::{
    json,
    limits::{Limits, check},
};

fuzz_target!(|text: &[u8]| {
    let (mut bytes, mut line, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let decoded = match json::decode(text, &Limits::default(), &mut bytes) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert!(error.offset <= text.len(), "{error}");
            assert!(bytes.is_empty());
            return;
        }
    };
    let Some(signal) = decoded.signal else {
        assert!(bytes.is_empty());
        return;
    };
    assert_eq!(check(signal, &bytes, &Limits::default()).unwrap(), decoded.counts);
    json::encode(signal, &bytes, &mut line).unwrap();
    assert!(!line.contains(&b'\n') && std::str::from_utf8(&line).is_ok());
    if !bytes.is_empty() {
        let second = json::decode(&line, &Limits::default(), &mut again).unwrap();
        assert_eq!((second.signal, second.unknown_fields), (Some(signal), 0));
    }
    assert_eq!(again, bytes);
});
