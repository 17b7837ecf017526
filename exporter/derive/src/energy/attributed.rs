//! Intervals whose GPU energy has already been attributed to a step, so that no joule is counted twice: neither if several
//! processes log the same step, nor if a rank begins to report steps while its GPUs counted for another rank.

use pulsetrain_otlp::UnixNanos;

use super::window::Window;

/// The most intervals of one GPU that are kept; those of consecutive steps touch and are merged.
const MAX_INTERVALS: usize = 4096;

/// Disjoint intervals in order of time; intervals that touch are merged.
#[derive(Clone, Debug, Default)]
pub(super) struct AttributedIntervals(Vec<Window>);

impl AttributedIntervals {
    /// Returns the parts of `window` that are not attributed yet.
    pub(super) fn unattributed(&self, window: Window) -> Vec<Window> {
        let first = self.0.partition_point(|interval| interval.end <= window.start);
        let (mut parts, mut start) = (Vec::new(), window.start);
        for interval in self.0[first..]
            .iter()
            .take_while(|interval| interval.start < window.end)
        {
            if interval.start > start {
                parts.push(Window::new(start, interval.start));
            }
            start = interval.end;
        }
        if start < window.end {
            parts.push(Window { start, ..window });
        }
        parts
    }

    /// Marks `window` as attributed.
    pub(super) fn record(&mut self, window: Window) {
        let first = self.0.partition_point(|interval| interval.end < window.start);
        let last = self.0.partition_point(|interval| interval.start <= window.end);
        let merged = self.0[first..last].iter().fold(window, |all, interval| Window {
            start: all.start.min(interval.start),
            end: all.end.max(interval.end),
        });
        self.0.splice(first..last, [merged]);
        let over = self.0.len().saturating_sub(MAX_INTERVALS);
        self.0.drain(..over);
    }

    /// Deletes intervals that end before `unix_nanos`.
    pub(super) fn expire(&mut self, unix_nanos: UnixNanos) {
        let expired = self.0.partition_point(|interval| interval.end < unix_nanos);
        self.0.drain(..expired);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(start: u64, end: u64) -> Window {
        Window::new(UnixNanos(start), UnixNanos(end))
    }

    #[test]
    fn unattributed_intervals_are_the_gaps_between_attributed_ones() {
        let mut intervals = AttributedIntervals::default();
        assert_eq!(intervals.unattributed(window(3, 9)), [window(3, 9)]);
        intervals.record(window(4, 5));
        intervals.record(window(7, 12));
        assert_eq!(intervals.unattributed(window(3, 9)), [window(3, 4), window(5, 7)]);
        intervals.record(window(5, 7));
        assert_eq!(intervals.unattributed(window(4, 12)), []);
        intervals.expire(UnixNanos(13));
        assert_eq!(intervals.unattributed(window(4, 5)), [window(4, 5)]);
    }

    proptest! {
        #[test]
        fn every_moment_is_attributed_once(windows in proptest::collection::vec((0_u64..60, 0_u64..20), 0..40)) {
            let (mut intervals, mut counts) = (AttributedIntervals::default(), [0_u32; 80]);
            for (start, length) in windows {
                let all = window(start, start + length);
                for part in intervals.unattributed(all) {
                    (part.start.0..part.end.0).for_each(|moment| counts[moment as usize] += 1);
                }
                intervals.record(all);
                (all.start.0..all.end.0).for_each(|moment| assert_eq!(counts[moment as usize], 1));
            }
        }
    }
}
