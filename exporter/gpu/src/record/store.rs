//! The book of series: what each has come to, when it was said, and that it ends when nothing more is heard of it.
//!
//! `series` is one of them, `shelf` where they stand.

mod series;
mod shelf;
#[cfg(test)]
mod tests;

use std::time::Duration;

use pulsetrain_otlp::write::{Encoded, Envelope, MetricsWriter};
use pulsetrain_semconv::{self as semconv, Metric};

use self::{
    series::{Patience, Series},
    shelf::Shelf,
};
use super::subject::EntityAttributes;
use crate::reading::{Cadence, Labels};

/// How far the driver's own time may be from ours to be believed: behind and ahead.
const BEHIND_NANOS: u64 = 600_000_000_000;
const AHEAD_NANOS: u64 = 10_000_000_000;

/// Attributes whose values are texts of the program, besides those of [`Labels`].
pub(super) type Texts = [Option<(&'static semconv::Attribute, &'static str)>; 2];

/// What tells a series from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// What it is of.
    pub(super) subject: u32,
    /// The ordinal of the metric.
    metric: u16,
    labels: Labels,
    texts: [Option<&'static str>; 2],
}

/// A value on its way into the book.
#[derive(Clone, Copy)]
pub(super) enum Observation {
    /// What it is now, said whenever it is read.
    Now(f64),
    /// What it is now, said when it changes and once in a while.
    Held(f64),
    /// What a counter of the driver has come to.
    Total { raw: u64, scale: f64, wraps: bool },
    /// The value of a counter of the driver between two passes.
    Earlier { raw: u64, scale: f64 },
    /// How much our own counter grows by.
    Grows(u64),
    /// One of many observations.
    Observed(f64),
    /// None of them since the last time.
    NothingObserved,
}

/// Where and when an entry belongs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// What it is of.
    pub(super) subject: u32,
    /// The attributes of that.
    pub(super) carried: &'a EntityAttributes,
    /// The metric.
    pub(super) metric: &'static Metric,
    /// What tells the series from others of the metric.
    pub(super) labels: Labels,
    /// More of the same.
    pub(super) texts: Texts,
    /// When it was read, in nanoseconds since 1970.
    pub(super) time_unix_nanos: u64,
    /// When the driver measured it; zero where it does not say.
    pub(super) driver_unix_nanos: u64,
    /// How often it is read.
    pub(super) cadence: Cadence,
}

/// All series, and the points that wait to be sent.
pub(super) struct SeriesStore {
    shelf: Shelf,
    patience: Patience,
    said: Said,
}

/// The points so far, and the time of the last end of a series: one that begins again may not go back before its own.
#[derive(Default)]
struct Said {
    writer: MetricsWriter,
    ended_unix_nanos: u64,
}

impl Said {
    fn end(&mut self, key: &Key, series: &mut Series, now_unix_nanos: u64) {
        series.end(&key.labels, now_unix_nanos, &mut self.writer);
        self.ended_unix_nanos = now_unix_nanos.max(self.ended_unix_nanos);
    }
}

impl Key {
    /// The last of the texts of the series.
    pub(super) fn last_text(&self) -> Option<&'static str> {
        self.texts[1]
    }

    /// Whether the texts of the series are these.
    pub(super) fn says(&self, first: &str, second: &str) -> bool {
        self.texts == [Some(first), Some(second)]
    }
}

impl SeriesStore {
    /// An empty one, of what is heard of so often.
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            shelf: Shelf::default(),
            patience: Patience::with(interval),
            said: Said::default(),
        }
    }

    /// Takes a value down, and says it where it is to be said.
    pub(super) fn enter(&mut self, place: Place<'_>, entry: Observation) {
        let key = Key {
            subject: place.subject,
            metric: place.metric.ordinal,
            labels: place.labels,
            texts: place.texts.map(|text| text.map(|(_, value)| value)),
        };
        let Self {
            shelf,
            patience,
            said,
        } = self;
        let (at, is_new) = shelf.find(&key, || Series::new(&place, entry, said.ended_unix_nanos));
        let Some((labels, series, due_unix_nanos)) = shelf.at(at) else {
            return;
        };
        if !is_new
            && series.heard_unix_nanos == place.time_unix_nanos
            && !matches!(
                entry,
                Observation::Observed(_) | Observation::Grows(_) | Observation::Earlier { .. }
            )
        {
            // Two rows give the same series: the first is the better one.
            return;
        }
        if !labels.same_description(&key.labels) {
            series.end_description(labels, place.time_unix_nanos, &mut said.writer);
            *labels = key.labels;
        }
        series.enter(&key.labels, &place, entry, is_new, &mut said.writer);
        *due_unix_nanos = series.due_unix_nanos(*patience);
    }

    /// Says what has grown since it was said: distributions, and what we count.
    pub(super) fn flush_changed(&mut self, now_unix_nanos: u64) {
        let Self { shelf, said, .. } = self;
        for (key, series, _) in shelf.iter_mut().filter(|(_, series, _)| series.fresh) {
            series.say(&key.labels, now_unix_nanos, &mut said.writer);
        }
    }

    /// Repeats what was not said for long, and ends what was not heard of for longer than patience allows before the pass
    /// that began at `pass_unix_nanos`: how long the pass itself took makes nothing old that was read in it. Series that are
    /// `late` are still being read and do not end.
    pub(super) fn sweep(&mut self, pass_unix_nanos: u64, now_unix_nanos: u64, late: impl Fn(&Key) -> bool) {
        let Self {
            shelf,
            patience,
            said,
        } = self;
        shelf.look(now_unix_nanos, |key, series| {
            if !late(key) && series.is_over(pass_unix_nanos, *patience) {
                said.end(key, series, now_unix_nanos);
                return None;
            }
            if series.is_to_be_repeated(now_unix_nanos) {
                series.say(&key.labels, now_unix_nanos, &mut said.writer);
            }
            Some(series.due_unix_nanos(*patience))
        });
    }

    /// Ends every series that `is_over` says is.
    pub(super) fn end(&mut self, now_unix_nanos: u64, is_over: impl Fn(&Key, &'static Metric) -> bool) {
        let Self { shelf, said, .. } = self;
        shelf.retain(|key, series| {
            let over = is_over(key, series.metric);
            if over {
                said.end(key, series, now_unix_nanos);
            }
            !over
        });
    }

    /// Ends the series of a subject as it was and begins them as it is now, with what they have come to.
    pub(super) fn rename(&mut self, subject: u32, carried: &EntityAttributes, now_unix_nanos: u64) {
        let Self { shelf, said, .. } = self;
        for (key, series, due_unix_nanos) in shelf.iter_mut().filter(|(key, ..)| key.subject == subject) {
            series.end_description(&key.labels, now_unix_nanos, &mut said.writer);
            series.carried = carried.clone();
            *due_unix_nanos = 0;
        }
    }

    /// The points so far as a batch.
    pub(super) fn finish(&mut self, envelope: &Envelope) -> Option<Encoded> {
        self.said.writer.finish(envelope)
    }
}

impl Place<'_> {
    /// The time of the point: the driver's own where it can be, else ours.
    fn point_time(&self, last_unix_nanos: u64) -> u64 {
        let ours = self.time_unix_nanos;
        let believed = ours.saturating_sub(BEHIND_NANOS)..=ours + AHEAD_NANOS;
        if believed.contains(&self.driver_unix_nanos) {
            self.driver_unix_nanos
        } else {
            ours.max(last_unix_nanos)
        }
    }
}
