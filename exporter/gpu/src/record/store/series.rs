//! One series: its value, when it was read and written, and its points.

use std::time::Duration;

use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{Attribute, AttributeValue, EncodedSeries, GrowingHistogram},
};
use pulsetrain_record::{
    SeriesWriter,
    series::{REPEAT_AFTER, number, scaled_count},
};
use pulsetrain_semconv::{Instrument, Metric};

use super::{Observation, ObservationContext, Texts};
use crate::{
    reading::{Cadence, INFREQUENT_INTERVAL, Labels},
    record::{
        counter::Counter,
        subject::{EntityAttributes, written},
    },
};

/// The smallest time between two points of a series.
const NANOSECOND: Duration = Duration::from_nanos(1);

/// The time without a reading after which a series is stale, by cadence.
#[derive(Clone, Copy, Debug)]
pub(super) struct StalenessTimeout {
    tick: Duration,
    infrequent: Duration,
}

/// A series.
pub(super) struct Series {
    key: EncodedSeries,
    pub(super) labels: Labels,
    texts: Texts,
    contents: Contents,
    cadence: Cadence,
    start_unix_nanos: UnixNanos,
    /// When it was last read, by our clock.
    pub(super) read_unix_nanos: UnixNanos,
    /// When a point was last written, by our clock, and the time of that point.
    pub(super) written_unix_nanos: UnixNanos,
    point_unix_nanos: UnixNanos,
    /// Whether it has grown since the last point.
    pub(super) fresh: bool,
    /// Whether no point is written before the next value: nothing was observed yet, or all readings are older than the end of the
    /// series that this one continues.
    late: bool,
}

enum Contents {
    Number(f64),
    Total(Counter, f64),
    Own(u64),
    Distribution(Box<GrowingHistogram>),
}

impl StalenessTimeout {
    /// Returns the timeouts for a source of this interval.
    pub(super) fn with(interval: Duration) -> Self {
        // Two readings may be missed.
        let timeout = |every: Duration| every.saturating_mul(2).saturating_add(every / 2);
        Self {
            tick: timeout(interval),
            infrequent: timeout(interval.max(INFREQUENT_INTERVAL)),
        }
    }

    /// Returns the timeout of a series; a constant never becomes stale.
    fn for_cadence(self, cadence: Cadence) -> Duration {
        match cadence {
            Cadence::Tick => self.tick,
            Cadence::Infrequent => self.infrequent,
            Cadence::Once => Duration::MAX,
        }
    }
}

impl Series {
    /// Creates a series that begins with `entry`, after the end of another at `ended_unix_nanos`.
    pub(super) fn new(
        place: &ObservationContext<'_>,
        entry: Observation,
        ended_unix_nanos: UnixNanos,
    ) -> Self {
        let attributes = attributes(place.carried, &place.labels, &place.texts);
        let key = EncodedSeries::new(place.metric, &attributes);
        let contents = match entry {
            Observation::Now(value) | Observation::Held(value) => Contents::Number(value),
            Observation::Total { raw, scale, .. } | Observation::Earlier { raw, scale } => {
                Contents::Total(Counter::new(raw, place.point_time(UnixNanos::UNKNOWN)), scale)
            }
            Observation::Grows(_) => Contents::Own(0),
            Observation::Observed(_) | Observation::NothingObserved => {
                Contents::Distribution(Box::new(GrowingHistogram::for_series(&key)))
            }
        };
        Self {
            key,
            labels: place.labels,
            texts: place.texts,
            contents,
            cadence: place.cadence,
            start_unix_nanos: place.point_time(UnixNanos::UNKNOWN).min(place.time_unix_nanos),
            read_unix_nanos: UnixNanos::UNKNOWN,
            written_unix_nanos: UnixNanos::UNKNOWN,
            point_unix_nanos: ended_unix_nanos.saturating_add(NANOSECOND),
            fresh: false,
            late: false,
        }
    }

    /// Records a value, and writes a point if one is due.
    pub(super) fn observe(
        &mut self,
        place: &ObservationContext<'_>,
        entry: Observation,
        is_new: bool,
        writer: &mut SeriesWriter,
    ) {
        let time = place.point_time(self.point_unix_nanos);
        self.read_unix_nanos = place.time_unix_nanos;
        let silent = place
            .time_unix_nanos
            .saturating_duration_since(self.written_unix_nanos);
        let mut changed = is_new || self.late;
        match (&mut self.contents, entry) {
            (Contents::Number(known), Observation::Now(value)) => (*known, changed) = (value, true),
            (Contents::Number(known), Observation::Held(value)) => {
                changed |= *known != value;
                *known = value;
            }
            (Contents::Total(counter, _), Observation::Total { raw, wraps, .. }) => {
                changed = true;
                if !is_new {
                    counter.advance(
                        raw,
                        wraps,
                        time.max(self.point_unix_nanos.saturating_add(NANOSECOND)),
                    );
                }
            }
            (Contents::Total(counter, _), Observation::Earlier { raw, .. }) => {
                changed = true;
                if !is_new && time > self.point_unix_nanos {
                    counter.advance(raw, false, time);
                }
            }
            (Contents::Own(count), Observation::Grows(by)) => {
                *count += by;
                if by > 0 {
                    self.fresh = true;
                    return;
                }
            }
            (Contents::Distribution(seen), Observation::Observed(value)) => {
                seen.record(value);
                self.point_unix_nanos = self.point_unix_nanos.max(time);
                (self.fresh, self.late) = (true, false);
                return;
            }
            (Contents::Distribution(_), Observation::NothingObserved) => {
                self.late |= is_new;
                return;
            }
            // A metric has one kind of value.
            _ => return,
        }
        // The driver has no newer measurement.
        let same_moment = time <= self.point_unix_nanos;
        let is_old = place.time_unix_nanos <= self.point_unix_nanos;
        self.late = (is_new || self.late) && is_old && self.cadence != Cadence::Once;
        if self.late {
            return;
        }
        if changed && !same_moment || silent >= REPEAT_AFTER {
            let time = if same_moment { place.time_unix_nanos } else { time };
            self.write_at(time, place.time_unix_nanos, writer);
        }
    }

