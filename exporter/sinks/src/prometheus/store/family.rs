//! A family: the series of one name, each with its last value, behind a lock of their own.
//!
//! A scrape takes the lock for a few hundred series at a time, so a point waits for microseconds at most.

use std::{hash::BuildHasher, sync::Arc};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::{Mutex, MutexGuard};

use super::{
    Rejection, SeriesLimit,
    budget::Charge,
    target::Target,
    value::{Exemplar, Exemplars, Value},
};

/// The most metrics that share a family: each is looked for in a list.
const MOST_SOURCES: usize = 64;

/// How the values of a family behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Is what it was last set to.
    Gauge,
    /// Is of no known kind.
    Untyped,
    /// Counts observations in buckets.
    Histogram,
    /// Has quantiles.
    Summary,
    /// Describes something by its labels; the value is 1.
    Info,
}

/// The header of a family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    /// The translated name: of a counter with `_total`, of a histogram without `_bucket`.
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) unit: String,
    pub(crate) kind: Kind,
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
    pub(crate) value: Value,
    pub(crate) start_unix_nanos: u64,
    pub(crate) exemplars: Option<Box<Exemplars>>,
    pub(crate) target: Arc<Target>,
    /// Which birth of the store it was: a scrape leaves out what was born after it began.
    pub(crate) birth: u64,
    time_unix_nanos: u64,
    /// When a point arrived last, in seconds since the store began.
    seen_seconds: u32,
    /// What it takes of the budget.
    bytes: u32,
    source: u16,
}

/// The series of a family: places that stay where they are, so that a scrape can go on where it stopped.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: Vec<Option<Series>>,
    free: Vec<u32>,
    /// Places by the hash of their labels.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The names, before translation, of the metrics that share the family.
    sources: Vec<Box<str>>,
}

/// A point for one series.
#[derive(Debug)]
pub(crate) struct Point<'a> {
    pub(crate) labels: &'a str,
    pub(crate) start_unix_nanos: u64,
    pub(crate) time_unix_nanos: u64,
    /// When it arrived, in seconds since the store began.
    pub(crate) seen_seconds: u32,
    pub(crate) source: u16,
    pub(crate) target: &'a Arc<Target>,
    pub(crate) is_of_ourselves: bool,
    pub(crate) change: Change,
    pub(crate) exemplars: Vec<Exemplar>,
}

/// What a point does to its series.
#[derive(Debug)]
pub(crate) enum Change {
    /// It is now this.
    Set(Value),
    /// So much more was counted.
    Add(Value),
    /// It has ended.
    End,
}

impl Family {
    pub(crate) fn new(head: Head, charge: Charge) -> Self {
        Self {
            head,
            table: Mutex::default(),
            _charge: charge,
        }
    }

    /// The series. Whoever takes the lock again and again lets it go fairly (`unlock_fair`).
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    /// Takes a point in. One that is older than what the series has changes nothing.
    pub(crate) fn record(
        &mut self,
        point: Point<'_>,
        kind: Kind,
        limit: &SeriesLimit,
    ) -> Result<(), Rejection> {
        match self.find(point.labels) {
            Some(place) => self.update(place, point, kind, limit),
            None => self.begin(point, limit),
        }
    }

    /// The first point of a series.
    fn begin(&mut self, point: Point<'_>, limit: &SeriesLimit) -> Result<(), Rejection> {
        let (Change::Set(value) | Change::Add(value)) = point.change else {
            return Ok(());
        };
        let bytes = Series::size(point.labels, &value, None);
        let series = Series {
            labels: point.labels.into(),
            value,
            start_unix_nanos: point.start_unix_nanos,
            exemplars: None,
            target: Arc::clone(point.target),
            birth: limit.enter(bytes as usize, point.is_of_ourselves)?,
            time_unix_nanos: point.time_unix_nanos,
            seen_seconds: point.seen_seconds,
            bytes,
            source: point.source,
        };
        let series = self.insert(series);
        series.keep(point.exemplars, limit, point.is_of_ourselves);
        Ok(())
    }

