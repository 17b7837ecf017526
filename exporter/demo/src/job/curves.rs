//! The values of the training metrics: loss, gradient norm, learning rate, load of the experts, rewards.
//!
//! The loss follows a power law of the step, like the fine-tuning runs of the corpus; the learning rate follows a linear warmup
//! and a cosine. Noise is drawn once for all ranks, because the values are averages over all ranks.

use std::f64::consts::PI;

use super::rollout::SAMPLES_PER_RANK;
use crate::{
    config::{DemoConfig, Workload},
    faults::Effects,
    random::Random,
};

/// Tokens per second of one rank, at which a GPU reaches 38 % of its peak.
const TOKENS_PER_SECOND: f64 = 18_000.0;
/// Samples of a step of one rank in fine-tuning.
const SFT_SAMPLES: u64 = 8;
/// The highest learning rate, its warmup in steps, and the share of it at the end.
const LEARNING_RATE: f64 = 2e-5;
const WARMUP: f64 = 20.0;
const LAST_RATE: f64 = 0.1;
/// Loss scale of a run that never overflows.
const LOSS_SCALE: f64 = 65_536.0;
/// Steps of an epoch.
const EPOCH: f64 = 1_250.0;
/// The random streams.
const STREAM: u64 = 0xc0;
const EVAL_STREAM: u64 = 0xc1;

/// The values of the training metrics of a step.
#[derive(Clone, Debug)]
pub(crate) struct StepValues {
    /// Loss.
    pub(crate) loss: f64,
    /// L2 norm of the gradients.
    pub(crate) grad_norm: f64,
    /// Learning rate.
    pub(crate) learning_rate: f64,
    /// Factor on the loss for half precision.
    pub(crate) loss_scale: f64,
    /// Whether the update was skipped.
    pub(crate) is_skipped: bool,
    /// State of the training: a value of `train.phase`.
    pub(crate) phase: &'static str,
    /// Passes over the data so far.
    pub(crate) epoch: f64,
    /// Tokens of the step, over all ranks.
    pub(crate) tokens: u64,
    /// Samples of the step, over all ranks.
    pub(crate) samples: u64,
    /// The experts.
    pub(crate) moe: Option<MoeValues>,
    /// Rewards and policy.
    pub(crate) rl: Option<RlValues>,
}

/// The metrics of the router of a mixture of experts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoeValues {
    /// Load-balancing loss.
    pub(crate) aux_loss: f64,
    /// Regularization of the router logits.
    pub(crate) z_loss: f64,
    /// Tokens of the busiest expert over the mean.
    pub(crate) load_imbalance: f64,
    /// Share of the experts that receive tokens.
    pub(crate) expert_utilization: f64,
    /// Entropy of the router.
    pub(crate) router_entropy: f64,
}

/// The metrics of reinforcement learning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RlValues {
    /// Mean reward, and its standard deviation.
    pub(crate) reward: (f64, f64),
    /// Divergence from the reference.
    pub(crate) kl: f64,
    /// Entropy of the policy.
    pub(crate) entropy: f64,
    /// Share of the tokens at which the update was clipped.
    pub(crate) clip_fraction: f64,
    /// Mean and maximum length of a completion.
    pub(crate) completion_length: (f64, f64),
    /// Share of the completions that were cut at the longest length.
    pub(crate) clip_ratio: f64,
    /// Steps by which the policy of the samples is older than the actor: mean and maximum.
    pub(crate) staleness: (f64, f64),
    /// Mean latency of a request to the inference engines, in seconds.
    pub(crate) latency_seconds: f64,
}

/// Draws the values of steps.
pub(crate) struct Curves {
    workload: Workload,
    steps: f64,
    tokens: u64,
    samples: u64,
    step_seconds: f64,
    random: Random,
    eval_random: Random,
    /// Noise of the loss that fades over some steps: consecutive batches are alike.
    drift: f64,
}

impl Curves {
    pub(super) fn new(config: &DemoConfig) -> Self {
        let samples = samples_of_step(config);
        let samples_of_rank = samples / u64::from(config.ranks);
        Self {
            workload: config.workload,
            steps: config.steps as f64,
            tokens: tokens_of_rank(config, samples_of_rank) * u64::from(config.ranks),
            samples,
            step_seconds: config.step_time.as_secs_f64(),
            random: Random::new(config.seed, STREAM),
            eval_random: Random::new(config.seed, EVAL_STREAM),
            drift: 0.0,
        }
    }

