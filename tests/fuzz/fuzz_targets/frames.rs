//! Any bytes as a file: every frame that is read is a message, and can be read again from both file formats.

#![no_main]

mod canonical;

use canonical::through_prost;
use libfuzzer_sys::fuzz_target;
use pulsetrain_otlp::{
    frames::{Frame, FrameReader, append_binary, append_json_line, signal_of},
    limits::{Limits, check},
};

fuzz_target!(|file: &[u8]| {
    let limits = Limits {
        bytes: 1 << 16,
        inflated_bytes: 1 << 16,
        ..Limits::default()
    };
    let frames: Vec<Frame> = FrameReader::new(file, limits.clone())
        .filter_map(Result::ok)
        .collect();
    let small = Limits {
        bytes: 64,
        ..limits.clone()
    };
    // Every piece may have a fault, and consumes at least one byte.
    let pieces = FrameReader::new(file, small).in_pieces().take(file.len() + 2);
    assert!(pieces.count() < file.len() + 2);
    for frame in frames {
        assert_eq!(
            check(frame.signal, &frame.bytes, &Limits::default()).unwrap(),
            frame.counts
        );
        let (mut line, mut binary) = (Vec::new(), Vec::new());
        append_json_line(frame.signal, &frame.bytes, &mut line).unwrap();
        let from_line: Vec<Frame> = FrameReader::new(line.as_slice(), Limits::default())
            .map(Result::unwrap)
            .collect();
        let canonical = through_prost(frame.signal, &frame.bytes);
        let canonical = canonical.map(|bytes| check(frame.signal, &bytes, &Limits::default()).unwrap());
        for other in from_line {
            assert_eq!(other.signal, frame.signal);
            // If a non-repeated field occurs more than once, JSON keeps the last one, as prost does.
            if canonical == Some(frame.counts) {
                assert_eq!(other.counts, frame.counts);
            }
            assert!(
                other.counts.items <= frame.counts.items && other.counts.messages <= frame.counts.messages
            );
            let mut again = Vec::new();
            append_json_line(other.signal, &other.bytes, &mut again).unwrap();
            assert_eq!(again, line);
        }
        append_binary(&frame.bytes, &mut binary).unwrap();
        if signal_of(&frame.bytes) == Some(frame.signal) {
            let from_binary: Vec<Frame> = FrameReader::new(binary.as_slice(), limits.clone())
                .map(Result::unwrap)
                .collect();
            assert_eq!(from_binary.len(), 1);
            assert_eq!(from_binary[0].bytes, frame.bytes);
        }
    }
});
