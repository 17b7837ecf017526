//! The derived series of one resource.

use std::{collections::BTreeSet, sync::Arc};

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue, Encoded, Envelope, LogRecordParts, LogsWriter, Severity},
};
use pulsetrain_pipeline::SourceId;
use pulsetrain_record::{SeriesLimits, SeriesWriter};
use pulsetrain_semconv::{self as semconv, Event, Metric};

use crate::SCOPE;

/// The limits for the series of a resource.
const SERIES: SeriesLimits = SeriesLimits {
    per_metric: 256,
    ended: 256,
};

/// The derived series of one resource.
#[derive(Debug)]
pub(crate) struct ResourceSignals {
    key: Arc<[u8]>,
    /// The source of the resource's newest data.
    pub(super) source: SourceId,
    envelope: Envelope,
    series: SeriesWriter,
    logs: LogsWriter,
    newest: UnixNanos,
    /// The ordinals of the metrics that the resource sends itself.
    suppressed: BTreeSet<u16>,
    pub(super) is_dirty: bool,
}

impl ResourceSignals {
    pub(super) fn new(key: Arc<[u8]>, source: SourceId) -> Self {
        Self {
            envelope: Envelope::of_resource(&key, SCOPE, env!("CARGO_PKG_VERSION"), semconv::SCHEMA_URL),
            key,
            source,
            series: SeriesWriter::new(SERIES),
            logs: LogsWriter::default(),
            newest: UnixNanos::default(),
            suppressed: BTreeSet::new(),
            is_dirty: false,
        }
    }

    /// Sets the start time of sums, unless it is set.
    pub(crate) fn starts_at(&mut self, time: UnixNanos) {
        self.series.start_at(time);
    }

    /// Records that the resource sends this metric itself. It is not derived from now on.
    pub(crate) fn suppress(&mut self, metric: &Metric) {
        self.suppressed.insert(metric.ordinal);
    }

    /// Returns whether the resource sends this metric itself.
    pub(crate) fn is_suppressed(&self, metric: &Metric) -> bool {
        self.suppressed.contains(&metric.ordinal)
    }

    /// Sends a value: the current one of a gauge or an up-down counter, or the increment of a counter. An increment of 0 sends the
    /// total again.
    pub(crate) fn record(
        &mut self,
        metric: &'static Metric,
        time: UnixNanos,
        value: f64,
        attributes: &[Attribute<'_>],
    ) {
        if self.may_send(metric, time) {
            // A value that is not valid for a sum, or beyond the limit for series, is not sent.
            let _ = self.series.record(metric, time, value, attributes);
        }
    }

    /// Sends the state of a state set: one point a member at each change, and once a minute.
    pub(crate) fn state(
        &mut self,
        metric: &'static Metric,
        attribute: &'static semconv::Attribute,
        time: UnixNanos,
        current: &'static str,
    ) {
        if self.may_send(metric, time) {
            let _ = self.series.record_state(metric, attribute, time, current, &[]);
        }
    }

    /// Ends all series. They start again with the next value.
    pub(crate) fn end(&mut self, time: UnixNanos) {
        self.series.end(time.max(self.newest));
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
            body: Some(AttributeValue::Text(body)),
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
        self.series.len() + self.logs.len()
    }

    /// Takes the output.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Encoded> + use<> {
        let points = self.series.finish(&self.envelope);
        let logs = self.logs.finish(&self.envelope);
        points.into_iter().chain(logs)
    }

    fn may_send(&mut self, metric: &Metric, time: UnixNanos) -> bool {
        let may = !self.is_suppressed(metric);
        if may {
            self.series.start_at(time);
            self.newest = self.newest.max(time);
        }
        may
    }
}
