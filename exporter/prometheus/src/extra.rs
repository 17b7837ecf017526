//! Families of other origin than batches: the program's own telemetry, or a registry of another library.

use std::sync::Arc;

use super::{
    labels,
    store::{
        bounds::Bounds,
        family::{FamilyKind, Head},
        value::{Histogram, SampleValue, Summary},
    },
};

/// A source of additional families for the page.
pub trait ExtraFamilies: Send + Sync + 'static {
    /// Returns the current families. It is called once a scrape, before the first byte is written.
    ///
    /// A family with a name that is already on the page is left out.
    fn families(&self) -> Vec<ExtraFamily>;
}

/// A metric with its series, under its Prometheus name.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraFamily {
    /// The name: with `_total` for a counter, without `_bucket` for a histogram.
    pub name: String,
    /// The help text, which may be empty.
    pub help: String,
    /// The type of its values.
    pub kind: FamilyKind,
    /// The series. Values of another type than `kind` are left out.
    pub metrics: Vec<ExtraMetric>,
}

/// One series of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtraMetric {
    /// The labels. Values may be any text.
    pub labels: Vec<(String, String)>,
    /// The current value.
    pub value: ExtraValue,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtraValue {
    /// The value of a counter, a gauge or an untyped family.
    Number(f64),
    /// The value of a histogram.
    Histogram {
        /// The number of observations.
        count: u64,
        /// Their sum.
        sum: f64,
        /// Upper bounds with cumulative counts, in rising order. The last bucket may be missing.
        buckets: Vec<(f64, u64)>,
    },
    /// The value of a summary.
    Summary {
        /// The number of observations.
        count: u64,
        /// Their sum.
        sum: f64,
        /// Quantiles and values.
        quantiles: Vec<(f64, f64)>,
    },
}

/// A validated family.
pub(super) struct ReadyFamily {
    pub(super) head: Head,
    /// Label text and value of each series.
    pub(super) series: Vec<(String, SampleValue)>,
}

impl ExtraFamily {
    /// Validates the family. Returns `None` without a name or series.
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
    fn value(self, kind: FamilyKind) -> Option<SampleValue> {
        match (kind, self) {
            (
                FamilyKind::Counter | FamilyKind::Gauge | FamilyKind::Untyped | FamilyKind::Info,
                Self::Number(value),
            ) => Some(SampleValue::Number(value)),
            (FamilyKind::Histogram, Self::Histogram { count, sum, buckets }) => {
                Some(SampleValue::Histogram(Box::new(histogram(count, sum, &buckets))))
            }
            (
                FamilyKind::Summary,
                Self::Summary {
                    count,
                    sum,
                    quantiles,
                },
            ) => Some(SampleValue::Summary(Box::new(Summary {
                count,
                sum,
                quantiles: quantiles.into(),
            }))),
            _ => None,
        }
    }
}

/// Converts cumulative counts to counts of each bucket.
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
