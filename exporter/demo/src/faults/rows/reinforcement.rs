//! Faults of reinforcement learning: rollouts, policy and rewards.

use super::super::{
    Action::{Steps, Values},
    FaultRow,
};
use crate::{
    config::Workload::Rl,
    job::{RlValues, StepValues},
};

pub(super) static ROWS: &[FaultRow] = &[
    FaultRow::of_run(
        "inference-bottleneck",
        "the sample pool runs empty and training waits for samples",
        Steps(|effects, _| effects.inference = 0.45),
    )
    .only(Rl)
    .verdict("inference_bound"),
    FaultRow::of_run(
        "training-bottleneck",
        "inference is three times as fast as training, and the sample pool is full",
        Steps(|effects, _| effects.inference = 2.6),
    )
    .only(Rl),
    FaultRow::of_run(
        "stale-samples",
        "the samples of a batch are six steps older than the policy",
        Values(|values, _| change(values, |rl| rl.staleness = (rl.staleness.0 + 5.0, 9.0))),
    )
    .only(Rl),
    FaultRow::of_run(
        "policy-drift",
        "the policy is two nats from its reference",
        Values(|values, _| change(values, |rl| rl.kl += 2.0)),
    )
    .only(Rl),
    FaultRow::of_run(
        "entropy-collapse",
        "the entropy of the policy is a hundredth of its usual value",
        Values(|values, _| change(values, |rl| rl.entropy *= 0.01)),
    )
    .only(Rl),
    FaultRow::of_run(
        "reward-collapse",
        "the reward function fails: all rewards are zero",
        Values(|values, _| change(values, |rl| rl.reward = (0.0, 0.0))),
    )
    .only(Rl),
    FaultRow::of_run(
        "truncated-completions",
        "half of the completions are cut at the longest length",
        Values(|values, _| {
            change(values, |rl| {
                rl.completion_length = (rl.completion_length.0.max(1_300.0), 2_048.0);
                rl.clip_ratio = 0.5;
            });
        }),
    )
    .only(Rl),
];

fn change(values: &mut StepValues, change: fn(&mut RlValues)) {
    if let Some(rl) = &mut values.rl {
        change(rl);
    }
}
