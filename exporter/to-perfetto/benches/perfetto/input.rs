//! Steps of a training run with eight ranks, as messages of 512 spans of one rank each, the way an SDK sends them: every span
//! has five attributes, ends come in order, a step holds four micro-batches with three phases each. The values of attributes
//! repeat from span to span, as they do in a step, or each span of a rank has its own.

use std::ops::Range;

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData},
};
use prost::Message;
use pulsetrain_otlp::{Signal, frames};

const START: u64 = 1_792_000_000_000_000_000;
const RANKS: u64 = 8;
const SPANS_A_MESSAGE: usize = 512;
const MICRO_BATCHES: u64 = 4;
const PHASES: [&str; 3] = ["perf.forward", "perf.backward", "comm.all_reduce"];
/// The number of spans of a step: the step, its micro-batches, and their phases.
pub(crate) const SPANS_A_STEP: u64 = 1 + MICRO_BATCHES * (1 + PHASES.len() as u64);
/// The duration of one phase in nanoseconds.
const PHASE: u64 = 917_113;

/// The attributes of spans.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// Mostly the same from span to span.
    Repeating,
    /// Unique within a rank. The ranks have the same request ids.
    Unlike,
}

/// One input in both encodings.
pub(crate) struct Input {
    pub(crate) spans: u64,
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) lines: Vec<u8>,
}

impl Input {
    /// Creates steps of all ranks with at least this number of spans.
    pub(crate) fn new(spans: u64, values: Values) -> Self {
        let steps = spans.div_ceil(SPANS_A_STEP * RANKS);
        let messages = messages_with(0..steps, values);
        let mut lines = Vec::new();
        for message in &messages {
            frames::append_json_line(Signal::Traces, message, &mut lines).unwrap();
        }
        Self {
            spans: steps * SPANS_A_STEP * RANKS,
            messages,
            lines,
        }
    }

    /// Returns the size of the protobuf messages.
    pub(crate) fn bytes(&self) -> usize {
        self.messages.iter().map(Vec::len).sum()
    }
}

/// Returns some steps of all ranks.
pub(crate) fn messages(steps: Range<u64>) -> Vec<Vec<u8>> {
    messages_with(steps, Values::Repeating)
}

fn messages_with(steps: Range<u64>, values: Values) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    for rank in 0..RANKS {
        let mut all: Vec<Span> = steps.clone().flat_map(|step| self::step(rank, step)).collect();
        if values == Values::Unlike {
            all.iter_mut().for_each(make_unlike);
        }
        messages.extend(
            all.chunks(SPANS_A_MESSAGE)
                .map(|spans| message(rank, spans).encode_to_vec()),
        );
    }
    messages
}

/// Returns the spans of one step, in the order of their ends.
fn step(rank: u64, step: u64) -> Vec<Span> {
    let begin = START + step * 20_000_003 + rank * 1_009;
    let mut spans = Vec::new();
    let mut time = begin;
    for micro_batch in 0..MICRO_BATCHES {
        let parent = 1 + micro_batch * 4;
        let from = time;
        for (phase, name) in (1..).zip(PHASES) {
            let place = (parent + phase, parent);
            spans.push(span(rank, step, place, name, (time, time + PHASE), micro_batch));
            time += PHASE;
        }
        spans.push(span(
            rank,
            step,
            (parent, 0),
            "train.micro_batch",
            (from, time),
            micro_batch,
        ));
    }
    spans.push(span(rank, step, (0, u64::MAX), "train.step", (begin, time), 0));
    spans
}

fn span(rank: u64, step: u64, place: (u64, u64), name: &str, time: (u64, u64), micro_batch: u64) -> Span {
    let id = |place: u64| {
        let mixed = (rank << 48 | step << 8 | place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.to_be_bytes().to_vec()
    };
    let trace = u128::from(step + 1) * 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    Span {
        trace_id: trace.to_be_bytes().to_vec(),
        span_id: id(place.0),
        parent_span_id: if place.1 == u64::MAX {
            Vec::new()
        } else {
            id(place.1)
        },
        name: name.to_owned(),
        kind: 1,
        start_time_unix_nano: time.0,
        end_time_unix_nano: time.1,
        attributes: vec![
            attribute("train.step", Value::IntValue(step as i64)),
            attribute("train.micro_batch", Value::IntValue(micro_batch as i64)),
            attribute("train.precision", Value::StringValue("bf16".to_owned())),
            attribute("perf.clock", Value::StringValue("cuda_event".to_owned())),
            attribute("train.loss", Value::DoubleValue(2.5 + 1.0 / (step + 1) as f64)),
        ],
        ..Span::default()
    }
}

/// Sets attribute values that are unique within the rank, of the same types.
fn make_unlike(span: &mut Span) {
    let id: [u8; 8] = span.span_id.as_slice().try_into().unwrap();
    let own = u64::from_le_bytes(id);
    span.attributes = vec![
        attribute("request.number", Value::IntValue((own >> 44) as i64)),
        attribute("request.bytes", Value::IntValue((own >> 40) as i64)),
        attribute("request.id", Value::StringValue(format!("{:08x}", own >> 32))),
        attribute("request.target", Value::StringValue(format!("/item/{own:x}"))),
        attribute("request.score", Value::DoubleValue(own as f64 / 1e7)),
    ];
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn message(rank: u64, spans: &[Span]) -> TracesData {
    TracesData {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: vec![
                    attribute("service.name", Value::StringValue("trainer".to_owned())),
                    attribute("train.rank", Value::IntValue(rank as i64)),
                ],
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: "trainer".to_owned(),
                    ..InstrumentationScope::default()
                }),
                spans: spans.to_vec(),
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
}
