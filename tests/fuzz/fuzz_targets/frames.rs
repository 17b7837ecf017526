//! Any bytes as a file: every frame that is read is a message, and is read again from either form of file.

#![no_main]

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
    // A fault may be said of each piece, and each takes a byte at least.
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
        assert!(
            from_line
                .iter()
                .all(|other| other.signal == frame.signal && other.counts == frame.counts)
        );
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
