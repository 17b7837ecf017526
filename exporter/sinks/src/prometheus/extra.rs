//! Families that do not come out of batches: the program's own telemetry, or a registry of another library.

/// Something that has families of its own for the page.
pub trait ExtraFamilies: Send + Sync + 'static {
    /// The families as they are now; asked for once a scrape, before the first byte is written.
    ///
    /// A family whose name is on the page already is left out.
    fn families(&self) -> Vec<ExtraFamily>;
}

/// A metric with its series, under the name that it has in Prometheus.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraFamily {
    /// The name: of a counter with `_total`, of a histogram without `_bucket`.
    pub name: String,
    /// What it measures; may be empty.
    pub help: String,
    /// How its values behave.
    pub kind: ExtraKind,
    /// One a series; values of another kind than `kind` are left out.
    pub metrics: Vec<ExtraMetric>,
}

/// How the values of a family behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraKind {
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
}

/// One series of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraMetric {
    /// The labels; values may be any text.
    pub labels: Vec<(String, String)>,
    /// What it is now.
    pub value: ExtraValue,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtraValue {
    /// Of a counter, a gauge or an untyped family.
    Number(f64),
    /// Of a histogram.
    Histogram {
        /// The number of observations.
        count: u64,
        /// Their sum.
        sum: f64,
        /// Upper bound and the number of observations up to it, in rising order; the last bucket may be left out.
        buckets: Vec<(f64, u64)>,
    },
    /// Of a summary.
    Summary {
        /// The number of observations.
        count: u64,
        /// Their sum.
        sum: f64,
        /// Quantile and value.
        quantiles: Vec<(f64, f64)>,
    },
}
