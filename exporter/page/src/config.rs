//! The limits of the page's history.

/// The limits of the page's history in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageConfig {
    /// The maximum number of runs. A new run replaces the run with the oldest telemetry. Default 100.
    pub runs: usize,
    /// The maximum number of series of one run. Points of further series are counted and not shown. Default
    /// 4,000.
    pub series_per_run: usize,
    /// The maximum number of points of one series. Older points are merged into buckets that keep minimum,
    /// maximum and last value, so that spikes and NaN remain visible. Default 2,048, which use 64 KiB.
    pub points: usize,
    /// The number of steps of each run whose spans are kept, with their time by phase and rank. Default 120.
    pub steps: usize,
    /// The number of events of each run that are kept: verdicts, checkpoints, evaluations, errors. Default
    /// 500.
    pub events: usize,
    /// The maximum number of GPUs. Default 1,024.
    pub gpus: usize,
    /// The maximum size of all points, steps and events in bytes. Beyond it runs lose resolution, ended and
    /// silent runs first. If that is not enough, runs are evicted in the same order. Default 128 MiB.
    pub bytes: usize,
    /// The maximum number of browsers that receive live updates. Default 64.
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
