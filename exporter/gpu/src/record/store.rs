//! The series of the GPUs: their values, their points, and their end when they are not read any more.

mod series;
#[cfg(test)]
mod tests;

use std::time::Duration;

use indexmap::IndexMap;
use pulsetrain_otlp::{
    UnixNanos,
    write::{Encoded, Envelope},
};
use pulsetrain_record::SeriesWriter;
use pulsetrain_semconv::{self as semconv, Metric};

use self::series::{Series, StalenessTimeout};
use super::subject::EntityAttributes;
use crate::reading::{Cadence, Labels};

/// The limits by which the driver's own time may be before and after the time of the reading to be used.
const MAX_DRIVER_TIME_LAG: Duration = Duration::from_secs(600);
const MAX_DRIVER_TIME_LEAD: Duration = Duration::from_secs(10);

/// Attributes with static text values, in addition to those of [`Labels`].
pub(super) type Texts = [Option<(&'static semconv::Attribute, &'static str)>; 2];

/// Identifies a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// The id of the subject.
    pub(super) subject: u32,
    /// The ordinal of the metric.
    metric: u16,
    labels: Labels,
    texts: [Option<&'static str>; 2],
}

/// A value that was read.
#[derive(Clone, Copy)]
pub(super) enum Observation {
    /// The present value; each reading is a point.
    Now(f64),
    /// The present value; a point is written when it changes, and every few minutes.
    Held(f64),
    /// The value of a counter of the driver.
    Total { raw: u64, scale: f64, wraps: bool },
    /// The value of a counter of the driver between two passes.
    Earlier { raw: u64, scale: f64 },
    /// An increase of a counter that this program keeps.
    Grows(u64),
    /// An observation for a histogram.
    Observed(f64),
    /// No observation for a histogram since the last reading.
    NothingObserved,
}

/// The series and the time of an observation.
#[derive(Clone, Copy)]
pub(super) struct ObservationContext<'a> {
    /// The id of the subject.
    pub(super) subject: u32,
    /// The attributes of the subject.
    pub(super) carried: &'a EntityAttributes,
    /// The metric.
    pub(super) metric: &'static Metric,
    /// Identifies the series among those of the metric.
    pub(super) labels: Labels,
    /// Further attributes that identify it.
    pub(super) texts: Texts,
    /// When it was read.
    pub(super) time_unix_nanos: UnixNanos,
    /// When the driver measured it, if known.
    pub(super) driver_unix_nanos: UnixNanos,
    /// The cadence of the readings.
    pub(super) cadence: Cadence,
}

/// All series, and the points to send.
pub(super) struct SeriesStore {
    series: IndexMap<Key, Series>,
    staleness: StalenessTimeout,
    written: PendingPoints,
}

/// The points so far, and the time of the last end of a series: a series that begins again must not have points before its own
/// end.
#[derive(Default)]
struct PendingPoints {
    writer: SeriesWriter,
    ended_unix_nanos: UnixNanos,
}

impl PendingPoints {
    fn end(&mut self, series: &mut Series, now_unix_nanos: UnixNanos) {
        series.end(now_unix_nanos, &mut self.writer);
        self.ended_unix_nanos = now_unix_nanos.max(self.ended_unix_nanos);
    }
}

impl Key {
    /// The last of the texts of the series.
    pub(super) fn last_text(&self) -> Option<&'static str> {
        self.texts[1]
    }

    /// Returns whether these are the texts of the series.
    pub(super) fn has_texts(&self, first: &str, second: &str) -> bool {
        self.texts == [Some(first), Some(second)]
    }
}

