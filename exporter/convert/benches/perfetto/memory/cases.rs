//! Inputs of 4 GB (`MEMORY_BENCH_BYTES` asks for less) of every kind that a conversion meets, made while they are read: no more
//! than a few messages are held.

use std::ops::Range;

use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span, TracesData};
use prost::Message;

use crate::input;

/// The bytes of protobuf, or of text, that each input has at least, unless the variable sets another number.
const BYTES: usize = 4_000_000_000;
const BYTES_VARIABLE: &str = "MEMORY_BENCH_BYTES";
/// The steps that are made at once.
const STEPS: u64 = 256;
/// What the place of a step is mixed by where steps come in no order: an odd number, so that every step comes once.
const MIXED: u64 = 0x9e37_79b1;
/// The steps among which the order is mixed; more than an input has.
const MIXED_STEPS: u64 = 1 << 20;

/// How an input is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Binary,
    Lines,
    /// One object of JSON.
    Document,
    Gzip,
    Zstd,
}

/// A kind of input: its name, how it is written, and its messages.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    steps: fn(u64) -> Range<u64>,
    change: Option<fn(&mut Span)>,
    /// Whether it is written with all that is needed to come back, and comes back.
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

/// How many bytes each input has at least.
pub(crate) fn bytes_wanted() -> usize {
    let given = std::env::var(BYTES_VARIABLE).ok();
    given.map_or(BYTES, |given| given.parse().unwrap())
}

impl Case {
    /// The messages, without an end.
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

/// One step at a time, far from the one before.
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

/// The ids of a span and of its parent stay as they are.
fn in_one_trace(span: &mut Span) {
    span.trace_id = vec![7; 16];
}

/// A micro-batch and its phases are a trace, and a step is one.
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
