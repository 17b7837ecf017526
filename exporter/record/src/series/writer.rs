//! The writer of the series of one resource.

use std::collections::HashMap;

use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{Attribute, AttributeValue, Encoded, EncodedSeries, Envelope, MetricsWriter},
};
use pulsetrain_semconv::{self as semconv, AttributeKind, Instrument, Metric};

use super::{
    EndedSeries, PreparedSeries, SeriesLimits, number,
    states::StateSet,
    table::{Activity, SeriesTable, Total},
};
use crate::SkipReason;

/// Writes the series of one resource: values become points of a batch.
///
/// A value is the current one of a gauge or an up-down counter, the increment of a counter, or an observation of a histogram.
/// Counters and histograms are cumulative since the start of their resource. A value that is not written is returned as a
/// [`SkipReason`]. A caller that keeps the values of its series itself uses only [`points`](Self::points).
#[derive(Debug)]
pub struct SeriesWriter {
    points: MetricsWriter,
    table: SeriesTable,
    /// State sets by their metrics and the attributes that identify them.
    states: HashMap<EncodedSeries, StateSet, foldhash::fast::RandomState>,
    /// The start time of sums; unknown before the first sum.
    start_unix_nanos: UnixNanos,
    /// The series of the latest value whose series was not prepared: its memory is used again.
    unprepared: Option<PreparedSeries>,
}

impl Default for SeriesWriter {
    /// Returns a writer for a caller that keeps the values of its series itself.
    fn default() -> Self {
        Self::new(SeriesLimits::default())
    }
}

