//! Who tells steps, and by what: spans, or points of `train.step.duration` where a source writes no spans.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pulsetrain_pipeline::clock::Instant;

use crate::origin::Origin;

/// How many ranks are kept in mind at most.
const MOST: usize = 16_384;

/// The ranks that tell steps.
#[derive(Debug, Default)]
pub(super) struct Tellers(BTreeMap<Key, Teller>);

/// A rank of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    run: Arc<str>,
    rank: i64,
}

#[derive(Debug)]
struct Teller {
    host: Option<Arc<str>>,
    told_by: ToldBy,
    heard: Instant,
    /// Count and sum of the last point.
    last_point: Option<(u64, f64)>,
}

/// By what a rank tells its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldBy {
    /// By spans. Its points say the same again.
    Spans,
    /// By points, since then; spans may still come.
    Points(Instant),
}

impl Tellers {
    /// Notes that a rank told a step by a span.
    pub(super) fn note_span(&mut self, origin: &Origin, now: Instant) {
        if let Some(teller) = self.teller(origin, now, ToldBy::Spans) {
            teller.told_by = ToldBy::Spans;
        }
    }

    /// Notes a point of a rank's step durations, and gives the duration of the step where it is of a single new one.
    pub(super) fn note_point(&mut self, origin: &Origin, now: Instant, count: u64, sum: f64) -> Option<f64> {
        let teller = self.teller(origin, now, ToldBy::Points(now))?;
        let last = teller.last_point.replace((count, sum));
        let (last_count, last_sum) = match last {
            Some((last_count, _)) if last_count > count => (0, 0.0),
            Some(last) => last,
            // What came before the first point that is seen is not known.
            None => (0, 0.0),
        };
        let duration = sum - last_sum;
        (count == last_count + 1 && duration >= 0.0 && duration.is_finite()).then_some(duration)
    }

    /// By what a rank tells its steps.
    pub(super) fn told_by(&self, origin: &Origin) -> Option<ToldBy> {
        self.0.get(&Key::of(origin)?).map(|teller| teller.told_by)
    }

    /// The lowest rank of the run that tells steps on the host of `origin`.
    pub(super) fn first_rank(&self, origin: &Origin) -> Option<i64> {
        let run = origin.run.as_ref()?;
        self.of_run(run)
            .find(|(_, teller)| is_beside(teller, origin))
            .map(|(key, _)| key.rank)
    }

    /// Whether a rank of the run tells steps.
    pub(super) fn tells(&self, origin: &Origin, rank: i64) -> bool {
        let Some(run) = &origin.run else { return false };
        self.0.contains_key(&Key {
            run: Arc::clone(run),
            rank,
        })
    }

    /// Whether no other run tells steps on the host of `origin`.
    pub(super) fn is_only_run(&self, origin: &Origin) -> bool {
        self.0
            .iter()
            .all(|(key, teller)| Some(&key.run) == origin.run.as_ref() || !is_beside(teller, origin))
    }

    /// Forgets those of whom nothing was heard for `silence`.
    pub(super) fn forget(&mut self, now: Instant, silence: Duration) {
        self.0
            .retain(|_, teller| now.saturating_duration_since(teller.heard) <= silence);
    }

    fn teller(&mut self, origin: &Origin, now: Instant, told_by: ToldBy) -> Option<&mut Teller> {
        let key = Key::of(origin)?;
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            return None;
        }
        let teller = self.0.entry(key).or_insert_with(|| Teller {
            host: origin.host.clone(),
            told_by,
            heard: now,
            last_point: None,
        });
        teller.heard = now;
        Some(teller)
    }

    fn of_run<'a>(&'a self, run: &Arc<str>) -> impl Iterator<Item = (&'a Key, &'a Teller)> {
        let run = Arc::clone(run);
        let first = Key {
            run: Arc::clone(&run),
            rank: i64::MIN,
        };
        self.0.range(first..).take_while(move |(key, _)| key.run == run)
    }
}

impl Key {
    fn of(origin: &Origin) -> Option<Self> {
        Some(Self {
            run: origin.run.clone()?,
            rank: origin.rank.unwrap_or_default(),
        })
    }
}

/// Whether a rank may be on the host of `origin`.
fn is_beside(teller: &Teller, origin: &Origin) -> bool {
    match (&teller.host, &origin.host) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}
