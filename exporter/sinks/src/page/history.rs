//! Everything that the page knows: runs, GPUs, metrics, within the limits of [`PageConfig`].

use std::collections::BTreeMap;

use super::{PageConfig, PageCounts, PageRejection, gpus::Gpu, metrics::Catalogue, run::RunHistory};

/// A run that sent nothing for so long makes room for a new one.
const SILENT_MILLIS: i64 = 60_000;

/// A run is thinned no further than this.
const MOST_THINNED: u32 = 5;

/// The history.
#[derive(Debug)]
pub(super) struct History {
    pub(super) config: PageConfig,
    pub(super) catalogue: Catalogue,
    pub(super) runs: BTreeMap<Box<str>, RunHistory>,
    /// By host and id.
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

    /// Returns the run, which is new if it was not seen; a new run replaces a silent one where there are too many.
    ///
    /// # Errors
    /// Every run reports, and there are as many as allowed.
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

    /// Adds the GPU if it was not seen.
    ///
    /// # Errors
    /// There are as many GPUs as allowed.
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

    /// Keeps everything within the bytes that are allowed. In this order: runs that have ended or are silent lose resolution, those
    /// that report do, GPUs do, and then runs are forgotten.
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
                // The run that reports is the last one to go, and one always remains.
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

/// Whether a run has ended or is silent.
fn is_idle(run: &RunHistory, now_millis: i64) -> bool {
    run.is_ended() || now_millis - run.arrived_millis > SILENT_MILLIS
}

/// The run that loses resolution next: those that have ended first, then the one that is silent for longest, then those that report
/// by turns.
fn next_to_thin(runs: &mut BTreeMap<Box<str>, RunHistory>, now_millis: i64) -> Option<&mut RunHistory> {
    let order = |run: &RunHistory| {
        let is_reporting = !is_idle(run, now_millis);
        let turn = if is_reporting { run.thinned } else { 0 };
        (is_reporting, !run.is_ended(), turn, run.arrived_millis)
    };
    let can_be_thinned = runs.values_mut().filter(|run| run.thinned < MOST_THINNED);
    can_be_thinned.min_by_key(|run| order(run))
}