    /// Writes a point with the present value.
    pub(super) fn write(&mut self, now_unix_nanos: UnixNanos, writer: &mut SeriesWriter) {
        let time = match &self.contents {
            // The time of the last observation.
            Contents::Distribution(_) if self.fresh => self.point_unix_nanos,
            _ => now_unix_nanos.max(self.point_unix_nanos.saturating_add(NANOSECOND)),
        };
        self.write_at(time, now_unix_nanos, writer);
    }

    fn write_at(&mut self, time_unix_nanos: UnixNanos, now_unix_nanos: UnixNanos, writer: &mut SeriesWriter) {
        self.point_unix_nanos = time_unix_nanos.max(self.point_unix_nanos);
        self.written_unix_nanos = now_unix_nanos;
        self.fresh = false;
        let (metric, time_unix_nanos) = (self.metric(), self.point_unix_nanos);
        let (start_unix_nanos, value) = match (&self.contents, metric.instrument) {
            (Contents::Distribution(seen), _) => {
                return writer
                    .points()
                    .histogram_of(seen, self.start_unix_nanos, time_unix_nanos);
            }
            (Contents::Total(counter, scale), _) => {
                let value = scaled_count(metric, counter.total(), *scale);
                (counter.start_unix_nanos(), value)
            }
            (Contents::Own(count), _) => (self.start_unix_nanos, NumberValue::Int(*count as i64)),
            (Contents::Number(value), Instrument::Gauge) => (UnixNanos::UNKNOWN, number(metric, *value)),
            (Contents::Number(value), _) => (self.start_unix_nanos, number(metric, *value)),
        };
        writer
            .points()
            .number_of(&self.key, start_unix_nanos, time_unix_nanos, value);
    }

    /// Returns the metric.
    pub(super) fn metric(&self) -> &'static Metric {
        self.key.metric()
    }

    /// Returns whether the last reading is older than the timeout.
    pub(super) fn is_stale(&self, now_unix_nanos: UnixNanos, staleness: StalenessTimeout) -> bool {
        now_unix_nanos.saturating_duration_since(self.read_unix_nanos) > staleness.for_cadence(self.cadence)
    }

    /// Returns whether the last point is old enough to be repeated.
    pub(super) fn is_due_for_repetition(&self, now_unix_nanos: UnixNanos) -> bool {
        !self.late && now_unix_nanos.saturating_duration_since(self.written_unix_nanos) >= REPEAT_AFTER
    }

    /// Writes the end of the series.
    pub(super) fn end(&mut self, now_unix_nanos: UnixNanos, writer: &mut SeriesWriter) {
        self.point_unix_nanos = now_unix_nanos.max(self.point_unix_nanos.saturating_add(NANOSECOND));
        writer
            .points()
            .end_of_encoded_series(&self.key, self.point_unix_nanos);
    }

    /// Ends the series with its present attributes. It begins again with the next value, and its count continues.
    pub(super) fn end_description(&mut self, now_unix_nanos: UnixNanos, writer: &mut SeriesWriter) {
        self.end(now_unix_nanos, writer);
        self.written_unix_nanos = UnixNanos::UNKNOWN;
    }

    /// Replaces the attributes of the following points.
    pub(super) fn describe(&mut self, labels: Labels, carried: &EntityAttributes) {
        self.labels = labels;
        let attributes = attributes(carried, &labels, &self.texts);
        self.key.replace(self.key.metric(), &attributes);
        if let Contents::Distribution(seen) = &mut self.contents {
            seen.relabel(&self.key);
        }
    }
}

fn attributes<'a>(carried: &'a EntityAttributes, labels: &Labels, texts: &Texts) -> Vec<Attribute<'a>> {
    let fixed = labels.fixed.iter().copied();
    let texts = fixed.chain(texts.iter().flatten().copied());
    let numbers = labels
        .number
        .iter()
        .map(|(attribute, number)| (*attribute, AttributeValue::Int(*number)));
    let mut all = Vec::with_capacity(carried.len() + 4);
    all.extend(written(carried));
    all.extend(texts.map(|(attribute, text)| (attribute, AttributeValue::Text(text))));
    all.extend(numbers);
    all
}
