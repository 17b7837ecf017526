//! Reads an input like an import.

use std::hint::black_box;

use pulsetrain_formats::{LogReader, ReadLimits, ReadTime, format_by_name};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Counts, Recorder, Run};

/// The chunk size of an import.
const CHUNK: usize = 1 << 20;
/// 2026-11-21 00:00:00 UTC: the start of the run, and the time of lines without a year or a time.
const START: UnixNanos = UnixNanos(1_795_219_200_000_000_000);

/// Reads a complete input. Returns the number of its items.
pub(crate) fn read(format: &str, input: &[u8]) -> Counts {
    let run = Run {
        start_unix_nanos: START,
        ..Run::default()
    };
    let mut recorder = Recorder::new(run, |batch| {
        black_box(batch.bytes.len());
    });
    let format = format_by_name(format).unwrap();
    let mut reader = LogReader::new(format, ReadLimits::default());
    reader.set_time(ReadTime {
        unix_nanos: START,
        is_live: false,
    });
    input
        .chunks(CHUNK)
        .for_each(|chunk| reader.push(chunk, &mut recorder));
    reader.finish(&mut recorder);
    let (counts, skipped) = recorder.finish();
    assert!(!skipped.has_losses(), "{:?}", skipped.problems());
    counts
}