impl SeriesStore {
    /// Creates an empty store for a source of this interval.
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            series: IndexMap::new(),
            staleness: StalenessTimeout::with(interval),
            written: PendingPoints::default(),
        }
    }

    /// Records a value, and writes a point if one is due.
    pub(super) fn observe(&mut self, place: ObservationContext<'_>, entry: Observation) {
        let key = Key {
            subject: place.subject,
            metric: place.metric.ordinal,
            labels: place.labels,
            texts: place.texts.map(|text| text.map(|(_, value)| value)),
        };
        let Self { series, written, .. } = self;
        let mut is_new = false;
        let series = series.entry(key).or_insert_with(|| {
            is_new = true;
            Series::new(&place, entry, written.ended_unix_nanos)
        });
        if !is_new
            && series.read_unix_nanos == place.time_unix_nanos
            && !matches!(
                entry,
                Observation::Observed(_) | Observation::Grows(_) | Observation::Earlier { .. }
            )
        {
            // Two rows fill the same series: the first one is preferred.
            return;
        }
        if !series.labels.same_description(&place.labels) {
            let now_unix_nanos = place.time_unix_nanos;
            series.end_description(now_unix_nanos, &mut written.writer);
            series.describe(place.labels, place.carried);
        }
        series.observe(&place, entry, is_new, &mut written.writer);
    }

    /// Writes the series that have grown since their last point: histograms, and counters that this program keeps.
    pub(super) fn flush_changed(&mut self, now_unix_nanos: UnixNanos) {
        for series in self.series.values_mut().filter(|series| series.fresh) {
            series.write(now_unix_nanos, &mut self.written.writer);
        }
    }

    /// Repeats points of constant series, and ends stale series: those whose last reading is older than the timeout at
    /// `pass_unix_nanos`, the beginning of the pass. The duration of the pass does not count. Series that are `late` are still
    /// being read and do not end.
    pub(super) fn sweep(
        &mut self,
        pass_unix_nanos: UnixNanos,
        now_unix_nanos: UnixNanos,
        late: impl Fn(&Key) -> bool,
    ) {
        let Self {
            series: all,
            staleness,
            written,
        } = self;
        all.retain(|key, series| {
            if !late(key) && series.is_stale(pass_unix_nanos, *staleness) {
                written.end(series, now_unix_nanos);
                return false;
            }
            if series.is_due_for_repetition(now_unix_nanos) {
                series.write(now_unix_nanos, &mut written.writer);
            }
            true
        });
    }

    /// Ends every series for which `is_stale` returns true.
    pub(super) fn end(
        &mut self,
        now_unix_nanos: UnixNanos,
        is_stale: impl Fn(&Key, &'static Metric) -> bool,
    ) {
        let Self {
            series: all, written, ..
        } = self;
        all.retain(|key, series| {
            let is_stale = is_stale(key, series.metric());
            if is_stale {
                written.end(series, now_unix_nanos);
            }
            !is_stale
        });
    }

    /// Ends the series of a subject with its old attributes and begins them with the new ones; their values continue.
    pub(super) fn rename(&mut self, subject: u32, carried: &EntityAttributes, now_unix_nanos: UnixNanos) {
        let Self {
            series: all, written, ..
        } = self;
        for (_, series) in all.iter_mut().filter(|(key, _)| key.subject == subject) {
            series.end_description(now_unix_nanos, &mut written.writer);
            series.describe(series.labels, carried);
        }
    }

    /// Returns the points so far as a batch.
    pub(super) fn finish(&mut self, envelope: &Envelope) -> Option<Encoded> {
        self.written.writer.finish(envelope)
    }
}

impl<'a> ObservationContext<'a> {
    /// Returns the context of a series of the host. It stays valid until the next reading, however late that is.
    pub(super) fn of_host(
        carried: &'a EntityAttributes,
        metric: &'static Metric,
        time_unix_nanos: UnixNanos,
    ) -> Self {
        Self {
            // The ids of GPUs begin with 1.
            subject: 0,
            carried,
            metric,
            labels: Labels::default(),
            texts: [None; 2],
            time_unix_nanos,
            driver_unix_nanos: UnixNanos::UNKNOWN,
            cadence: Cadence::Once,
        }
    }

    /// Returns the time of the point: the driver's own if it is plausible, else the time of the reading.
    fn point_time(&self, last_unix_nanos: UnixNanos) -> UnixNanos {
        let ours = self.time_unix_nanos;
        let plausible_times =
            ours.saturating_sub(MAX_DRIVER_TIME_LAG)..=ours.saturating_add(MAX_DRIVER_TIME_LEAD);
        if plausible_times.contains(&self.driver_unix_nanos) {
            self.driver_unix_nanos
        } else {
            ours.max(last_unix_nanos)
        }
    }
}
