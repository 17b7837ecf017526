//! `nonfinite_loss`, `loss_spike` and `grad_norm_spike`: conditions of loss and gradient norm.
//!
//! - **Not finite**: NaN or infinity in loss or gradient norm. Resolved after 20 finite steps.
//! - **Loss spike**: loss above `expected + max(8 deviations, 0.25 |expected|)` in 3 of the last 5 steps.
//!   Each loss has a residual: its difference from the median of the 16 losses before it. `expected` is that
//!   median plus the median of the last 64 residuals. A deviation is 1.4826 times the median absolute
//!   deviation of these residuals. So a falling loss does not widen the bound. The 25th loss is the first
//!   that is judged. Resolved after 10 steps within the bound. The steps after a spike of the gradient norm
//!   are its consequence and have no verdict of their own.
//! - **Gradient norm spike**: above 8 times the median of the last 64 norms (common alert GradNormSpike: 10
//!   times the mean of an hour). Resolved after 10 steps below 3 times the median.
//!
//! Values beyond a bound do not enter the window. If they last (64 in a row), they are the new normal and the
//! window starts again.

use super::super::{
    align::AlignedStep,
    rank_step::RankStep,
    sample::Samples,
    verdict::{Board, Subject, VerdictKind},
};

const WINDOW: usize = 64;
const MIN_SAMPLES: usize = 16;
/// The maximum and the minimum number of losses for the level, which is their median.
const LEVEL: usize = 16;
const MIN_LEVEL: usize = 8;
const LOSS_DEVIATIONS: f64 = 8.0;
const LOSS_RELATIVE: f64 = 0.25;
const LOSS_RECENT: u32 = 5;
const LOSS_HIGH: u32 = 3;
const NORM_SPIKE: f64 = 8.0;
const NORM_CALM: f64 = 3.0;
const FINITE_STEPS: u32 = 20;
const CALM_STEPS: u32 = 10;
/// The number of steps after a gradient norm spike in which a high loss is its consequence.
const AFTER_NORM_SPIKE: u32 = 50;

/// Watches loss and gradient norm of a run.
#[derive(Debug)]
pub(crate) struct Numbers {
    attempt: i64,
    /// The newest losses.
    loss: Samples,
    /// The differences of the losses from the level at their time.
    residuals: Samples,
    norm: Samples,
    finite_in_a_row: u32,
    /// Whether the loss was high in the last steps, one bit each.
    loss_high: u32,
    loss_calm: u32,
    norm_calm: u32,
    since_norm_spike: u32,
    outliers: [u32; 2],
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            attempt: 0,
            loss: Samples::new(LEVEL),
            residuals: Samples::new(WINDOW),
            norm: Samples::new(WINDOW),
            finite_in_a_row: 0,
            loss_high: 0,
            loss_calm: 0,
            norm_calm: 0,
            since_norm_spike: u32::MAX,
            outliers: [0; 2],
        }
    }
}

impl Numbers {
    /// Adds a step.
    pub(crate) fn on_step(&mut self, step: &AlignedStep, board: &mut Board) {
        if self.attempt != step.attempt {
            *self = Self {
                attempt: step.attempt,
                ..Self::default()
            };
        }
        let loss = of_ranks(step, |rank| rank.loss);
        let norm = of_ranks(step, |rank| rank.grad_norm);
        if loss.is_none() && norm.is_none() {
            return;
        }
        self.watch_finite(step, loss, norm, board);
        if let Some(norm) = norm.filter(|norm| norm.is_finite()) {
            self.watch_norm(step, norm, board);
        }
        if let Some(loss) = loss.filter(|loss| loss.is_finite()) {
            self.watch_loss(step, loss, board);
        }
        self.since_norm_spike = self.since_norm_spike.saturating_add(1);
    }

