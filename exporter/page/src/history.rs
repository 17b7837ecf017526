//! The history of the page: runs, GPUs and metrics, within the limits of [`PageConfig`].

use std::collections::BTreeMap;

use super::{PageConfig, PageCounts, PageRejection, gpus::Gpu, metrics::Catalogue, run::RunHistory};

/// A run without telemetry for this time may be replaced by a new run.
const SILENT_MILLIS: i64 = 60_000;

/// The maximum number of times that a run is halved.
const MAX_THINNED: u32 = 5;

/// The history.
#[derive(Debug)]
pub(super) struct History {
    pub(super) config: PageConfig,
    pub(super) catalogue: Catalogue,
    pub(super) runs: BTreeMap<Box<str>, RunHistory>,
    /// The GPUs by host and id.
    pub(super) gpus: BTreeMap<(Box<str>, Box<str>), Gpu>,
    pub(super) counts: PageCounts,
}

impl History {
    pub(super) fn new(config: PageConfig) -> Self {
        Self {
            config,
            catalogue: Catalogue::default(),
            runs: BTreeMap::new(),
            gpus: BTreeMap::new(),
            counts: PageCounts::default(),
        }
    }

    /// Returns the run, and creates it if it is new. At the limit, a new run replaces a silent one.
    ///
    /// # Errors
    /// The limit is reached and every run reports.
    pub(super) fn run(&mut self, id: &str, now_millis: i64) -> Result<&mut RunHistory, PageRejection> {
        if !self.runs.contains_key(id)
            && self.runs.len() >= self.config.runs
            && !self.forget_silent(now_millis)
        {
            return Err(PageRejection::Runs);
        }
        Ok(self.runs.entry(id.into()).or_insert_with(|| RunHistory::new(id)))
    }

    fn forget_silent(&mut self, now_millis: i64) -> bool {
        let idle = self.runs.values().filter(|run| is_idle(run, now_millis));
        let silent = idle.min_by_key(|run| (!run.is_ended(), run.arrived_millis));
        let Some(id) = silent.map(|run| run.id.clone()) else {
            return false;
        };
        self.runs.remove(&id);
        self.counts.runs_replaced += 1;
        true
    }

    /// Adds the GPU if it is new.
    ///
    /// # Errors
    /// The limit of GPUs is reached.
    pub(super) fn add_gpu(&mut self, key: &(Box<str>, Box<str>)) -> Result<(), PageRejection> {
        if self.gpus.contains_key(key) {
            return Ok(());
        }
        if self.gpus.len() >= self.config.gpus {
            return Err(PageRejection::Gpus);
        }
        self.gpus.insert(key.clone(), Gpu::new(&key.0, &key.1));
        Ok(())
    }

    /// Reduces the memory use to the limit. Ended and silent runs lose resolution first, then reporting runs,
    /// then GPUs. Then runs are evicted.
    pub(super) fn keep_within_bytes(&mut self, now_millis: i64) {
        let of_gpus = |gpus: &BTreeMap<_, Gpu>| gpus.values().map(Gpu::bytes).sum::<usize>();
        let mut bytes = self.runs.values().map(RunHistory::bytes).sum::<usize>() + of_gpus(&self.gpus);
        while bytes > self.config.bytes {
            if let Some(run) = next_to_thin(&mut self.runs, now_millis) {
                let before = run.bytes();
                run.thin(&self.config);
                self.counts.runs_thinned += 1;
                bytes = bytes.saturating_sub(before.saturating_sub(run.bytes()));
            } else if self.gpus.values().any(Gpu::can_be_thinned) {
                let before = of_gpus(&self.gpus);
                self.gpus.values_mut().for_each(Gpu::thin);
                bytes = bytes.saturating_sub(before.saturating_sub(of_gpus(&self.gpus)));
            } else {
                // Reporting runs are evicted last, and one run always remains.
                let order =
                    |run: &&RunHistory| (!is_idle(run, now_millis), !run.is_ended(), run.arrived_millis);
                let Some(run) = self
                    .runs
                    .values()
                    .min_by_key(order)
                    .filter(|_| self.runs.len() > 1)
                else {
                    break;
                };
                let id = run.id.clone();
                bytes = bytes.saturating_sub(run.bytes());
                self.runs.remove(&id);
                self.counts.runs_replaced += 1;
            }
        }
        self.counts.bytes = bytes;
    }
}

/// Returns whether a run has ended or is silent.
fn is_idle(run: &RunHistory, now_millis: i64) -> bool {
    run.is_ended() || now_millis - run.arrived_millis > SILENT_MILLIS
}

/// Returns the next run to halve: ended runs first, then the run silent for the longest time, then reporting
/// runs in turn.
fn next_to_thin(runs: &mut BTreeMap<Box<str>, RunHistory>, now_millis: i64) -> Option<&mut RunHistory> {
    let order = |run: &RunHistory| {
        let is_reporting = !is_idle(run, now_millis);
        let turn = if is_reporting { run.thinned } else { 0 };
        (is_reporting, !run.is_ended(), turn, run.arrived_millis)
    };
    let can_be_thinned = runs.values_mut().filter(|run| run.thinned < MAX_THINNED);
    can_be_thinned.min_by_key(|run| order(run))
}
