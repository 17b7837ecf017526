//! Any bytes as a file of OTLP through the mapper, the writer and back through the reader: every drawn span is read again, with
//! enough memory and with too little. Also any bytes as a Perfetto trace.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pulsetrain_trace_inputs::{ConvertError, PerfettoConversion, PerfettoTrace, convert_perfetto};
use pulsetrain_to_perfetto::{AttributePolicy, PerfettoConfig, PerfettoMapper};
use pulsetrain_otlp::Signal;
use pulsetrain_otlp::{
    frames::FrameReader,
    limits::{Limits, check},
};
use pulsetrain_pipeline::spill::MemoryBudget;

/// Converts a trace to OTLP with a memory budget in bytes.
fn back(trace: &[u8], name: &str, memory: usize) -> (PerfettoConversion, Vec<(Signal, Vec<u8>)>) {
    let mut messages = Vec::new();
    let room = MemoryBudget {
        bytes: memory,
        folder: None,
    };
    let mut deliver = |signal, bytes| {
        messages.push((signal, bytes));
        Ok::<(), ConvertError>(())
    };
    let conversion = convert_perfetto(PerfettoTrace::new(trace), name, None, &room, &mut deliver).unwrap();
    (conversion, messages)
}

fuzz_target!(|file: &[u8]| {
    // The first byte selects the options: attributes, memory, merging.
    let Some((&way, file)) = file.split_first() else {
        return;
    };
    let memory = if way & 2 == 0 { 1 << 20 } else { 1 };
    drop(back(file, "trace_v2_7.pftrace", memory));
    let limits = Limits {
        bytes: 1 << 16,
        inflated_bytes: 1 << 16,
        ..Limits::default()
    };
    let mut mapper = PerfettoMapper::new(PerfettoConfig {
        attributes: if way & 1 == 0 {
            AttributePolicy::Full
        } else {
            AttributePolicy::Lean
        },
        memory_bytes: memory,
        merge_below: (way & 4 != 0).then_some(1_000),
        ..PerfettoConfig::default()
    });
    for frame in FrameReader::new(file, limits).filter_map(Result::ok) {
        mapper.add(frame.signal, frame.bytes).unwrap();
    }
    let (trace, summary) = mapper.write(Vec::new()).unwrap();
    let (back, messages) = back(trace.as_slice(), "back.pftrace", memory);
    assert!(back.errors.is_empty(), "{:?}", back.errors);
    assert_eq!((back.stray_ends, back.packets.without_state), (0, 0));
    if way & 1 == 0 {
        assert_eq!(back.spans, summary.spans + summary.merged_slices);
        assert_eq!(back.logs, summary.logs);
        assert_eq!(back.points, summary.points + summary.without_value);
    }
    for (signal, message) in &messages {
        check(
            *signal,
            message,
            &Limits {
                attributes: 1 << 20,
                ..Limits::default()
            },
        )
        .unwrap();
    }
});
