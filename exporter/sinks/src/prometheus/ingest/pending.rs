//! Points of one metric that wait for their family: so many at once that its lock is taken rarely, so few that it is not
//! held for long.

use std::ops::Range;

use super::{
    super::{
        Refusal,
        store::{
            Room,
            family::{Change, Point},
            value::Exemplar,
        },
    },
    Place,
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

    /// Puts all points into their family and gives the refusals, one a point refused.
    pub(super) fn flush(&mut self, place: &Place<'_>, room: &Room) -> Vec<Refusal> {
        let mut refused = Vec::new();
        if !self.points.is_empty() {
            let mut table = place.family.lock();
            for (labels, point) in self.points.drain(..) {
                let point = Point {
                    labels: &self.labels[labels],
                    start_unix_nanos: point.start_unix_nanos,
                    time_unix_nanos: point.time_unix_nanos,
                    source: place.source,
                    target: place.target,
                    is_of_ourselves: place.is_of_ourselves,
                    change: point.change,
                    exemplars: point.exemplars,
                };
                refused.extend(table.record(point, place.family.head.kind, room).err());
            }
        }
        self.labels.clear();
        refused
    }
}