    /// Returns the values of a step.
    pub(super) fn step(&mut self, step: u64, effects: &Effects) -> StepValues {
        let at = step as f64;
        self.drift = 0.8 * self.drift + self.random.normal(0.0, 0.006);
        let noise = 1.0 + self.drift + self.random.normal(0.0, 0.008);
        let grad_noise = self.random.factor(0.10);
        let mut values = StepValues {
            loss: self.smooth_loss(at) * noise,
            grad_norm: (0.45 + 0.9 * (1.0 + at / 30.0).powf(-0.5)) * grad_noise,
            learning_rate: self.learning_rate(at),
            loss_scale: LOSS_SCALE,
            is_skipped: false,
            phase: if at <= WARMUP { "warmup" } else { "converging" },
            epoch: at / EPOCH,
            tokens: self.tokens,
            samples: self.samples,
            moe: (self.workload == Workload::Sft).then(|| self.moe(at)),
            rl: (self.workload == Workload::Rl).then(|| self.rl(at, effects)),
        };
        for (change, steps) in &effects.values {
            change(&mut values, *steps);
        }
        values
    }

    /// Returns the loss on held-out data after a step.
    pub(super) fn eval_loss(&mut self, step: u64) -> f64 {
        self.smooth_loss(step as f64) * 1.03 * self.eval_random.factor(0.004)
    }

    fn smooth_loss(&self, step: f64) -> f64 {
        match self.workload {
            Workload::Sft => 1.05 + 1.35 * (1.0 + step / 40.0).powf(-0.5),
            Workload::Rl => 0.32 + 0.10 * (1.0 + step / 80.0).powf(-0.5),
        }
    }

    fn learning_rate(&self, step: f64) -> f64 {
        let warm = (step / WARMUP).min(1.0);
        let done = ((step - WARMUP) / (self.steps - WARMUP).max(1.0)).clamp(0.0, 1.0);
        let cosine = 0.5 * (1.0 + (PI * done).cos());
        LEARNING_RATE * warm * (LAST_RATE + (1.0 - LAST_RATE) * cosine)
    }

    fn moe(&mut self, step: f64) -> MoeValues {
        let learned = (1.0 + step / 60.0).recip();
        MoeValues {
            aux_loss: (0.010 + 0.006 * learned) * self.random.factor(0.03),
            z_loss: (0.0008 + 0.0006 * learned) * self.random.factor(0.05),
            load_imbalance: 1.0 + (0.25 + 0.9 * learned) * self.random.factor(0.06),
            expert_utilization: (1.0 - 0.05 * learned * self.random.factor(0.2)).min(1.0),
            router_entropy: (0.86 + 0.06 * learned) * self.random.factor(0.004),
        }
    }

    fn rl(&mut self, step: f64, effects: &Effects) -> RlValues {
        let learned = 1.0 - (1.0 + step / 150.0).recip();
        let mean_length = (620.0 + 380.0 * learned) * self.random.factor(0.03);
        RlValues {
            reward: (
                0.12 + 0.62 * learned + self.random.normal(0.0, 0.02),
                (0.36 - 0.10 * learned) * self.random.factor(0.05),
            ),
            kl: (0.002 + 0.045 * learned) * self.random.factor(0.08),
            entropy: (0.62 - 0.25 * learned) * self.random.factor(0.03),
            clip_fraction: (0.02 + 0.03 * learned) * self.random.factor(0.15),
            completion_length: (mean_length, (mean_length * 2.4).min(2048.0).round()),
            clip_ratio: 0.01 + 0.03 * learned,
            staleness: (1.2 + 0.2 * self.random.uniform(), 2.0),
            latency_seconds: self.step_seconds * 0.7 / effects.inference * self.random.factor(0.05),
        }
    }
}

/// Returns the samples of a step over all ranks.
pub(crate) fn samples_of_step(config: &DemoConfig) -> u64 {
    let of_rank = match config.workload {
        Workload::Sft => SFT_SAMPLES,
        Workload::Rl => SAMPLES_PER_RANK,
    };
    of_rank * u64::from(config.ranks)
}

/// Returns the tokens of a step of one rank: the same number for each of its samples.
fn tokens_of_rank(config: &DemoConfig, samples: u64) -> u64 {
    let tokens = (TOKENS_PER_SECOND * config.step_time.as_secs_f64()) as u64;
    (tokens / samples).max(1) * samples
}