impl SeriesWriter {
    /// Creates a writer without series.
    pub fn new(limits: SeriesLimits) -> Self {
        Self {
            points: MetricsWriter::default(),
            table: SeriesTable::new(limits),
            states: HashMap::default(),
            start_unix_nanos: UnixNanos::UNKNOWN,
            unprepared: None,
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> SeriesLimits {
        self.table.limits
    }

    /// Sets the limits for the following values.
    pub fn set_limits(&mut self, limits: SeriesLimits) {
        self.table.limits = limits;
    }

    /// Sets the start time of sums, unless it is known. Without it, sums start at the time of the first one.
    pub fn start_at(&mut self, time_unix_nanos: UnixNanos) {
        if !self.start_unix_nanos.is_known() {
            self.start_unix_nanos = time_unix_nanos;
        }
    }

    /// Writes a value of the series with these attributes.
    ///
    /// # Errors
    /// The value is not valid for a sum, or its series is beyond the limit.
    #[inline]
    pub fn record(
        &mut self,
        metric: &'static Metric,
        time_unix_nanos: UnixNanos,
        value: f64,
        attributes: &[Attribute<'_>],
    ) -> Result<(), SkipReason> {
        let mut series = self.series(metric, attributes);
        let written = self.record_prepared(&mut series, time_unix_nanos, value);
        self.unprepared = Some(series);
        written
    }

    /// Writes a value of a prepared series.
    ///
    /// # Errors
    /// The value is not valid for a sum, or its series is beyond the limit.
    #[inline]
    pub fn record_prepared(
        &mut self,
        series: &mut PreparedSeries,
        time_unix_nanos: UnixNanos,
        value: f64,
    ) -> Result<(), SkipReason> {
        let metric = series.metric();
        let is_total = matches!(metric.instrument, Instrument::Counter | Instrument::Histogram);
        if is_total && !(value.is_finite() && value >= 0.0) {
            return Err(SkipReason::NotSummable);
        }
        let start_unix_nanos = match metric.instrument {
            Instrument::Gauge => UnixNanos::UNKNOWN,
            _ => self.start(time_unix_nanos),
        };
        let value = match is_total.then(|| self.table.total(series)) {
            None => value,
            Some(Some(Total::Sum(sum))) => {
                *sum += value;
                *sum
            }
            Some(Some(Total::Histogram(histogram))) => {
                let times = (start_unix_nanos, time_unix_nanos);
                self.points.observe(histogram, times, value);
                self.table.mark_active(series);
                return Ok(());
            }
            Some(None) => return Err(SkipReason::TooManySeries),
        };
        let value = number(metric, value);
        self.points
            .number_of(&series.encoded, start_unix_nanos, time_unix_nanos, value);
        self.table.mark_active(series);
        Ok(())
    }

    /// Writes the current state of a state set: a point for each state at every change, and again after
    /// [`REPEAT_AFTER`](super::REPEAT_AFTER). Returns the number of points.
    ///
    /// # Errors
    /// The state set is beyond the limit.
    pub fn record_state(
        &mut self,
        metric: &'static Metric,
        attribute: &'static semconv::Attribute,
        time_unix_nanos: UnixNanos,
        state: &str,
        attributes: &[Attribute<'_>],
    ) -> Result<u64, SkipReason> {
        let AttributeKind::Enum(names) = attribute.kind else {
            return Ok(0);
        };
        let series = |state: &str| {
            let all = [attributes, &[(attribute, AttributeValue::Text(state))]].concat();
            PreparedSeries::new(metric, &all)
        };
        let key = EncodedSeries::new(metric, attributes);
        if self.states.len() >= self.table.limits.per_metric && !self.states.contains_key(&key) {
            return Err(SkipReason::TooManySeries);
        }
        let start_unix_nanos = self.start(time_unix_nanos);
        let mut count = 0;
        let set = self
            .states
            .entry(key)
            .or_insert_with(|| StateSet::new(names, series));
        set.enter(time_unix_nanos, state, series, |series, is_active| {
            let value = NumberValue::Int(i64::from(is_active));
            self.points
                .number_of(&series.encoded, start_unix_nanos, time_unix_nanos, value);
            self.table.mark_active(series);
            count += 1;
        });
        Ok(count)
    }

    /// Returns the writer of points whose values the caller keeps, or has aggregated itself.
    pub fn points(&mut self) -> &mut MetricsWriter {
        &mut self.points
    }

    /// Records that the caller wrote a point of this series, so that it can be ended.
    pub fn mark_active(&mut self, metric: &'static Metric, attributes: &[Attribute<'_>]) {
        let mut series = self.series(metric, attributes);
        self.table.mark_active(&mut series);
        self.unprepared = Some(series);
    }

    /// Returns whether there are series that have not ended.
    pub fn has_active(&self) -> bool {
        self.table.has_active()
    }

    /// Ends every series. It begins again with its next value; sums and histograms continue.
    pub fn end(&mut self, time_unix_nanos: UnixNanos) -> EndedSeries {
        if self.has_active() {
            self.restart_states();
        }
        self.end_up_to(Activity::Written, time_unix_nanos)
    }

    /// Ends every series without a point since the last call.
    pub fn end_silent(&mut self, time_unix_nanos: UnixNanos) -> EndedSeries {
        self.end_up_to(Activity::Silent, time_unix_nanos)
    }

    fn end_up_to(&mut self, activity: Activity, time_unix_nanos: UnixNanos) -> EndedSeries {
        let points = &mut self.points;
        let end = |series: &EncodedSeries| points.end_of_encoded_series(series, time_unix_nanos);
        self.table.end(activity, end)
    }

    /// Makes every series begin again with its next value, because the series have ended already.
    pub fn forget_active(&mut self) {
        self.table.end(Activity::Written, |_| {});
    }

    /// Resets sums and histograms: they count from this time, or from the time of the first one if it is unknown.
    pub fn restart_sums(&mut self, start_unix_nanos: UnixNanos) {
        self.table.restart();
        self.start_unix_nanos = start_unix_nanos;
    }

    /// Makes every state set begin again with its next state.
    pub fn restart_states(&mut self) {
        self.states.values_mut().for_each(StateSet::restart);
    }

    /// Returns the size of the points so far, in bytes.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the batch so far, if it has points; the series stay.
    pub fn finish(&mut self, envelope: &Envelope) -> Option<Encoded> {
        self.points.finish(envelope)
    }

    /// Returns a series in the memory of the latest one that was not prepared.
    #[inline]
    fn series(&mut self, metric: &'static Metric, attributes: &[Attribute<'_>]) -> PreparedSeries {
        match self.unprepared.take() {
            Some(mut series) => {
                series.encoded.replace(metric, attributes);
                series.table = 0;
                series
            }
            None => PreparedSeries::new(metric, attributes),
        }
    }

    /// Returns the start time of sums.
    #[inline]
    fn start(&mut self, time_unix_nanos: UnixNanos) -> UnixNanos {
        self.start_at(time_unix_nanos);
        self.start_unix_nanos
    }
}
