//! `data_starved` and `inference_bound`: the share of the steps that waits for data, or for samples.
//!
//! The share of a step is the median over its ranks, because one rank that waits alone is a straggler. A
//! verdict opens when the median of the last 20 steps is above 20 % (common alert DataStarved), and resolves
//! when it is below 15 %. Training waits for inference only if inference is the slower side: with both
//! capacities known, `infer_capacity < train_capacity` (TorchSpec's rule).

use super::super::{
    align::AlignedStep,
    rank_step::RankStep,
    sample::{Samples, median},
    verdict::{Board, Level, Subject, VerdictKind},
};

const STARVED: f64 = 0.20;
const FED: f64 = 0.15;
const WINDOW: usize = 20;

/// Detects waits of the run.
#[derive(Debug)]
pub(crate) struct Waits {
    attempt: i64,
    data: Samples,
    dispatch: Samples,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            attempt: 0,
            data: Samples::new(WINDOW),
            dispatch: Samples::new(WINDOW),
        }
    }
}

impl Waits {
    /// Adds a step.
    pub(crate) fn on_step(&mut self, step: &AlignedStep, board: &mut Board) {
        if self.attempt != step.attempt {
            *self = Self {
                attempt: step.attempt,
                ..Self::default()
            };
        }
        let data = share_of(step, |rank| rank.data);
        if let Some(level) = level(&mut self.data, data) {
            let level = level.map_holds(|share| {
                format!(
                    "Steps wait for data for {:.0} % of their time (median of {WINDOW} steps); more workers or faster storage may help.",
                    share * 100.0
                )
            });
            board.set(VerdictKind::DataStarved, Subject::Run, step.end(), Some(level));
        }
        let dispatch = share_of(step, |rank| rank.dispatch_wait);
        if let Some(level) = level(&mut self.dispatch, dispatch) {
            let level = if training_is_slower(step) {
                Level::Gone
            } else {
                level.map_holds(|share| inference_reason(share, step))
            };
            board.set(VerdictKind::InferenceBound, Subject::Run, step.end(), Some(level));
        }
    }
}

/// A level with its share.
enum ShareLevel {
    Holds(f64),
    Gone,
}

impl ShareLevel {
    fn map_holds(self, reason: impl FnOnce(f64) -> String) -> Level {
        match self {
            Self::Holds(share) => Level::Holds(reason(share)),
            Self::Gone => Level::Gone,
        }
    }
}

/// Adds a share and returns the level of its window.
fn level(window: &mut Samples, share: Option<f64>) -> Option<ShareLevel> {
    window.push(share?);
    let share = window.median().filter(|_| window.is_full())?;
    if share > STARVED {
        Some(ShareLevel::Holds(share))
    } else {
        (share < FED).then_some(ShareLevel::Gone)
    }
}

/// Returns the median over the ranks of a part of the step.
fn share_of(step: &AlignedStep, part: impl Fn(&RankStep) -> Option<f64>) -> Option<f64> {
    median(step.ranks.iter().filter_map(|rank| rank.share(part(rank)?)))
}

fn training_is_slower(step: &AlignedStep) -> bool {
    let capacities = step
        .ranks
        .iter()
        .find_map(|rank| Some((rank.infer_capacity?, rank.train_capacity?)));
    capacities.is_some_and(|(infer, train)| infer >= train)
}

fn inference_reason(share: f64, step: &AlignedStep) -> String {
    let mut reason = format!(
        "Training waits for samples for {:.0} % of its time (median of {WINDOW} steps)",
        share * 100.0
    );
    if let Some((infer, train)) = step
        .ranks
        .iter()
        .find_map(|rank| Some((rank.infer_capacity?, rank.train_capacity?)))
    {
        reason += &format!(": inference gives {infer:.1} samples/s, training could use {train:.1}");
    }
    if let Some(pool) = step.ranks.iter().find_map(|rank| rank.sample_pool) {
        reason += &format!("; {pool:.0} samples are in the pool");
    }
    reason + "."
}

#[cfg(test)]
mod tests {
    use super::{super::super::UnixNanos, *};

    fn step(number: i64, change: impl Fn(&mut RankStep)) -> AlignedStep {
        let second = 1_000_000_000;
        let (start, end) = (number as u64 * second, (number as u64 + 1) * second);
        let ranks = (0..3).map(|rank| {
            let mut step = RankStep::new(rank, number, UnixNanos(start), UnixNanos(end));
            change(&mut step);
            step
        });
        AlignedStep {
            attempt: 0,
            number,
            ranks: ranks.collect(),
            missing: 0,
        }
    }

    fn opened(steps: impl Iterator<Item = AlignedStep>) -> Vec<(VerdictKind, bool, u64)> {
        let (mut waits, mut board) = (Waits::default(), Board::default());
        steps.for_each(|step| waits.on_step(&step, &mut board));
        board.map_changes(|change| (change.kind, change.is_open, change.time.0 / 1_000_000_000))
    }

    #[test]
    fn run_is_starved_when_most_steps_wait_for_data() {
        let steps = (0..100).map(|number| {
            let data = if (30..60).contains(&number) { 0.5 } else { 0.05 };
            step(number, |rank| rank.data = Some(data))
        });
        assert_eq!(opened(steps), VerdictKind::DataStarved.lasts(40, 71));
    }

    #[test]
    fn single_waiting_rank_does_not_make_the_run_starved() {
        let steps = (0..100).map(|number| {
            step(number, |rank| {
                rank.data = Some(if rank.rank == 1 { 0.9 } else { 0.05 });
            })
        });
        assert_eq!(opened(steps), []);
    }

    #[test]
    fn inference_bound_only_where_inference_is_slower() {
        let steps = |infer| {
            (0..30).map(move |number| {
                step(number, |rank| {
                    rank.dispatch_wait = Some(0.4);
                    rank.infer_capacity = Some(infer);
                    rank.train_capacity = Some(13.0);
                })
            })
        };
        assert_eq!(opened(steps(8.0)), [(VerdictKind::InferenceBound, true, 20)]);
        assert_eq!(opened(steps(20.0)), []);
    }
}
