//! Points of one metric that wait for their family: so many at once that its lock is taken rarely, so few that it is not
//! held for long.

use std::ops::Range;

use super::{
    super::{
        Rejection,
        store::{
            family::{Change, Point},
            value::Exemplar,
        },
    },
    Place, PointReceiver,
};

/// The most points that go into a family at once.
const MOST: usize = 256;

/// The points that wait, with their labels.
#[derive(Default)]
pub(super) struct Pending {
    labels: String,
    points: Vec<(Range<usize>, PendingPoint)>,
}

/// A point without its labels.
pub(super) struct PendingPoint {
    pub(super) start_unix_nanos: u64,
    pub(super) time_unix_nanos: u64,
    pub(super) change: Change,
    pub(super) exemplars: Vec<Exemplar>,
}

impl Pending {
    /// Adds a point; whether it is time to flush.
    pub(super) fn push(&mut self, labels: &str, point: PendingPoint) -> bool {
        let start = self.labels.len();
        self.labels.push_str(labels);
        self.points.push((start..self.labels.len(), point));
        self.points.len() >= MOST
    }

    /// Hands all points to `receiver` and returns its refusals, one a point refused.
    pub(super) fn flush(&mut self, place: &Place<'_>, receiver: &mut impl PointReceiver) -> Vec<Rejection> {
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
                is_of_ourselves: place.is_of_ourselves,
                change: point.change,
                exemplars: point.exemplars,
            });
            refused = receiver.record(place, points);
        }
        self.labels.clear();
        refused
    }
}
