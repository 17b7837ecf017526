//! Parses bytes as an input of a format, at once and in pieces.

use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Counts, Recorder, Run};
use pulsetrain_formats::{LogFormat, LogReader, ReadLimits, ReadTime};

/// A time close to that of the inputs: 2026-11-21 00:00:00 UTC.
const TIME: ReadTime = ReadTime {
    unix_nanos: UnixNanos(1_795_219_200_000_000_000),
    is_live: false,
};

/// Asserts that no bytes cause a panic, and that the result does not depend on how they are split into pieces.
pub(crate) fn read_alike(format: &LogFormat, bytes: &[u8]) {
    let _ = (format.detect)(bytes);
    let _ = (format.identify)(bytes);
    let whole = read(format, [bytes].into_iter());
    let middle = bytes.len() / 2;
    let halves = read(format, [&bytes[..middle], &bytes[middle..]].into_iter());
    assert_eq!(whole, halves, "{} in two halves", format.name);
    let pieces = read(format, bytes.chunks(509));
    assert_eq!(whole, pieces, "{} in pieces", format.name);
}

fn read<'b>(format: &LogFormat, pieces: impl Iterator<Item = &'b [u8]>) -> Counts {
    let mut recorder = Recorder::new(Run::default(), |_| {});
    let mut reader = LogReader::new(format, ReadLimits::default());
    reader.set_time(TIME);
    pieces.for_each(|piece| reader.push(piece, &mut recorder));
    reader.finish(&mut recorder);
    recorder.finish().0
}
