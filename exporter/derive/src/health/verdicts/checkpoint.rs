//! `checkpoint_slow`: a checkpoint that takes far longer than the earlier ones.
//!
//! The condition is a save (the longest of its ranks) of over 4 times the median of the 16 saves before it,
//! and at least a second longer. It is established at the end of the save, and resolved by the next save that
//! is not slow. The first save of a run has no reference.
//!
//! The ranks of a save share its step or, if the spans have no step, its time. Recordings may contain one
//! rank after the other, so a save is inserted by its time.

use std::collections::VecDeque;

use super::super::{
    UnixNanos,
    sample::median,
    verdict::{Board, Span, Subject, VerdictKind},
};

const SLOW: f64 = 4.0;
const MIN_EXCESS_SECS: f64 = 1.0;
const WINDOW: usize = 16;
/// The maximum number of saves.
const MAX_SAVES: usize = 1024;

/// Watches the checkpoints of a run.
#[derive(Debug, Default)]
pub(crate) struct SlowCheckpoint {
    /// The saves by their start.
    saves: VecDeque<Save>,
}

/// A save, over its ranks.
#[derive(Clone, Copy, Debug)]
struct Save {
    step: Option<i64>,
    start: UnixNanos,
    end: UnixNanos,
    /// The longest duration of a rank, in seconds.
    longest: f64,
    is_slow: bool,
}

impl SlowCheckpoint {
    /// Adds the save of a rank.
    pub(crate) fn on_save(&mut self, step: Option<i64>, start: UnixNanos, end: UnixNanos, board: &mut Board) {
        let secs = end.secs_since(start);
        let Some(place) = self.find_or_insert(step, start, end) else {
            return;
        };
        let usual = self.usual_before(place);
        let Some(save) = self.saves.get_mut(place) else {
            return;
        };
        save.longest = save.longest.max(secs);
        save.end = save.end.max(end);
        let Some(usual) = usual else { return };
        if secs > SLOW * usual && secs > usual + MIN_EXCESS_SECS {
            // Another rank of a save that has its verdict already, which may have ended.
            if !std::mem::replace(&mut save.is_slow, true) {
                board.open(VerdictKind::CheckpointSlow, Subject::Run, end, || {
                    reason(step, secs, usual)
                });
            }
        } else if save.longest <= SLOW * usual {
            board.resolve(VerdictKind::CheckpointSlow, &Subject::Run, end);
        }
    }

    /// Returns the usual duration of a save in seconds.
    pub(crate) fn usual_secs(&self) -> Option<f64> {
        let newest = self.saves.len().checked_sub(1)?;
        let only = self.saves.back().map(|save| save.longest);
        self.usual_before(newest).or(only)
    }

    /// Returns the index of a save, or `None` for one older than all stored ones.
    fn find_or_insert(&mut self, step: Option<i64>, start: UnixNanos, end: UnixNanos) -> Option<usize> {
        let newest = self.saves.len().wrapping_sub(1);
        let is_same = |(place, save): (usize, &Save)| {
            let overlaps = start <= save.end && save.start <= end;
            match (step, save.step) {
                // Ranks may save one after the other.
                (Some(step), Some(of)) => step == of && (overlaps || place == newest),
                _ => overlaps,
            }
        };
        let mut saves = self.saves.iter().enumerate().rev();
        if let Some((place, _)) = saves.find(|(place, save)| is_same((*place, save))) {
            return Some(place);
        }
        let mut place = self.saves.partition_point(|save| save.start <= start);
        if self.saves.len() >= MAX_SAVES {
            place = place.checked_sub(1)?;
            self.saves.pop_front();
        }
        let save = Save {
            step,
            start,
            end,
            longest: 0.0,
            is_slow: false,
        };
        self.saves.insert(place, save);
        Some(place)
    }

    /// Returns the median of the saves before one.
    fn usual_before(&self, place: usize) -> Option<f64> {
        let before = self.saves.range(place.saturating_sub(WINDOW)..place);
        median(before.map(|save| save.longest))
    }
}

fn reason(step: Option<i64>, secs: f64, usual: f64) -> String {
    let of_step = step.map(|step| format!(" of step {step}")).unwrap_or_default();
    format!(
        "The checkpoint{of_step} took {}, {:.0} times the usual {}.",
        Span(secs),
        secs / usual,
        Span(usual)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn save_far_above_the_median_is_slow_until_the_next() {
        let (mut saves, mut board) = (SlowCheckpoint::default(), Board::default());
        for (number, secs) in [5.0, 6.0, 9.0, 5.0, 50.0, 5.5, 4.0].into_iter().enumerate() {
            let start = UnixNanos(number as u64 * 1_000_000_000_000);
            // Two ranks save, one of them instantly.
            let end = UnixNanos(start.0 + (secs * 1e9) as u64);
            saves.on_save(Some(number as i64), start, end, &mut board);
            saves.on_save(Some(number as i64), start, UnixNanos(start.0 + 1), &mut board);
        }
        let changes = board.take_changes();
        let states: Vec<(bool, u64)> = changes
            .iter()
            .map(|change| (change.is_open, change.time.0 / 1_000_000_000_000))
            .collect();
        assert_eq!(states, [(true, 4), (false, 5)]);
        assert_eq!(
            changes[0].reason,
            "The checkpoint of step 4 took 50 s, 9 times the usual 5.50 s."
        );
    }

    /// The saves of each rank arrive one rank after the other, every 100 s. The save at 400 s takes 50 s on
    /// rank 1.
    #[test]
    fn sequentially_imported_ranks_share_one_checkpoint_verdict() {
        for with_steps in [true, false] {
            let (mut saves, mut board) = (SlowCheckpoint::default(), Board::default());
            for rank in 0..4 {
                for number in 0..8 {
                    let secs = match (rank, number) {
                        (0, _) => 0.01,
                        (1, 4) => 50.0,
                        _ => 5.0,
                    };
                    let start = UnixNanos(number * 100_000_000_000);
                    let end = UnixNanos(start.0 + (secs * 1e9) as u64);
                    let step = with_steps.then_some(number as i64);
                    saves.on_save(step, start, end, &mut board);
                }
            }
            let changes = board.take_changes();
            let states: Vec<(bool, u64)> = changes
                .iter()
                .map(|change| (change.is_open, change.time.0 / 1_000_000_000))
                .collect();
            assert_eq!(states, [(true, 450), (false, 505)], "{with_steps}");
            assert!(
                changes[0].reason.ends_with("10 times the usual 5.00 s."),
                "{changes:?}"
            );
        }
    }

    #[test]
    fn number_of_remembered_saves_is_limited() {
        let (mut saves, mut board) = (SlowCheckpoint::default(), Board::default());
        for number in 0..3 * MAX_SAVES as u64 {
            let start = UnixNanos(number * 10_000_000_000);
            saves.on_save(None, start, UnixNanos(start.0 + 1_000_000_000), &mut board);
        }
        assert_eq!(saves.saves.len(), MAX_SAVES);
        saves.on_save(None, UnixNanos(0), UnixNanos(1), &mut board);
        assert_eq!(saves.saves.front().unwrap().start, UnixNanos(20_480_000_000_000));
        assert_eq!(saves.usual_secs(), Some(1.0));
    }
}
