//! The derived series of one resource.

use std::{collections::BTreeSet, sync::Arc};

use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{
        Attribute, Buffer, Encoded, Envelope, LogRecordParts, LogsWriter, MetricsWriter, PointParts,
        Severity, Value, span_attributes,
    },
};
use pulsetrain_pipeline::SourceId;
use pulsetrain_semconv::{self as semconv, AttributeKind, Event, Metric, Number};

use crate::SCOPE;

/// The maximum number of counter series of a resource. Values of further ones are not sent.
const MAX_SERIES: usize = 256;

/// The interval at which an unchanged state is sent again.
const REPEAT_STATE_NANOS: u64 = 60_000_000_000;

/// The derived series of one resource.
#[derive(Debug)]
pub(crate) struct ResourceSignals {
    key: Arc<[u8]>,
    /// The source of the resource's newest data.
    pub(super) source: SourceId,
    envelope: Envelope,
    metrics: MetricsWriter,
    logs: LogsWriter,
    /// The start time of sums.
    start: Option<UnixNanos>,
    newest: UnixNanos,
    sums: Vec<(SeriesKey, f64)>,
    states: Vec<State>,
    /// The series that have a point and no end.
    active: Vec<ActiveSeries>,
    /// The ordinals of the metrics that the resource sends itself.
    suppressed: BTreeSet<u16>,
    pub(super) is_dirty: bool,
}

/// A metric and the encoded attributes of one of its series.
type SeriesKey = (u16, Vec<u8>);

/// A series for the encoding of its end.
#[derive(Debug)]
struct ActiveSeries {
    metric: &'static Metric,
    attributes: Vec<(&'static semconv::Attribute, AttributeValue)>,
}

#[derive(Debug)]
enum AttributeValue {
    Text(Box<str>),
    Int(i64),
}

#[derive(Debug)]
struct State {
    metric: u16,
    current: &'static str,
    sent: UnixNanos,
}

impl ResourceSignals {
    pub(super) fn new(key: Arc<[u8]>, source: SourceId) -> Self {
        Self {
            envelope: Envelope::of_resource(&key, SCOPE, env!("CARGO_PKG_VERSION"), semconv::SCHEMA_URL),
            key,
            source,
            metrics: MetricsWriter::default(),
            logs: LogsWriter::default(),
            start: None,
            newest: UnixNanos::default(),
            sums: Vec::new(),
            states: Vec::new(),
            active: Vec::new(),
            suppressed: BTreeSet::new(),
            is_dirty: false,
        }
    }

    /// Sets the start time of sums, unless it is set.
    pub(crate) fn starts_at(&mut self, time: UnixNanos) {
        self.start.get_or_insert(time);
    }

    /// Records that the resource sends this metric itself. It is not derived from now on.
    pub(crate) fn suppress(&mut self, metric: &Metric) {
        self.suppressed.insert(metric.ordinal);
    }

    /// Returns whether the resource sends this metric itself.
    pub(crate) fn is_suppressed(&self, metric: &Metric) -> bool {
        self.suppressed.contains(&metric.ordinal)
    }

    /// Sends a value of a gauge.
    pub(crate) fn gauge(&mut self, metric: &'static Metric, time: UnixNanos, value: f64) {
        self.gauge_of(metric, time, &[], value);
    }

