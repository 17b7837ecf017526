//! The points of one resource at one time, which a trainer recorded together.

use pulsetrain_otlp::UnixNanos;

use super::{Phases, Values};

/// Points that share a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) time_unix_nanos: UnixNanos,
    /// `train.global_step`.
    pub(crate) number: Option<i64>,
    /// The observation of `train.step.duration` in seconds.
    pub(crate) duration_secs: Option<f64>,
    pub(crate) phases: Phases,
    pub(crate) values: Values,
    /// Whether the step histogram counts one step, so that sums cover only this record.
    pub(crate) is_first: bool,
    /// The first points of counters: index in the kept values, and total.
    pub(crate) first_sums: Vec<(usize, f64)>,
}

impl Group {
    /// Returns whether the points describe a step.
    pub(crate) fn is_step(&self) -> bool {
        self.number.is_some() || self.duration_secs.is_some()
    }

    /// Completes the group after its last point.
    pub(crate) fn complete(&mut self) {
        for (place, total) in std::mem::take(&mut self.first_sums) {
            if self.is_first {
                self.values.add(place, total);
            }
        }
    }
}

/// The groups of one resource, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: Vec<Group>,
    /// The index of the next expected point, because the points of a metric are in order of time.
    cursor: usize,
}

impl Groups {
    /// Returns the group of a time.
    pub(crate) fn at(&mut self, time_unix_nanos: UnixNanos) -> &mut Group {
        let is_here = |place: usize| {
            let group = self.groups.get(place);
            group.is_some_and(|group| group.time_unix_nanos == time_unix_nanos)
        };
        let place = [self.cursor, self.cursor + 1]
            .into_iter()
            .find(|place| is_here(*place));
        let place = place.unwrap_or_else(|| self.find_or_insert(time_unix_nanos));
        self.cursor = place;
        &mut self.groups[place]
    }

    /// Starts another metric.
    pub(crate) fn rewind(&mut self) {
        self.cursor = 0;
    }

    /// Takes the groups.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Group> {
        self.cursor = 0;
        self.groups.drain(..)
    }

    fn find_or_insert(&mut self, time_unix_nanos: UnixNanos) -> usize {
        let search = self
            .groups
            .binary_search_by_key(&time_unix_nanos, |group| group.time_unix_nanos);
        search.unwrap_or_else(|place| {
            let group = Group {
                time_unix_nanos,
                ..Group::default()
            };
            self.groups.insert(place, group);
            place
        })
    }
}
