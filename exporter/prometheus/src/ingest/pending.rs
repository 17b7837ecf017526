//! Buffers points of one metric before they are added to their family. The buffer is large enough that the
//! lock is taken rarely, and small enough that it is held briefly.

use std::ops::Range;

use pulsetrain_otlp::UnixNanos;

use super::{
    super::{
        Rejection,
        store::{
            family::{Change, Point},
            value::Exemplar,
        },
    },
    PointContext, PointReceiver,
};

/// The maximum number of points in the buffer.
const MOST: usize = 256;

/// The buffered points with their labels.
#[derive(Default)]
pub(super) struct Pending {
    labels: String,
    points: Vec<(Range<usize>, PendingPoint)>,
}

/// A point without its labels.
pub(super) struct PendingPoint {
    pub(super) start_unix_nanos: UnixNanos,
    pub(super) time_unix_nanos: UnixNanos,
    pub(super) change: Change,
    pub(super) exemplars: Vec<Exemplar>,
}

impl Pending {
    /// Adds a point. Returns whether the buffer is full.
    pub(super) fn push(&mut self, labels: &str, point: PendingPoint) -> bool {
        let start = self.labels.len();
        self.labels.push_str(labels);
        self.points.push((start..self.labels.len(), point));
        self.points.len() >= MOST
    }

    /// Passes all points to `receiver`. Returns one rejection for each rejected point.
    pub(super) fn flush(
        &mut self,
        place: &PointContext<'_>,
        receiver: &mut impl PointReceiver,
    ) -> Vec<Rejection> {
        let mut refused = Vec::new();
        if !self.points.is_empty() {
            let labels = &self.labels;
            let points = self.points.drain(..).map(|(range, point)| Point {
                labels: &labels[range],
                start_unix_nanos: point.start_unix_nanos,
                time_unix_nanos: point.time_unix_nanos,
                seen_seconds: place.seen_seconds,
                source: place.source,
                target: place.target,
                is_internal: place.is_internal,
                change: point.change,
                exemplars: point.exemplars,
            });
            refused = receiver.record(place, points);
        }
        self.labels.clear();
        refused
    }
}