    /// Sends a value of a gauge whose series has attributes.
    pub(crate) fn gauge_of(
        &mut self,
        metric: &'static Metric,
        time: UnixNanos,
        attributes: &[Attribute<'_>],
        value: f64,
    ) {
        if self.may_send(metric, time) {
            let point = PointParts {
                start_unix_nanos: UnixNanos::UNKNOWN,
                time_unix_nanos: time,
                attributes,
            };
            self.metrics.number(metric, point, number(metric, value));
            self.note_active(metric, attributes);
        }
    }

    /// Adds to a counter, and sends its total. An increase of 0 sends the total again.
    pub(crate) fn add(
        &mut self,
        metric: &'static Metric,
        time: UnixNanos,
        attributes: &[Attribute<'_>],
        growth: f64,
    ) {
        if !self.may_send(metric, time) || !growth.is_finite() || growth < 0.0 {
            return;
        }
        let Some(total) = sum_of(&mut self.sums, metric, attributes) else {
            return;
        };
        *total += growth;
        let total = *total;
        let point = self.point(time, attributes);
        self.metrics.number(metric, point, number(metric, total));
        self.note_active(metric, attributes);
    }

    /// Sends the value of an up-down counter.
    pub(crate) fn set(
        &mut self,
        metric: &'static Metric,
        time: UnixNanos,
        attributes: &[Attribute<'_>],
        value: f64,
    ) {
        if self.may_send(metric, time) {
            let point = self.point(time, attributes);
            self.metrics.number(metric, point, number(metric, value));
            self.note_active(metric, attributes);
        }
    }

    /// Sets the state of a state set with one enum attribute: one point a member at each change, and once a
    /// minute.
    pub(crate) fn state(
        &mut self,
        metric: &'static Metric,
        attribute: &'static semconv::Attribute,
        time: UnixNanos,
        current: &'static str,
    ) {
        if !self.may_send(metric, time) {
            return;
        }
        let known = self
            .states
            .iter_mut()
            .find(|state| state.metric == metric.ordinal);
        match known {
            Some(state)
                if state.current == current && time.0.saturating_sub(state.sent.0) < REPEAT_STATE_NANOS =>
            {
                return;
            }
            Some(state) => (state.current, state.sent) = (current, time),
            None => self.states.push(State {
                metric: metric.ordinal,
                current,
                sent: time,
            }),
        }
        let AttributeKind::Enum(members) = attribute.kind else {
            return;
        };
        for member in members {
            let attributes = [(attribute, Value::Text(member))];
            let point = self.point(time, &attributes);
            let value = NumberValue::Int(i64::from(*member == current));
            self.metrics.number(metric, point, value);
            self.note_active(metric, &attributes);
        }
    }

    /// Ends all series. They start again with the next value.
    pub(crate) fn end(&mut self, time: UnixNanos) {
        let time = time.max(self.newest);
        for series in std::mem::take(&mut self.active) {
            let attributes: Vec<Attribute<'_>> = (series.attributes.iter())
                .map(|(attribute, value)| (*attribute, value.as_value()))
                .collect();
            let point = self.point(time, &attributes);
            self.metrics.end_of_series(series.metric, point);
        }
        self.states.clear();
    }

    fn note_active(&mut self, metric: &'static Metric, attributes: &[Attribute<'_>]) {
        let is_known = self.active.iter().any(|series| series.is(metric, attributes));
        if !is_known && self.active.len() < MAX_SERIES {
            self.active.push(ActiveSeries {
                metric,
                attributes: attributes
                    .iter()
                    .filter_map(|(attribute, value)| Some((*attribute, AttributeValue::of(value)?)))
                    .collect(),
            });
        }
    }

    /// Sends an event; `body` is its text.
    pub(crate) fn event(
        &mut self,
        event: &'static Event,
        time: UnixNanos,
        severity: Severity,
        body: &str,
        attributes: &[Attribute<'_>],
    ) {
        self.newest = self.newest.max(time);
        self.logs.record(&LogRecordParts {
            event_name: event.name,
            time_unix_nanos: time,
            observed_unix_nanos: time,
            severity,
            body: Some(Value::Text(body)),
            attributes,
        });
    }

    pub(super) fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    /// Returns the newest time of any value.
    pub(super) fn newest(&self) -> UnixNanos {
        self.newest
    }

    /// Returns the size of the collected points in bytes.
    pub(super) fn len(&self) -> usize {
        self.metrics.len() + self.logs.len()
    }

    /// Takes the output.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Encoded> + use<> {
        let metrics = self.metrics.finish(&self.envelope);
        let logs = self.logs.finish(&self.envelope);
        metrics.into_iter().chain(logs)
    }

    fn may_send(&mut self, metric: &Metric, time: UnixNanos) -> bool {
        let may = !self.is_suppressed(metric);
        if may {
            self.start.get_or_insert(time);
            self.newest = self.newest.max(time);
        }
        may
    }

    fn point<'a>(&self, time: UnixNanos, attributes: &'a [Attribute<'a>]) -> PointParts<'a> {
        PointParts {
            start_unix_nanos: self.start.unwrap_or(time),
            time_unix_nanos: time,
            attributes,
        }
    }
}

impl ActiveSeries {
    fn is(&self, metric: &Metric, attributes: &[Attribute<'_>]) -> bool {
        let mut pairs = self.attributes.iter().zip(attributes);
        self.metric.ordinal == metric.ordinal
            && self.attributes.len() == attributes.len()
            && pairs.all(|((own, value), (other, of_other))| own.name == other.name && value.is(of_other))
    }
}

impl AttributeValue {
    /// Returns an owned value. Derived series have only texts and numbers.
    fn of(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(Self::Text((*text).into())),
            Value::Int(number) => Some(Self::Int(*number)),
            _ => None,
        }
    }

    fn is(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Text(own), Value::Text(text)) => **own == **text,
            (Self::Int(own), Value::Int(number)) => own == number,
            _ => false,
        }
    }

    fn as_value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text),
            Self::Int(number) => Value::Int(*number),
        }
    }
}

/// Returns the total of a series, and adds the series within the limit.
fn sum_of<'a>(
    sums: &'a mut Vec<(SeriesKey, f64)>,
    metric: &Metric,
    attributes: &[Attribute<'_>],
) -> Option<&'a mut f64> {
    let mut encoded = Buffer::default();
    span_attributes(attributes, &mut encoded);
    let is_it = |(metric_of, attributes_of): &SeriesKey| {
        *metric_of == metric.ordinal && attributes_of == encoded.as_slice()
    };
    let place = match sums.iter().position(|(key, _)| is_it(key)) {
        Some(place) => place,
        None if sums.len() >= MAX_SERIES => return None,
        None => {
            sums.push(((metric.ordinal, encoded.into_vec()), 0.0));
            sums.len() - 1
        }
    };
    sums.get_mut(place).map(|(_, total)| total)
}

/// Returns a value in the type of its metric.
fn number(metric: &Metric, value: f64) -> NumberValue {
    match metric.number {
        Number::Int => NumberValue::Int(value.round() as i64),
        Number::Double => NumberValue::Double(value),
    }
}
