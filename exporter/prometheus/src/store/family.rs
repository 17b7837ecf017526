//! A family: the series of one name with their last values, under one lock.
//!
//! A scrape holds the lock for a few hundred series at a time, so a point waits for microseconds at most.

use std::{hash::BuildHasher, sync::Arc};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::{Mutex, MutexGuard};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_run::{RecentDeltas, SeriesPoint};

use super::{
    Rejection, SeriesLimit,
    budget::Charge,
    target::ScrapeTarget,
    value::{Exemplar, Exemplars, SampleValue},
};

/// The maximum number of metrics that share a family, because their lookup is linear.
const MAX_SOURCES: usize = 64;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FamilyKind {
    /// A value that only increases.
    Counter,
    /// The last value that was set.
    Gauge,
    /// A value of unknown type.
    Untyped,
    /// A distribution of observations in buckets.
    Histogram,
    /// A distribution with quantiles.
    Summary,
    /// A description by labels; the value is 1.
    Info,
}

/// The header of a family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    /// The translated name: with `_total` for a counter, without `_bucket` for a histogram.
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) unit: String,
    pub(crate) kind: FamilyKind,
}

/// A family with its series.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) head: Head,
    table: Mutex<Table>,
    _charge: Charge,
}

/// One series.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) labels: Box<str>,
    pub(crate) value: SampleValue,
    pub(crate) start_unix_nanos: UnixNanos,
    pub(crate) exemplars: Option<Box<Exemplars>>,
    pub(crate) target: Arc<ScrapeTarget>,
    /// The creation number in the store. A scrape skips series created after its start.
    pub(crate) creation_number: u64,
    time_unix_nanos: UnixNanos,
    deltas: RecentDeltas,
    /// The arrival time of the last point, in seconds since the store's creation.
    seen_seconds: u32,
    /// The bytes charged to the budget.
    bytes: u32,
    source: u16,
}

/// The series of a family. Their slots are stable, so that a scrape can resume.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: Vec<Option<Series>>,
    free: Vec<u32>,
    /// Slots by the hash of their labels.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The untranslated names of the metrics that share the family.
    sources: Vec<Box<str>>,
}

/// A point of one series.
#[derive(Debug)]
pub(crate) struct Point<'a> {
    pub(crate) labels: &'a str,
    pub(crate) start_unix_nanos: UnixNanos,
    pub(crate) time_unix_nanos: UnixNanos,
    /// Its arrival time, in seconds since the store's creation.
    pub(crate) seen_seconds: u32,
    pub(crate) source: u16,
    pub(crate) target: &'a Arc<ScrapeTarget>,
    pub(crate) is_internal: bool,
    pub(crate) change: Change,
    pub(crate) exemplars: Vec<Exemplar>,
}

/// The change of a series by a point.
#[derive(Debug)]
pub(crate) enum Change {
    /// Sets the value.
    Set(SampleValue),
    /// Adds to the value.
    Add(SampleValue),
    /// Ends the series.
    End,
}

impl Point<'_> {
    /// Returns the delta of a point that is added.
    fn delta(&self) -> Option<SeriesPoint> {
        let (count, sum) = match &self.change {
            Change::Add(SampleValue::Number(sum)) => (None, *sum),
            Change::Add(SampleValue::Histogram(histogram)) => {
                (Some(histogram.count), histogram.sum.unwrap_or(f64::NAN))
            }
            Change::Add(SampleValue::Native(native)) => (Some(native.count), native.sum.unwrap_or(f64::NAN)),
            _ => return None,
        };
        Some(SeriesPoint {
            start: self.start_unix_nanos,
            time: self.time_unix_nanos,
            is_delta: true,
            count,
            sum,
        })
    }
}

impl Family {
    pub(crate) fn new(head: Head, charge: Charge) -> Self {
        Self {
            head,
            table: Mutex::default(),
            _charge: charge,
        }
    }

    /// Locks the series. A caller that locks repeatedly unlocks fairly (`unlock_fair`).
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    /// Records a point. A point older than the last one of the series changes nothing.
    pub(crate) fn record(
        &mut self,
        point: Point<'_>,
        kind: FamilyKind,
        limit: &SeriesLimit,
    ) -> Result<(), Rejection> {
        match self.find(point.labels) {
            Some(place) => self.update(place, point, kind, limit),
            None => self.begin(point, limit),
        }
    }

