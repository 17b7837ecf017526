//! Records the spans of NeMo Lens. They keep their ids, so that they match the OTLP telemetry of the same process.

use pulsetrain_otlp::{
    UnixNanos,
    write::{AttributeValue as Out, SpanParts},
};
use pulsetrain_record::{LoggedTime, Recorder};
use pulsetrain_semconv::{self as semconv, attribute, metric, span};
use serde_json::Value;

use crate::logs::{spans::listed, time};

/// The spans of Megatron-LM and ours. A span without a row is a `perf.stage`.
pub(super) static SPANS: &[(&str, &semconv::Span)] = &[
    ("megatron.pretrain", &span::TRAIN_RUN),
    ("megatron.startup.model_init", &span::RUN_INIT),
    ("megatron.train.iteration", &span::TRAIN_STEP),
    ("megatron.microbatch.forward", &span::PERF_FORWARD),
    ("megatron.microbatch.backward", &span::PERF_BACKWARD),
    ("megatron.checkpoint.save", &span::TRAIN_CHECKPOINT_SAVE),
    ("megatron.checkpoint.load", &span::TRAIN_CHECKPOINT_LOAD),
    ("megatron.evaluate", &span::EVAL_RUN),
];

/// The attributes with the step: of Megatron-LM, and of NeMo Lens' conventions.
const STEPS: [&str; 2] = ["megatron.iteration", "dl.iteration"];

/// Records the object if it is a complete span, and returns whether it is one. The end of a step is its step too.
pub(super) fn record(object: &Value, recorder: &mut Recorder<'_>) -> bool {
    let Some(name) = object["name"].as_str() else {
        return false;
    };
    let Some((trace_id, span_id)) = id(&object["context"]["trace_id"]).zip(id(&object["context"]["span_id"]))
    else {
        return false;
    };
    let Some((start, end)) = instant(&object["start_time"]).zip(instant(&object["end_time"])) else {
        return false;
    };
    let known = SPANS.iter().find(|(theirs, _)| *theirs == name);
    let span = known.map_or(&span::PERF_STAGE, |(_, ours)| *ours);
    let step = STEPS.iter().find_map(|key| object["attributes"][*key].as_i64());
    if let Some(step) = step.filter(|_| *span == span::TRAIN_STEP) {
        recorder.record(&metric::TRAIN_GLOBAL_STEP, end, step as f64, &[]);
        let seconds = end.nanos_since(start) as f64 / 1e9;
        recorder.record(&metric::TRAIN_STEP_DURATION, end, seconds, &[]);
    }
    let attributes = [
        step.map(|step| (&attribute::TRAIN_STEP, Out::Int(step))),
        Some((&attribute::PERF_STAGE, Out::Text(name))),
    ];
    recorder.record_span(&SpanParts {
        span,
        trace_id,
        span_id,
        parent_span_id: id(&object["parent_id"]),
        start_unix_nanos: start,
        end_unix_nanos: end,
        attributes: &listed(attributes.into_iter().flatten(), span),
    });
    true
}

/// Parses an id such as `0x496799ba6cefbe10`.
fn id<const BYTES: usize>(value: &Value) -> Option<[u8; BYTES]> {
    let digits = value.as_str()?.strip_prefix("0x")?;
    let number = u128::from_str_radix(digits, 16)
        .ok()
        .filter(|number| *number != 0)?;
    number.to_be_bytes()[16 - BYTES..].try_into().ok()
}

/// Parses a time such as `2026-11-25T14:19:24.924999Z`.
fn instant(value: &Value) -> Option<UnixNanos> {
    match time::logged(value.as_str()?)? {
        LoggedTime::Utc(time) => Some(time),
        LoggedTime::Local(_) => None,
    }
}
