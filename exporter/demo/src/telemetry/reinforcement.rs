//! Records the values of reinforcement learning on rank 0: sample pool, rewards, policy, inference engines.

use pulsetrain_otlp::{UnixNanos, write::AttributeValue};
use pulsetrain_semconv::{attribute, metric};

use super::rank::Rank;
use crate::job::{RlValues, RolloutStep};

impl Rank {
    pub(super) fn record_rl(
        &mut self,
        values: &RlValues,
        rollout: &RolloutStep,
        samples: u64,
        time_unix_nanos: UnixNanos,
    ) {
        let throughput = rollout.infer_capacity.min(rollout.train_capacity);
        for (metric, value) in [
            (&metric::PERF_SAMPLE_POOL_SIZE, rollout.pool_size),
            (&metric::PERF_SAMPLE_POOL_LIMIT, rollout.pool_limit),
            (&metric::PERF_INFER_CAPACITY, rollout.infer_capacity),
            (&metric::PERF_TRAIN_CAPACITY, rollout.train_capacity),
            (&metric::PERF_THROUGHPUT, throughput),
            (&metric::RL_POLICY_CLIP_FRACTION, values.clip_fraction),
            (&metric::RL_COMPLETION_CLIP_RATIO, values.clip_ratio),
            (&metric::RL_ROLLOUTS, samples as f64),
        ] {
            self.recorder().record(metric, time_unix_nanos, value, &[]);
        }
        let rollout_seconds = rollout.generation.as_nanos() as f64 / 1e9;
        self.recorder().record(
            &metric::PERF_ROLLOUT_TIME,
            time_unix_nanos,
            rollout_seconds,
            &[(&attribute::PERF_STATISTIC, AttributeValue::Text("sum"))],
        );
        for (metric, statistic, value) in [
            (&metric::RL_TRAJECTORY_REWARD, "mean", values.reward.0),
            (&metric::RL_TRAJECTORY_REWARD, "std", values.reward.1),
            (&metric::RL_KL, "mean", values.kl),
            (&metric::RL_ENTROPY, "mean", values.entropy),
            (&metric::RL_COMPLETION_LENGTH, "mean", values.completion_length.0),
            (&metric::RL_COMPLETION_LENGTH, "max", values.completion_length.1),
            (&metric::RL_STALENESS, "mean", values.staleness.0),
            (&metric::RL_STALENESS, "max", values.staleness.1),
        ] {
            let attributes = [(&attribute::RL_STATISTIC, AttributeValue::Text(statistic))];
            self.recorder()
                .record(metric, time_unix_nanos, value, &attributes);
        }
        for (metric, value) in [
            (&metric::INFERENCE_LATENCY, values.latency_seconds),
            (&metric::INFERENCE_COMPLETION_TOKENS, values.completion_length.0),
        ] {
            let attributes = [(&attribute::INFERENCE_STATISTIC, AttributeValue::Text("mean"))];
            self.recorder()
                .record(metric, time_unix_nanos, value, &attributes);
        }
    }
}
