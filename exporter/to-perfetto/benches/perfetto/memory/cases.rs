//! Inputs of 4 GB (`MEMORY_BENCH_BYTES` sets another size) of every kind that a conversion meets, generated while they are
//! read: only a few messages are in memory.

use std::ops::Range;

use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span, TracesData};
use prost::Message;

use crate::input;

/// The minimum size of each input, in bytes of protobuf or text, unless the variable sets another number.
const BYTES: usize = 4_000_000_000;
const BYTES_VARIABLE: &str = "MEMORY_BENCH_BYTES";
/// The number of steps that are generated at once.
const STEPS: u64 = 256;
/// The multiplier that shuffles steps: an odd number, so that every step occurs once.
const MIXED: u64 = 0x9e37_79b1;
/// The number of steps that are shuffled; an input has fewer.
const MIXED_STEPS: u64 = 1 << 20;

/// The encoding of an input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Binary,
    Lines,
    /// One JSON document.
    Document,
    Gzip,
    Zstd,
}

/// A kind of input: its name, its encoding, and its messages.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    steps: fn(u64) -> Range<u64>,
    change: Option<fn(&mut Span)>,
    /// Whether it is written with all fields and then converted back.
    pub(crate) and_back: bool,
}

/// The kinds of input.
pub(crate) const CASES: [Case; 9] = [
    case("steps", Form::Binary, in_order, None),
    case("steps as JSON lines", Form::Lines, in_order, None),
    case("steps as one JSON object", Form::Document, in_order, None),
    case("steps in gzip", Form::Gzip, in_order, None),
    case("steps in zstd", Form::Zstd, in_order, None),
    case(
        "small traces",
        Form::Binary,
        in_order,
        Some(alone_with_its_children),
    ),
    case("steps in no order", Form::Binary, in_no_order, None),
    and_back(case("steps there and back", Form::Binary, in_order, None)),
    and_back(case(
        "one trace there and back",
        Form::Binary,
        in_order,
        Some(in_one_trace),
    )),
];

const fn case(
    name: &'static str,
    form: Form,
    steps: fn(u64) -> Range<u64>,
    change: Option<fn(&mut Span)>,
) -> Case {
    Case {
        name,
        form,
        steps,
        change,
        and_back: false,
    }
}

const fn and_back(case: Case) -> Case {
    Case {
        and_back: true,
        ..case
    }
}

/// Returns the minimum size of each input in bytes.
pub(crate) fn bytes_wanted() -> usize {
    let given = std::env::var(BYTES_VARIABLE).ok();
    given.map_or(BYTES, |given| given.parse().unwrap())
}

impl Case {
    /// Iterates over the messages, without an end.
    pub(crate) fn messages(self) -> impl Iterator<Item = Vec<u8>> {
        (0..).flat_map(move |chunk| {
            let messages = input::messages((self.steps)(chunk));
            messages.into_iter().map(move |message| match self.change {
                Some(change) => changed(&message, change),
                None => message,
            })
        })
    }
}

fn in_order(chunk: u64) -> Range<u64> {
    chunk * STEPS..(chunk + 1) * STEPS
}

/// Returns one step at a time, far from the previous one.
fn in_no_order(chunk: u64) -> Range<u64> {
    let step = chunk.wrapping_mul(MIXED) % MIXED_STEPS;
    step..step + 1
}

fn changed(message: &[u8], change: fn(&mut Span)) -> Vec<u8> {
    let mut message = TracesData::decode(message).unwrap();
    let scopes = message
        .resource_spans
        .iter_mut()
        .flat_map(|resource: &mut ResourceSpans| &mut resource.scope_spans);
    scopes.flat_map(|scope| &mut scope.spans).for_each(change);
    message.encode_to_vec()
}

/// Sets the trace id; the ids of the span and of its parent are unchanged.
fn in_one_trace(span: &mut Span) {
    span.trace_id = vec![7; 16];
}

/// Makes a trace of each micro-batch with its phases, and of each step.
fn alone_with_its_children(span: &mut Span) {
    let of = match span.name.as_str() {
        "train.step" => &span.span_id,
        "train.micro_batch" => {
            span.parent_span_id.clear();
            &span.span_id
        }
        _ => &span.parent_span_id,
    };
    span.trace_id = of.repeat(2);
}
