//! The types of a definition: what the generated constants are made of.
//!
//! They are plain data with `'static` contents: a constant costs nothing, and `&metric::TRAIN_LOSS` lives for ever.

/// How a value of a metric behaves over time (OpenTelemetry metrics API, "Instrument").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instrument {
    /// A sum that only grows, sent as a cumulative monotonic sum.
    Counter,
    /// A sum that may fall, sent as a cumulative non-monotonic sum.
    UpDownCounter,
    /// A value that is what it was last set to.
    Gauge,
    /// A distribution, sent as a cumulative explicit-bucket histogram.
    Histogram,
}

/// The type of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// 64-bit signed integers.
    Int,
    /// 64-bit floating point numbers; NaN and infinities are values.
    Double,
}

/// How far a name may still change (OpenTelemetry "stability").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stability {
    /// May change in any release; a rename is listed in CHANGELOG.
    Development,
    /// About to be stable; changes only for a defect.
    ReleaseCandidate,
    /// Does not change.
    Stable,
}

/// How much an attribute is asked for (OpenTelemetry "requirement level").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// Always there.
    Required,
    /// There whenever its condition (in the registry's text) holds.
    ConditionallyRequired,
    /// There where it is known.
    Recommended,
    /// There when asked for.
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
    /// The type of its value.
    pub kind: AttributeKind,
    /// Whether it describes the value of a series, which has one value of it at a time, and does not identify the series.
    pub descriptive: bool,
    /// How far the name may still change.
    pub stability: Stability,
}

/// That something carries an attribute, and how much it is asked for.
#[derive(Debug, PartialEq)]
pub struct AttributeUse {
    /// The attribute.
    pub attribute: &'static Attribute,
    /// How much it is asked for.
    pub requirement: Requirement,
}

/// Which names a source system uses for the same thing.
#[derive(Debug, PartialEq)]
pub struct Upstream {
    /// The system: `surogate`, `maxtext`, `tunix` ...
    pub system: &'static str,
    /// Its own names, as its output spells them.
    pub names: &'static [&'static str],
}

/// A metric.
#[derive(Debug, PartialEq)]
pub struct Metric {
    /// Its place in [`metric::ALL`](crate::metric::ALL), for tables indexed by metric.
    pub ordinal: u16,
    /// The name, as on the wire.
    pub name: &'static str,
    /// What it measures, in one sentence; the description on the wire.
    pub brief: &'static str,
    /// The unit, in UCUM.
    pub unit: &'static str,
    /// How its values behave over time.
    pub instrument: Instrument,
    /// The type of its values.
    pub number: Number,
    /// The bucket bounds of a histogram, in the metric's unit; empty for every other instrument.
    pub bounds: &'static [f64],
    /// The attributes of its points.
    pub attributes: &'static [AttributeUse],
    /// The family's name in Prometheus, suffixes included.
    pub prometheus_name: &'static str,
    /// How far the name may still change.
    pub stability: Stability,
    /// Who fills it, from which of their names.
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
    /// What it covers, in one sentence.
    pub brief: &'static str,
    /// Its role.
    pub kind: SpanKind,
    /// The attributes that it may carry.
    pub attributes: &'static [AttributeUse],
    /// How far the name may still change.
    pub stability: Stability,
    /// Who fills it, from which of their names.
    pub upstream: &'static [Upstream],
}

/// An event, sent as a log record with an event name.
#[derive(Debug, PartialEq)]
pub struct Event {
    /// The event name, as on the wire.
    pub name: &'static str,
    /// What happened, in one sentence.
    pub brief: &'static str,
    /// The attributes that it may carry.
    pub attributes: &'static [AttributeUse],
    /// How far the name may still change.
    pub stability: Stability,
    /// Who fills it, from which of their names.
    pub upstream: &'static [Upstream],
}
