//! A distribution that a writer has sorted into buckets of its own.

use pulsetrain_otlp::write::HistogramParts;

/// Counts by bucket as OTLP has them: bucket `i` ends at bound `i`, and the last one is open.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution {
    pub(crate) bounds: Vec<f64>,
    pub(crate) bucket_counts: Vec<u64>,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// NaN where the writer does not say it.
    pub(crate) sum: f64,
}

impl Distribution {
    /// Counts between neighbouring edges, one fewer than those; nothing is below the first edge or above the last.
    pub(crate) fn between(edges: Vec<f64>, counts: &[f64]) -> Self {
        let first = counts.iter().position(|count| *count > 0.0);
        let last = counts.iter().rposition(|count| *count > 0.0);
        let edge = |place: Option<usize>| place.and_then(|place| edges.get(place)).copied();
        let inner = counts.iter().map(|count| count.round() as u64);
        Self {
            bucket_counts: std::iter::once(0).chain(inner).chain([0]).collect(),
            min: edge(first).unwrap_or_default(),
            max: edge(last.map(|last| last + 1)).unwrap_or_default(),
            sum: f64::NAN,
            bounds: edges,
        }
    }

    /// The contents as they leave; nothing if they are no histogram of OTLP: bounds that do not grow, or not one bucket
    /// more than there are bounds.
    pub(super) fn parts(&self) -> Option<HistogramParts<'_>> {
        let grows = self.bounds.is_sorted_by(|one, next| one < next);
        let is_complete = self.bucket_counts.len() == self.bounds.len() + 1;
        (grows && is_complete).then(|| HistogramParts {
            count: self
                .bucket_counts
                .iter()
                .fold(0, |sum, count| sum.saturating_add(*count)),
            sum: self.sum,
            min: self.min,
            max: self.max,
            bucket_counts: &self.bucket_counts,
        })
    }
}