    /// Records the first point of a series.
    fn begin(&mut self, point: Point<'_>, limit: &SeriesLimit) -> Result<(), Rejection> {
        let mut deltas = RecentDeltas::default();
        if let Some(delta) = point.delta() {
            deltas.record(&delta);
        }
        let (Change::Set(value) | Change::Add(value)) = point.change else {
            return Ok(());
        };
        let bytes = Series::size(point.labels, &value, None, &deltas);
        let series = Series {
            labels: point.labels.into(),
            value,
            start_unix_nanos: point.start_unix_nanos,
            exemplars: None,
            target: Arc::clone(point.target),
            creation_number: limit.enter(bytes as usize, point.is_internal)?,
            time_unix_nanos: point.time_unix_nanos,
            deltas,
            seen_seconds: point.seen_seconds,
            bytes,
            source: point.source,
        };
        let series = self.insert(series);
        series.keep(point.exemplars, limit, point.is_internal);
        Ok(())
    }

    fn update(
        &mut self,
        place: u32,
        point: Point<'_>,
        kind: FamilyKind,
        limit: &SeriesLimit,
    ) -> Result<(), Rejection> {
        let Some(series) = self.places[place as usize].as_mut() else {
            return Ok(());
        };
        if series.source != point.source {
            return Err(Rejection::NameCollision);
        }
        series.seen_seconds = point.seen_seconds;
        if series.is_past(&point) {
            return Ok(());
        }
        if matches!(point.change, Change::End) {
            self.remove(place, limit);
            return Ok(());
        }
        // The sum of two values uses the memory of the larger, but for exponential buckets.
        let sum = match (&point.change, &series.value) {
            (Change::Add(delta), SampleValue::Native(_)) => {
                let mut sum = series.value.clone();
                sum.add(delta).then_some(sum)
            }
            _ => None,
        };
        if let Change::Set(value) | Change::Add(value) = &point.change {
            let value = sum.as_ref().unwrap_or(value);
            let larger = value.heap_bytes() > series.value.heap_bytes();
            if larger {
                let bytes = Series::size(&series.labels, value, series.exemplars.as_deref(), &series.deltas);
                limit.resize(series.bytes as usize, bytes as usize, point.is_internal)?;
                series.bytes = bytes;
            }
        }
        series.target = Arc::clone(point.target);
        if point.delta().is_some_and(|delta| !series.deltas.record(&delta)) {
            // It was delivered twice: a client repeats a request whose answer was lost.
            return Ok(());
        }
        match sum {
            Some(sum) => series.value = sum,
            None => series.change(point.change, point.start_unix_nanos, kind),
        }
        series.time_unix_nanos = series.time_unix_nanos.max(point.time_unix_nanos);
        series.keep(point.exemplars, limit, point.is_internal);
        Ok(())
    }

    /// Returns the number of a metric's name among those that share the family, or `None` at the limit.
    pub(crate) fn source(&mut self, name: &str) -> Option<u16> {
        let known = self.sources.iter().position(|other| **other == *name);
        let place = match known {
            Some(place) => place,
            None if self.sources.len() >= MAX_SOURCES => return None,
            None => {
                self.sources.push(name.into());
                self.sources.len() - 1
            }
        };
        u16::try_from(place).ok()
    }

    /// Removes the series without a point since `since_seconds`. Returns their number.
    pub(crate) fn expire(&mut self, since_seconds: u32, limit: &SeriesLimit) -> u64 {
        self.remove_if(limit, |series| series.seen_seconds < since_seconds)
    }

