//! The trackers of many series.

use std::collections::HashMap;

use crate::{Increase, SeriesKey, SeriesPoint, SeriesTracker};

/// The trackers of many series, by their keys.
#[derive(Clone, Debug)]
pub struct SeriesTrackers {
    series: HashMap<SeriesKey, SeriesTracker>,
    max_series: usize,
}

impl SeriesTrackers {
    /// Returns trackers for at most `max_series` series. Each cumulative point of a further series is a first one.
    pub fn new(max_series: usize) -> Self {
        Self {
            series: HashMap::new(),
            max_series,
        }
    }

    /// Records a point of a series and returns the increase; see [`SeriesTracker::observe`].
    pub fn observe(&mut self, key: SeriesKey, point: &SeriesPoint) -> Option<Increase> {
        if let Some(tracker) = self.series.get_mut(&key) {
            return tracker.observe(point);
        }
        let mut tracker = SeriesTracker::default();
        let increase = tracker.observe(point);
        if self.series.len() < self.max_series {
            self.series.insert(key, tracker);
        }
        increase
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::UnixNanos;

    use super::*;
    use crate::IncreaseKind;

    #[test]
    fn series_beyond_the_limit_has_only_first_points() {
        let mut trackers = SeriesTrackers::new(1);
        let point = SeriesPoint {
            start: UnixNanos(1),
            time: UnixNanos(2),
            is_delta: false,
            count: None,
            sum: 5.0,
        };
        let mut kind = |name: &[u8]| {
            let increase = trackers.observe(SeriesKey::new(name), &point);
            increase.unwrap().kind
        };
        assert_eq!(
            [kind(b"a"), kind(b"a")],
            [IncreaseKind::First, IncreaseKind::Growth]
        );
        assert_eq!([kind(b"b"), kind(b"b")], [IncreaseKind::First; 2]);
    }
}
