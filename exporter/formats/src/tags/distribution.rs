//! A histogram with the bucket bounds of its writer.

use pulsetrain_otlp::write::HistogramParts;

/// Bucket counts as in OTLP: bucket `i` ends at bound `i`, and the last one is open.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution {
    pub(crate) bounds: Vec<f64>,
    pub(crate) bucket_counts: Vec<u64>,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// NaN if the writer does not report the sum.
    pub(crate) sum: f64,
}

impl Distribution {
    /// Creates a distribution from counts between neighbouring edges, one fewer than the edges. Nothing is below the first edge
    /// or above the last.
    pub(crate) fn between(edges: Vec<f64>, counts: &[f64]) -> Self {
        let first = counts.iter().position(|count| *count > 0.0);
        let last = counts.iter().rposition(|count| *count > 0.0);
        let edge = |index: Option<usize>| index.and_then(|index| edges.get(index)).copied();
        let inner = counts.iter().map(|count| count.round() as u64);
        Self {
            bucket_counts: std::iter::once(0).chain(inner).chain([0]).collect(),
            min: edge(first).unwrap_or_default(),
            max: edge(last.map(|last| last + 1)).unwrap_or_default(),
            sum: f64::NAN,
            bounds: edges,
        }
    }

    /// Returns the OTLP histogram. `None` if the bounds are not increasing or their number does not fit the counts.
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