    /// Returns the slot and the arrival time of the last point of each series, in seconds since the store's
    /// creation.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = (u32, u32)> {
        let series = (0..).zip(&self.places);
        series.filter_map(|(place, series)| Some((series.as_ref()?.seen_seconds, place)))
    }

    /// Removes a series if no point arrived since `seen_seconds`. Returns whether it did.
    pub(crate) fn evict(&mut self, place: u32, seen_seconds: u32, limit: &SeriesLimit) -> bool {
        let series = self.places.get(place as usize).and_then(Option::as_ref);
        let is_silent = series.is_some_and(|series| series.seen_seconds <= seen_seconds);
        if is_silent {
            self.remove(place, limit);
        }
        is_silent
    }

    /// Removes the series of ended targets. Returns their number.
    pub(crate) fn sweep(&mut self, limit: &SeriesLimit) -> u64 {
        self.remove_if(limit, |series| series.target.has_ended())
    }

    fn remove_if(&mut self, limit: &SeriesLimit, is_over: impl Fn(&Series) -> bool) -> u64 {
        let mut removed = 0;
        for place in 0..self.places.len() {
            if self.places[place].as_ref().is_some_and(&is_over) {
                self.remove(place as u32, limit);
                removed += 1;
            }
        }
        removed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns at most `count` slots from `first` on. Used slots hold series.
    pub(crate) fn places(&self, first: usize, count: usize) -> &[Option<Series>] {
        let first = first.min(self.places.len());
        let last = first.saturating_add(count).min(self.places.len());
        &self.places[first..last]
    }

    fn find(&self, labels: &str) -> Option<u32> {
        let same = |place: &u32| self.labels_of(*place) == labels;
        self.index.find(self.hasher.hash_one(labels), same).copied()
    }

    fn labels_of(&self, place: u32) -> &str {
        self.places[place as usize]
            .as_ref()
            .map_or("", |series| &series.labels)
    }

    fn insert(&mut self, series: Series) -> &mut Series {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        let hash = self.hasher.hash_one(&*series.labels);
        self.places[place as usize] = Some(series);
        let (places, hasher) = (&self.places, &self.hasher);
        let rehash = |place: &u32| {
            let labels = places[*place as usize]
                .as_ref()
                .map_or("", |series| &*series.labels);
            hasher.hash_one(labels)
        };
        self.index.insert_unique(hash, place, rehash);
        self.places[place as usize]
            .as_mut()
            .expect("invariant: the series was put there above")
    }

    fn remove(&mut self, place: u32, limit: &SeriesLimit) {
        let Some(series) = self.places[place as usize].take() else {
            return;
        };
        let hash = self.hasher.hash_one(&*series.labels);
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == place) {
            entry.remove();
        }
        self.free.push(place);
        limit.leave(series.bytes as usize);
    }
}

impl Series {
    /// Returns whether the point is older than the last one of the series, or belongs to an earlier run. A
    /// delta point is never too old, because it is added in any order.
    fn is_past(&self, point: &Point<'_>) -> bool {
        match point.change {
            Change::Add(_) => false,
            Change::End => point.time_unix_nanos < self.time_unix_nanos,
            Change::Set(_) => {
                let start = point.start_unix_nanos;
                let of_an_earlier_run = start.is_known() && start < self.start_unix_nanos;
                point.time_unix_nanos < self.time_unix_nanos || of_an_earlier_run
            }
        }
    }

    fn change(&mut self, change: Change, start_unix_nanos: UnixNanos, kind: FamilyKind) {
        match change {
            Change::Set(value) => {
                let fell = kind != FamilyKind::Gauge && value.decreased_from(&self.value);
                if start_unix_nanos > self.start_unix_nanos {
                    self.start_unix_nanos = start_unix_nanos;
                } else if fell {
                    // A restart that the sender did not report: it counts from its last point (OTLP data
                    // model, "Resets").
                    self.start_unix_nanos = self.time_unix_nanos;
                }
                self.value = value;
            }
            Change::Add(delta) => {
                if !self.value.add(&delta) {
                    self.value = delta;
                    self.start_unix_nanos = self.time_unix_nanos;
                }
            }
            Change::End => {}
        }
    }

    /// Stores exemplars, or none if the memory limit is reached.
    fn keep(&mut self, exemplars: Vec<Exemplar>, limit: &SeriesLimit, is_internal: bool) {
        if exemplars.is_empty() {
            return;
        }
        self.exemplars.get_or_insert_default().keep(exemplars);
        let bytes =
            Self::size(&self.labels, &self.value, self.exemplars.as_deref(), &self.deltas).max(self.bytes);
        match limit.resize(self.bytes as usize, bytes as usize, is_internal) {
            Ok(()) => self.bytes = bytes,
            Err(_) => self.exemplars = None,
        }
    }

    /// Returns the size of a series: itself, its index entry, and its heap data.
    fn size(labels: &str, value: &SampleValue, exemplars: Option<&Exemplars>, deltas: &RecentDeltas) -> u32 {
        let fixed = size_of::<Option<Self>>() + 2 * size_of::<u32>();
        let exemplars = exemplars.map_or(0, Exemplars::heap_bytes);
        let bytes = fixed + labels.len() + value.heap_bytes() + exemplars + deltas.heap_bytes();
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}
