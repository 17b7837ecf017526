//! Families that do not come out of batches: the program's own telemetry, or a registry of another library.

use std::sync::Arc;

use super::{
    labels,
    store::{
        bounds::Bounds,
        family::{Head, Kind},
        value::{Histogram, Summary, Value},
    },
};

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
    pub kind: Kind,
    /// One a series; values of another kind than `kind` are left out.
    pub metrics: Vec<ExtraMetric>,
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

/// A family that is ready for the page.
pub(super) struct ReadyFamily {
    pub(super) head: Head,
    /// Label text and value.
    pub(super) series: Vec<(String, Value)>,
}

impl ExtraFamily {
    /// The family as the page takes it, or none where it has no name or no series.
    pub(super) fn ready(self) -> Option<ReadyFamily> {
        let kind = self.kind;
        let series: Vec<_> = self
            .metrics
            .into_iter()
            .filter_map(|metric| Some((label_text(metric.labels), metric.value.value(kind)?)))
            .collect();
        let head = Head {
            name: self.name,
            help: self.help,
            unit: String::new(),
            kind,
        };
        (!head.name.is_empty() && !series.is_empty()).then_some(ReadyFamily { head, series })
    }
}

impl ExtraValue {
    fn value(self, kind: Kind) -> Option<Value> {
        match (kind, self) {
            (Kind::Counter | Kind::Gauge | Kind::Untyped | Kind::Info, Self::Number(value)) => {
                Some(Value::Number(value))
            }
            (Kind::Histogram, Self::Histogram { count, sum, buckets }) => {
                Some(Value::Histogram(Box::new(histogram(count, sum, &buckets))))
            }
            (
                Kind::Summary,
                Self::Summary {
                    count,
                    sum,
                    quantiles,
                },
            ) => Some(Value::Summary(Box::new(Summary {
                count,
                sum,
                quantiles: quantiles.into(),
            }))),
            _ => None,
        }
    }
}

/// From counts up to each bound to counts of each bucket.
fn histogram(count: u64, sum: f64, buckets: &[(f64, u64)]) -> Histogram {
    let finite = buckets.iter().filter(|(bound, _)| bound.is_finite());
    let (bounds, up_to): (Vec<f64>, Vec<u64>) = finite.copied().unzip();
    let before = std::iter::once(0).chain(up_to.iter().copied());
    let each = up_to.iter().copied().chain([count]).zip(before);
    Histogram {
        bounds: Arc::new(Bounds::new(bounds)),
        buckets: each.map(|(up_to, before)| up_to.saturating_sub(before)).collect(),
        count,
        sum: Some(sum),
    }
}

fn label_text(mut labels: Vec<(String, String)>) -> String {
    labels.sort();
    labels.dedup_by(|a, b| a.0 == b.0);
    let mut text = String::new();
    let named = labels
        .iter()
        .filter(|(name, value)| !name.is_empty() && !value.is_empty());
    labels::write(
        named.map(|(name, value)| (name.as_str(), value.as_str())),
        &mut text,
    );
    text
}
