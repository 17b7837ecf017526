//! Any bytes as a Perfetto trace of Tunix, of both versions: every span is OTLP, and the result does not depend on how the
//! trace is split into pieces. The traces in `tests/corpus/tunix/*/trace` are seeds too.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use pulsetrain_otlp::{
    Signal,
    limits::{Limits, check},
    view::{Message, TracesData},
};
use pulsetrain_record::{Recorder, Run};
use pulsetrain_formats::{LogFormat, LogReader, ReadLimits, format_by_name};

fuzz_target!(|bytes: &[u8]| {
    for name in ["tunix-trace", "tunix-trace-v2"] {
        let format = format_by_name(name).unwrap();
        (format.detect)(bytes);
        (format.identify)(bytes);
        let whole = read(format, bytes, bytes.len().max(1));
        assert_eq!(whole, read(format, bytes, 61), "{name} in pieces");
    }
});

/// Returns the ids of the spans of a trace that is read in pieces of this size, in order, each with its start and its end.
fn read(format: &LogFormat, bytes: &[u8], size: usize) -> Vec<(Vec<u8>, Vec<u8>, u64, u64)> {
    let spans = RefCell::new(Vec::new());
    let mut recorder = Recorder::new(Run::default(), |batch| {
        check(batch.signal, &batch.bytes, &Limits::default()).unwrap();
        if batch.signal != Signal::Traces {
            return;
        }
        let data = TracesData::decode(&batch.bytes).unwrap();
        for resource in data.resource_spans {
            for span in resource
                .unwrap()
                .scope_spans
                .iter()
                .flat_map(|scope| scope.unwrap().spans)
            {
                let span = span.unwrap();
                let ids = (span.trace_id.to_vec(), span.span_id.to_vec());
                let (start, end) = (span.start_time_unix_nano, span.end_time_unix_nano);
                spans.borrow_mut().push((ids.0, ids.1, start, end));
            }
        }
    });
    let mut reader = LogReader::new(format, ReadLimits::default());
    bytes
        .chunks(size)
        .for_each(|piece| reader.push(piece, &mut recorder));
    reader.finish(&mut recorder);
    recorder.finish();
    spans.into_inner()
}