    fn watch_finite(&mut self, step: &AlignedStep, loss: Option<f64>, norm: Option<f64>, board: &mut Board) {
        let odd = |value: Option<f64>| value.filter(|value| !value.is_finite());
        let (name, value) = match (odd(loss), odd(norm)) {
            (Some(loss), _) => ("loss", loss),
            (None, Some(norm)) => ("gradient norm", norm),
            (None, None) => {
                self.finite_in_a_row = self.finite_in_a_row.saturating_add(1);
                if self.finite_in_a_row >= FINITE_STEPS {
                    board.resolve(VerdictKind::NonfiniteLoss, &Subject::Run, step.end());
                }
                return;
            }
        };
        self.finite_in_a_row = 0;
        let last = self.loss.median();
        board.open(VerdictKind::NonfiniteLoss, Subject::Run, step.end(), || {
            let before = last
                .map(|loss| format!("; its median was {loss:.4} before"))
                .unwrap_or_default();
            format!("The {name} of step {} is {value}{before}.", step.number)
        });
    }

    fn watch_norm(&mut self, step: &AlignedStep, norm: f64, board: &mut Board) {
        let usual = self.norm.median().filter(|_| self.norm.len() >= MIN_SAMPLES);
        let Some(usual) = usual.filter(|usual| *usual > 0.0) else {
            self.norm.push(norm);
            return;
        };
        if norm > NORM_SPIKE * usual {
            self.norm_calm = 0;
            self.since_norm_spike = 0;
            board.open(VerdictKind::GradNormSpike, Subject::Run, step.end(), || {
                format!(
                    "The gradient norm of step {} is {norm:.3}, {:.0} times its median of {usual:.3}.",
                    step.number,
                    norm / usual
                )
            });
        } else if norm < NORM_CALM * usual {
            self.norm_calm = self.norm_calm.saturating_add(1);
            if self.norm_calm >= CALM_STEPS {
                board.resolve(VerdictKind::GradNormSpike, &Subject::Run, step.end());
            }
        }
        keep(
            &mut self.norm,
            &mut self.outliers[0],
            norm,
            norm > NORM_CALM * usual,
        );
    }

    fn watch_loss(&mut self, step: &AlignedStep, loss: f64, board: &mut Board) {
        let Some(level) = self.loss.median().filter(|_| self.loss.len() >= MIN_LEVEL) else {
            self.loss.push(loss);
            return;
        };
        let spread = self.residuals.center_and_spread();
        let Some((above, deviation)) = spread.filter(|_| self.residuals.len() >= MIN_SAMPLES) else {
            self.loss.push(loss);
            self.residuals.push(loss - level);
            return;
        };
        let usual = level + above;
        let bound = usual + (LOSS_DEVIATIONS * deviation).max(LOSS_RELATIVE * usual.abs());
        let is_high = loss > bound;
        self.loss_high = (self.loss_high << 1 | u32::from(is_high)) & ((1 << LOSS_RECENT) - 1);
        self.loss_calm = if is_high {
            0
        } else {
            self.loss_calm.saturating_add(1)
        };
        let is_consequence = self.since_norm_spike <= AFTER_NORM_SPIKE;
        if self.loss_high.count_ones() >= LOSS_HIGH && !is_consequence {
            board.open(VerdictKind::LossSpike, Subject::Run, step.end(), || {
                format!(
                    "The loss of step {} is {loss:.4}, above the bound of {bound:.4}; the expected loss is {usual:.4}.",
                    step.number
                )
            });
        } else if self.loss_calm >= CALM_STEPS {
            board.resolve(VerdictKind::LossSpike, &Subject::Run, step.end());
        }
        if keep(&mut self.loss, &mut self.outliers[1], loss, is_high) {
            self.residuals.clear();
        } else if !is_high {
            self.residuals.push(loss - level);
        }
    }
}

/// Returns the value of the step: that of the first rank with one, or one that is not finite.
fn of_ranks(step: &AlignedStep, value: impl Fn(&RankStep) -> Option<f64>) -> Option<f64> {
    let mut values = step.ranks.iter().filter_map(value);
    let first = values.next()?;
    Some(values.find(|value| !value.is_finite()).unwrap_or(first))
}

