//! The types of the generated constants: metrics, attributes, spans and events.
//!
//! They are plain data with `'static` contents, so a constant such as `&metric::TRAIN_LOSS` needs no allocation.

/// The instrument of a metric, which defines how a value behaves over time (OpenTelemetry metrics API, "Instrument").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instrument {
    /// A sum that only grows, sent as a cumulative monotonic sum.
    Counter,
    /// A sum that may fall, sent as a cumulative non-monotonic sum.
    UpDownCounter,
    /// A value that keeps its last measurement.
    Gauge,
    /// A distribution, sent as a cumulative explicit-bucket histogram.
    Histogram,
}

impl Instrument {
    /// Returns the word of the registry's YAML: `updowncounter`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::UpDownCounter => "updowncounter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The type of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// 64-bit signed integers.
    Int,
    /// 64-bit floating point numbers; NaN and infinities are values.
    Double,
}

/// The stability of a name (OpenTelemetry "stability").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stability {
    /// May change in any release; a rename is listed in CHANGELOG.
    Development,
    /// Expected to be stable; changes only to fix a defect.
    ReleaseCandidate,
    /// Does not change.
    Stable,
}

/// The requirement level of an attribute (OpenTelemetry "requirement level").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// Always present.
    Required,
    /// Present whenever its condition (in the registry's text) holds.
    ConditionallyRequired,
    /// Present if it is known.
    Recommended,
    /// Present only if a user enables it.
    OptIn,
}

/// The type of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributeKind {
    /// Free text.
    String,
    /// One of these strings; other values are allowed but not expected.
    Enum(&'static [&'static str]),
    /// A 64-bit signed integer.
    Int,
    /// A 64-bit floating point number.
    Double,
    /// True or false.
    Boolean,
    /// A list of strings.
    Strings,
    /// A list of integers.
    Ints,
    /// A list of floating point numbers.
    Doubles,
    /// A list of booleans.
    Booleans,
    /// Any value, lists and maps included.
    Any,
}

/// An attribute of a resource, a point, a span or an event.
#[derive(Debug, PartialEq)]
pub struct Attribute {
    /// The key, as on the wire.
    pub name: &'static str,
    /// The description, in one sentence.
    pub brief: &'static str,
    /// The type of the value.
    pub kind: AttributeKind,
    /// Whether it describes a series without identifying it; a series has one value of it at a time.
    pub descriptive: bool,
    /// The stability of the name.
    pub stability: Stability,
}

/// A reference to an attribute, with its requirement level.
#[derive(Debug, PartialEq)]
pub struct AttributeUse {
    /// The attribute.
    pub attribute: &'static Attribute,
    /// The requirement level.
    pub requirement: Requirement,
}

/// The names of a source system for an entry.
#[derive(Debug, PartialEq)]
pub struct Upstream {
    /// The system: `surogate`, `maxtext`, `tunix` ...
    pub system: &'static str,
    /// The names as the output of the system spells them.
    pub names: &'static [&'static str],
}

/// A metric.
#[derive(Debug, PartialEq)]
pub struct Metric {
    /// The index in [`metric::ALL`](crate::metric::ALL), for tables indexed by metric.
    pub ordinal: u16,
    /// The name, as on the wire.
    pub name: &'static str,
    /// The description, in one sentence, as on the wire.
    pub brief: &'static str,
    /// The unit, in UCUM.
    pub unit: &'static str,
    /// The instrument.
    pub instrument: Instrument,
    /// The type of the values.
    pub number: Number,
    /// The bucket bounds of a histogram, in the metric's unit; empty for every other instrument.
    pub bounds: &'static [f64],
    /// The attributes of the points.
    pub attributes: &'static [AttributeUse],
    /// The family's name in Prometheus, suffixes included.
    pub prometheus_name: &'static str,
    /// The stability of the name.
    pub stability: Stability,
    /// The source systems that fill it, with their own names for it.
    pub upstream: &'static [Upstream],
}

/// The role of a span in a trace (OpenTelemetry "SpanKind").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// Work inside one program.
    Internal,
    /// The answering side of a call.
    Server,
    /// The calling side of a call.
    Client,
    /// The sending side of a queue.
    Producer,
    /// The receiving side of a queue.
    Consumer,
}

/// A span.
#[derive(Debug, PartialEq)]
pub struct Span {
    /// The name, of low cardinality.
    pub name: &'static str,
    /// The description, in one sentence.
    pub brief: &'static str,
    /// The role of the span.
    pub kind: SpanKind,
    /// The attributes that it may carry.
    pub attributes: &'static [AttributeUse],
    /// The stability of the name.
    pub stability: Stability,
    /// The source systems that fill it, with their own names for it.
    pub upstream: &'static [Upstream],
}

/// An event, sent as a log record with an event name.
#[derive(Debug, PartialEq)]
pub struct Event {
    /// The event name, as on the wire.
    pub name: &'static str,
    /// The description, in one sentence.
    pub brief: &'static str,
    /// The attributes that it may carry.
    pub attributes: &'static [AttributeUse],
    /// The stability of the name.
    pub stability: Stability,
    /// The source systems that fill it, with their own names for it.
    pub upstream: &'static [Upstream],
}
