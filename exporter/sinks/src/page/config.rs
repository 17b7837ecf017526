//! The limits of the page's history.

/// The limits of what the page keeps in memory; the default is what most want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageConfig {
    /// The most runs. A new run replaces the run that has been silent for longest. Default 100.
    pub runs: usize,
    /// The most series of one run; the points of further series are counted and not shown. Default 4,000.
    pub series_per_run: usize,
    /// The most points of one series. Older points are merged into buckets that keep minimum, maximum and last value, so that
    /// spikes and NaN remain visible. Default 2,048, which take 64 KiB.
    pub points: usize,
    /// The steps of each run whose spans are kept, with their time by phase and rank. Default 120.
    pub steps: usize,
    /// The events of each run that are kept: verdicts, checkpoints, evaluations, errors. Default 500.
    pub events: usize,
    /// The most GPUs. Default 1,024.
    pub gpus: usize,
    /// The most bytes of all points, steps and events. Beyond it runs lose resolution, those that have ended or are silent first;
    /// where that is not enough, runs are forgotten in the same order.
    /// Default 128 MiB.
    pub bytes: usize,
    /// The most browsers that receive live updates. Default 64.
    pub clients: usize,
}

impl Default for PageConfig {
    fn default() -> Self {
        Self {
            runs: 100,
            series_per_run: 4_000,
            points: 2_048,
            steps: 120,
            events: 500,
            gpus: 1_024,
            bytes: 128 << 20,
            clients: 64,
        }
    }
}