/// Adds a usual value to the window. Clears the window if outliers last, and returns whether it did.
fn keep(window: &mut Samples, outliers: &mut u32, value: f64, is_odd: bool) -> bool {
    if !is_odd {
        *outliers = 0;
        window.push(value);
        return false;
    }
    *outliers += 1;
    let is_new_normal = *outliers as usize >= WINDOW;
    if is_new_normal {
        *outliers = 0;
        window.clear();
    }
    is_new_normal
}

#[cfg(test)]
mod tests {
    use super::{super::super::UnixNanos, *};

    fn opened(values: impl Iterator<Item = (f64, f64)>) -> Vec<(VerdictKind, bool, u64)> {
        let (mut numbers, mut board) = (Numbers::default(), Board::default());
        for (number, (loss, norm)) in values.enumerate() {
            let time = UnixNanos(number as u64);
            let rank = RankStep {
                loss: Some(loss),
                grad_norm: Some(norm),
                ..RankStep::new(0, number as i64, time, time)
            };
            let step = AlignedStep {
                attempt: 0,
                number: number as i64,
                ranks: vec![rank],
                missing: 0,
            };
            numbers.on_step(&step, &mut board);
        }
        board.map_changes(|change| (change.kind, change.is_open, change.time.0))
    }

    /// Noise of 3 % from a linear congruential generator.
    fn noise(number: u64) -> f64 {
        let mixed = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) >> 40;
        1.0 + 0.03 * (mixed as f64 / f64::from(1_u32 << 23) - 1.0)
    }

    #[test]
    fn nan_opens_a_verdict_until_twenty_finite_steps() {
        let values = (0..60).map(|number| (if (10..12).contains(&number) { f64::NAN } else { 2.0 }, 1.0));
        assert_eq!(opened(values), VerdictKind::NonfiniteLoss.lasts(10, 31));
    }

    #[test]
    fn gradient_spike_is_a_verdict_and_the_following_loss_is_not() {
        let values = (0..200).map(|number| {
            let in_spike = (100..103).contains(&number);
            let loss = if (100..110).contains(&number) { 4.0 } else { 2.0 };
            (
                loss * noise(number),
                if in_spike { 20.0 } else { 1.0 } * noise(number),
            )
        });
        assert_eq!(opened(values), VerdictKind::GradNormSpike.lasts(100, 112));
    }

    #[test]
    fn loss_that_jumps_and_stays_high_is_a_spike() {
        let values = (0..400).map(|number| (if number >= 100 { 3.5 } else { 2.0 } * noise(number), 1.0));
        let changes = opened(values);
        assert_eq!(changes[0], (VerdictKind::LossSpike, true, 102));
        assert_eq!(
            changes.len(),
            2,
            "the new level is normal after a while: {changes:?}"
        );
    }

    #[test]
    fn spike_while_the_loss_still_falls_is_a_verdict() {
        for start in [30, 40, 60, 80, 120] {
            let values = (0..start + 40).map(|number| {
                let usual = 1.05 + 1.35 * (1.0 + number as f64 / 40.0).powf(-0.5);
                let spike = if (start..start + 6).contains(&number) {
                    1.5
                } else {
                    1.0
                };
                (spike * usual * noise(number), 1.0)
            });
            let spike = VerdictKind::LossSpike.lasts(start + 2, start + 15);
            assert_eq!(opened(values), spike, "from step {start} on");
        }
    }

    #[test]
    fn loss_that_falls_fast_and_noisy_is_healthy() {
        let values = (0..5000_u64).map(|number| {
            let loss = 2.0 + 9.0 * (-(number as f64) / 60.0).exp();
            (
                loss * noise(number),
                (0.5 + 5.0 * (-(number as f64) / 40.0).exp()) * noise(number + 7),
            )
        });
        assert_eq!(opened(values), []);
    }
}
