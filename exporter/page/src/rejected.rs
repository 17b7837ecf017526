//! Items that the page does not show: beyond a limit, late, or without a value.

use pulsetrain_run::MAX_NAME_BYTES;

use super::PageConfig;

/// The reason why the page does not show an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageRejection {
    /// The run is beyond [`PageConfig::runs`].
    Runs,
    /// The rank is beyond the ranks of one run.
    Ranks,
    /// The GPU is beyond [`PageConfig::gpus`].
    Gpus,
    /// The series is beyond [`PageConfig::series_per_run`].
    SeriesOfRun,
    /// The series is beyond the series of one GPU.
    SeriesOfGpu,
    /// The metric has no name, a long one or a long unit, or is beyond the metrics of the page.
    Metrics,
    /// The point is older than the newest point of its series.
    Late,
    /// The point has no value: a number that is absent, or a histogram without a sum.
    NoValue,
}

/// The number of items by [`PageRejection`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRejections([u64; PageRejection::ALL.len()]);

/// The maximum number of ranks of one run.
pub(super) const MAX_RANKS: usize = 4_096;

/// The maximum number of series of one GPU.
pub(super) const MAX_GPU_SERIES: usize = 400;

/// The maximum number of metrics.
pub(super) const MAX_METRICS: usize = 20_000;

impl PageRejection {
    const ALL: [Self; 8] = [
        Self::Runs,
        Self::Ranks,
        Self::Gpus,
        Self::SeriesOfRun,
        Self::SeriesOfGpu,
        Self::Metrics,
        Self::Late,
        Self::NoValue,
    ];

    /// Returns the reason with its limit, and the name of its setting in [`PageConfig`].
    pub fn describe(self, config: &PageConfig) -> String {
        match self {
            Self::Runs => format!("more than {} runs (limit `runs`)", config.runs),
            Self::Ranks => format!("more than {MAX_RANKS} ranks in a run (fixed limit)"),
            Self::Gpus => format!("more than {} GPUs (limit `gpus`)", config.gpus),
            Self::SeriesOfRun => format!(
                "more than {} series in a run (limit `series_per_run`)",
                config.series_per_run
            ),
            Self::SeriesOfGpu => format!("more than {MAX_GPU_SERIES} series of a GPU (fixed limit)"),
            Self::Metrics => {
                format!(
                    "no metric name, a name or unit over {MAX_NAME_BYTES} bytes, or more than {MAX_METRICS} metrics (fixed limit)"
                )
            }
            Self::Late => "older than the newest point of their series".to_owned(),
            Self::NoValue => "no value: an absent number, or a histogram without a sum".to_owned(),
        }
    }
}

impl PageRejections {
    pub(super) fn count(&mut self, rejection: PageRejection) {
        self.0[rejection as usize] += 1;
    }

    /// Returns the number of items with a reason.
    pub fn get(&self, rejection: PageRejection) -> u64 {
        self.0[rejection as usize]
    }

    /// Returns the number of all items.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the reasons with items, and their numbers.
    pub fn by_reason(&self) -> impl Iterator<Item = (PageRejection, u64)> {
        let all = PageRejection::ALL.map(|rejection| (rejection, self.get(rejection)));
        all.into_iter().filter(|(_, items)| *items > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rejection_reason_has_its_own_counter() {
        let mut refused = PageRejections::default();
        for (place, rejection) in PageRejection::ALL.into_iter().enumerate() {
            assert_eq!(rejection as usize, place);
            (0..=place).for_each(|_| refused.count(rejection));
        }
        let counts: Vec<u64> = refused.by_reason().map(|(_, items)| items).collect();
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(refused.total(), 36);
    }
}