    fn update(
        &mut self,
        place: u32,
        point: Point<'_>,
        kind: Kind,
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
        if let Change::Set(value) | Change::Add(value) = &point.change {
            // The value that is there and the new one may be added up, which does not take more than the larger.
            let larger = value.heap_bytes() > series.value.heap_bytes();
            if larger {
                let bytes = Series::size(&series.labels, value, series.exemplars.as_deref());
                limit.resize(series.bytes as usize, bytes as usize, point.is_of_ourselves)?;
                series.bytes = bytes;
            }
        }
        series.target = Arc::clone(point.target);
        series.change(point.change, point.start_unix_nanos, kind);
        series.time_unix_nanos = series.time_unix_nanos.max(point.time_unix_nanos);
        series.keep(point.exemplars, limit, point.is_of_ourselves);
        Ok(())
    }

    /// The number of a metric's name among those that share the family; none where there are too many.
    pub(crate) fn source(&mut self, name: &str) -> Option<u16> {
        let known = self.sources.iter().position(|other| **other == *name);
        let place = match known {
            Some(place) => place,
            None if self.sources.len() >= MOST_SOURCES => return None,
            None => {
                self.sources.push(name.into());
                self.sources.len() - 1
            }
        };
        u16::try_from(place).ok()
    }

    /// Takes out the series without a point since `since_seconds`; returns how many.
    pub(crate) fn expire(&mut self, since_seconds: u32, limit: &SeriesLimit) -> u64 {
        self.remove_if(limit, |series| series.seen_seconds < since_seconds)
    }

    /// Returns when a point of each series arrived last, in seconds since the store began, with its place.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = (u32, u32)> {
        let series = (0..).zip(&self.places);
        series.filter_map(|(place, series)| Some((series.as_ref()?.seen_seconds, place)))
    }

    /// Takes out a series, if no point of it arrived since `seen_seconds`; returns whether it did.
    pub(crate) fn evict(&mut self, place: u32, seen_seconds: u32, limit: &SeriesLimit) -> bool {
        let series = self.places.get(place as usize).and_then(Option::as_ref);
        let is_silent = series.is_some_and(|series| series.seen_seconds <= seen_seconds);
        if is_silent {
            self.remove(place, limit);
        }
        is_silent
    }

    /// Removes the series of targets that have ended; returns how many.
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

    /// The places from `first` on, at most `count`; the places in use are series.
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
    /// Whether the point is older than what the series has, or of a run that was over when the series' run began.
    /// What was counted since another point is never too old: it is added in any order.
    fn is_past(&self, point: &Point<'_>) -> bool {
        match point.change {
            Change::Add(_) => false,
            Change::End => point.time_unix_nanos < self.time_unix_nanos,
            Change::Set(_) => {
                let of_an_earlier_run = (1..self.start_unix_nanos).contains(&point.start_unix_nanos);
                point.time_unix_nanos < self.time_unix_nanos || of_an_earlier_run
            }
        }
    }

    fn change(&mut self, change: Change, start_unix_nanos: u64, kind: Kind) {
        match change {
            Change::Set(value) => {
                let fell = kind != Kind::Gauge && value.fell_below(&self.value);
                if start_unix_nanos > self.start_unix_nanos {
                    self.start_unix_nanos = start_unix_nanos;
                } else if fell {
                    // A restart that the sender did not report: it counts from its last point (OTLP data model, "Resets").
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

    /// Keeps exemplars, or none at all if there is no memory for them.
    fn keep(&mut self, exemplars: Vec<Exemplar>, limit: &SeriesLimit, is_of_ourselves: bool) {
        if exemplars.is_empty() {
            return;
        }
        self.exemplars.get_or_insert_default().keep(exemplars);
        let bytes = Self::size(&self.labels, &self.value, self.exemplars.as_deref()).max(self.bytes);
        match limit.resize(self.bytes as usize, bytes as usize, is_of_ourselves) {
            Ok(()) => self.bytes = bytes,
            Err(_) => self.exemplars = None,
        }
    }

    /// Returns what a series takes: itself, its place in the index, and what it points to.
    fn size(labels: &str, value: &Value, exemplars: Option<&Exemplars>) -> u32 {
        let fixed = size_of::<Option<Self>>() + 2 * size_of::<u32>();
        let exemplars = exemplars.map_or(0, Exemplars::heap_bytes);
        let bytes = fixed + labels.len() + value.heap_bytes() + exemplars;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}
