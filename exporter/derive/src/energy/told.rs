//! The time of a GPU of which it was said what it took, so that no joule is told twice: not when several processes log the
//! same step, not when a rank begins to tell steps whose GPUs counted for another before.

use super::window::Window;

/// How many stretches are kept; steps follow one another closely, so few are apart.
const MOST: usize = 4096;

/// Stretches of time in their order, none of which touch.
#[derive(Clone, Debug, Default)]
pub(super) struct ToldTime(Vec<Window>);

impl ToldTime {
    /// What of a stretch was not told yet.
    pub(super) fn untold(&self, window: Window) -> Vec<Window> {
        let first = self.0.partition_point(|told| told.end <= window.start);
        let (mut parts, mut start) = (Vec::new(), window.start);
        for told in self.0[first..].iter().take_while(|told| told.start < window.end) {
            if told.start > start {
                parts.push(Window {
                    start,
                    end: told.start,
                });
            }
            start = told.end;
        }
        if start < window.end {
            parts.push(Window { start, ..window });
        }
        parts
    }

    /// Notes that a stretch was told.
    pub(super) fn record(&mut self, window: Window) {
        let first = self.0.partition_point(|told| told.end < window.start);
        let last = self.0.partition_point(|told| told.start <= window.end);
        let merged = self.0[first..last].iter().fold(window, |all, told| Window {
            start: all.start.min(told.start),
            end: all.end.max(told.end),
        });
        self.0.splice(first..last, [merged]);
        let over = self.0.len().saturating_sub(MOST);
        self.0.drain(..over);
    }

    /// Forgets what was before `unix_nanos`.
    pub(super) fn forget(&mut self, unix_nanos: u64) {
        let gone = self.0.partition_point(|told| told.end < unix_nanos);
        self.0.drain(..gone);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(start: u64, end: u64) -> Window {
        Window { start, end }
    }

    #[test]
    fn what_is_left_of_a_stretch_lies_between_what_was_told() {
        let mut told = ToldTime::default();
        assert_eq!(told.untold(window(3, 9)), [window(3, 9)]);
        told.record(window(4, 5));
        told.record(window(7, 12));
        assert_eq!(told.untold(window(3, 9)), [window(3, 4), window(5, 7)]);
        told.record(window(5, 7));
        assert_eq!(told.untold(window(4, 12)), []);
        told.forget(13);
        assert_eq!(told.untold(window(4, 5)), [window(4, 5)]);
    }

    proptest! {
        #[test]
        fn every_moment_is_told_by_one_at_most(windows in proptest::collection::vec((0_u64..60, 0_u64..20), 0..40)) {
            let (mut told, mut tellers) = (ToldTime::default(), [0_u32; 80]);
            for (start, length) in windows {
                let all = window(start, start + length);
                for part in told.untold(all) {
                    (part.start..part.end).for_each(|moment| tellers[moment as usize] += 1);
                }
                told.record(all);
                (all.start..all.end).for_each(|moment| assert_eq!(tellers[moment as usize], 1));
            }
        }
    }
}
