//! Tunix (`tunix/sft/metrics_logger.py`, `tunix/rl`): tags are `prefix/mode/name`, where the mode is `train` or `eval`.
//!
//! The listener that writes its event files also hears what JAX says of its own compilations: durations whose value is, by
//! a defect upstream, the time of day. They are left out.

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::{attribute, metric};

use super::{
    row::{Capture, TagRow, keep, nothing, tag},
    system::{System, seen},
};

pub(crate) const SYSTEM: System = System {
    name: "tunix",
    signs: &[
        "jax/core/compile/{}",
        "actor/train/{}",
        "actor/eval/{}",
        "critic/train/{}",
        "rewards/train/{}",
        "perf/train/global_step_time",
    ],
    rows: ROWS,
    texts: &[],
    seen_in_events: seen!(
        "an event file",
        "Tunix",
        "actor/train/loss, rewards/train/mean, jax/core/compile/* ..."
    ),
    seen_in_wandb: seen!(
        "a wandb file",
        "Tunix",
        "actor/train/loss, rewards/train/mean ..."
    ),
};

/// The first varying part is the mode.
const MODE: &[Capture] = &[(0, &attribute::DATA_SPLIT)];
/// The mode, then a statistic of a batch.
const MODE_STATISTIC: &[Capture] = &[(0, &attribute::DATA_SPLIT), (1, &attribute::RL_STATISTIC)];
/// The mode, then the name of a reward function.
const MODE_REWARD: &[Capture] = &[(0, &attribute::DATA_SPLIT), (1, &attribute::RL_COMPONENT)];
/// The mode, which is of no account for a time, then what is made of the times of the micro-batches.
const TIMES: &[Capture] = &[(1, &attribute::PERF_STATISTIC)];
const KL: Attribute<'static> = (&attribute::TRAIN_COMPONENT, Value::Text("kl"));

static ROWS: &[TagRow] = &[
    nothing("jax/core/compile/{}", "jax_time_of_day"),
    tag("/train/loss", &metric::TRAIN_LOSS),
    tag("/eval/loss", &metric::EVAL_LOSS),
    tag("/train/perplexity", &metric::TRAIN_PERPLEXITY),
    tag("/eval/perplexity", &metric::EVAL_PERPLEXITY),
    tag("/train/learning_rate", &metric::TRAIN_LEARNING_RATE),
    tag("/train/grad_norm", &metric::TRAIN_GRAD_NORM),
    // Of older releases.
    tag("/train/step_time_sec", &metric::TRAIN_STEP_DURATION),
    tag("/train/steps_per_sec", &metric::TRAIN_THROUGHPUT_STEPS),
    tag("actor/train/step_time_sec", &metric::TRAIN_STEP_DURATION),
    tag("actor/train/steps_per_sec", &metric::TRAIN_THROUGHPUT_STEPS),
    keep("/train/tflops_per_step"),
    keep("actor/train/tflops_per_step"),
    tag("actor/train/loss", &metric::TRAIN_LOSS),
    tag("actor/eval/loss", &metric::EVAL_LOSS),
    tag("actor/train/perplexity", &metric::TRAIN_PERPLEXITY),
    tag("actor/eval/perplexity", &metric::EVAL_PERPLEXITY),
    tag("actor/train/learning_rate", &metric::TRAIN_LEARNING_RATE),
    tag("actor/train/grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("actor/train/kl_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[KL]),
    tag("actor/eval/kl_loss", &metric::EVAL_LOSS_COMPONENT).with(&[KL]),
    tag("actor/{}/kl", &metric::RL_KL).capturing(MODE),
    tag("actor/{}/ppo_kl", &metric::RL_POLICY_KL).capturing(MODE),
    tag("actor/{}/entropy", &metric::RL_ENTROPY).capturing(MODE),
    tag("actor/{}/loss/entropy", &metric::RL_ENTROPY).capturing(MODE),
    tag("actor/{}/pg_clipfrac", &metric::RL_POLICY_CLIP_FRACTION).capturing(MODE),
    tag(
        "actor/{}/pg_clipfrac_lower",
        &metric::RL_POLICY_CLIP_LOWER_FRACTION,
    )
    .capturing(MODE),
    tag("actor/{}/reduced_pg_loss", &metric::RL_POLICY_LOSS).capturing(MODE),
    tag("actor/{}/is_ratio/{}", &metric::RL_IMPORTANCE_RATIO).capturing(MODE_STATISTIC),
    tag("actor/{}/advantage/{}", &metric::RL_ADVANTAGE).capturing(MODE_STATISTIC),
    tag("critic/{}/loss", &metric::RL_VALUE_LOSS).capturing(MODE),
    tag("critic/{}/vf_clipfrac", &metric::RL_VALUE_CLIP_FRACTION).capturing(MODE),
    tag("rewards/{}/score/{}", &metric::RL_SCORE).capturing(MODE_STATISTIC),
    tag("rewards/{}/reward/{}", &metric::RL_REWARD).capturing(MODE_STATISTIC),
    tag("rewards/{}/advantage/{}", &metric::RL_ADVANTAGE).capturing(MODE_STATISTIC),
    tag("rewards/{}/reward_kl_penalty", &metric::RL_KL_PENALTY).capturing(MODE),
    tag("rewards/{}/{}", &metric::RL_REWARD).capturing(MODE_STATISTIC),
    tag("rewards/{}/{}", &metric::RL_REWARD_COMPONENT).capturing(MODE_REWARD),
    tag("advantages/{}/returns/{}", &metric::RL_RETURN).capturing(MODE_STATISTIC),
    tag("advantages/{}/old_values/{}", &metric::RL_VALUE).capturing(MODE_STATISTIC),
    tag("advantages/{}/{}", &metric::RL_ADVANTAGE).capturing(MODE_STATISTIC),
    tag("completions/{}/{}_length", &metric::RL_COMPLETION_LENGTH).capturing(MODE_STATISTIC),
    tag(
        "generation/{}/completions/{}_length",
        &metric::RL_COMPLETION_LENGTH,
    )
    .capturing(MODE_STATISTIC),
    tag("generation/{}/prompts/{}_length", &metric::RL_PROMPT_LENGTH).capturing(MODE_STATISTIC),
    tag(
        "generation/{}/completions/clip_ratio",
        &metric::RL_COMPLETION_CLIP_RATIO,
    )
    .capturing(MODE),
    tag("sampler_trainer/{}/logp_diff_{}", &metric::RL_LOGP_DIFFERENCE).capturing(MODE_STATISTIC),
    tag("global/{}/actor_dequeue_time", &metric::RL_ACTOR_DEQUEUE_TIME),
    tag("perf/{}/global_step_time", &metric::PERF_GLOBAL_STEP_TIME),
    tag("perf/{}/weight_sync_time", &metric::PERF_WEIGHT_SYNC_TIME),
    tag("perf/{}/rollout_idle_time", &metric::PERF_ROLLOUT_IDLE_TIME),
    tag(
        "perf/{}/first_micro_batch_rollout_time",
        &metric::PERF_FIRST_MICRO_BATCH_ROLLOUT_TIME,
    ),
    tag("perf/{}/{}/rollout_time", &metric::PERF_ROLLOUT_TIME).capturing(TIMES),
    tag(
        "perf/{}/{}/refer_inference_time",
        &metric::PERF_REFER_INFERENCE_TIME,
    )
    .capturing(TIMES),
    tag("perf/{}/{}/actor_train_time", &metric::PERF_ACTOR_TRAIN_TIME).capturing(TIMES),
    tag(
        "perf/{}/{}/actor_train_step_time",
        &metric::PERF_ACTOR_TRAIN_STEP_TIME,
    )
    .capturing(TIMES),
    tag(
        "perf/{}/{}/between_micro_batch_gap_time",
        &metric::PERF_BETWEEN_MICRO_BATCH_GAP_TIME,
    )
    .capturing(TIMES),
    tag("perf/{}/{}/refer_gap_time", &metric::PERF_REFER_GAP_TIME).capturing(TIMES),
    tag("perf/{}/{}/actor_gap_time", &metric::PERF_ACTOR_GAP_TIME).capturing(TIMES),
    keep("/{}/rewards/{}"),
    keep("/{}/log_probs/{}"),
    keep("actor/{}/rewards/{}"),
    keep("actor/{}/log_probs/{}"),
    keep("actor/{}/unreduced_pg_loss"),
    keep("actor/{}/log_ratio/abs_mean"),
    keep("actor/{}/pg_loss/{}"),
    keep("actor/{}/advantage/abs_mean"),
    keep("actor/{}/advantage/nonzero_frac"),
    keep("actor/{}/sampler_is/{}"),
    keep("actor/eval/learning_rate"),
    keep("critic/{}/perplexity"),
    keep("critic/{}/learning_rate"),
    keep("critic/{}/grad_norm"),
    keep("generation/{}/completions/{}_raw_length"),
    keep("sampler_trainer/{}/prob_diff_{}"),
    keep("sampler_trainer/{}/probs_pearson_corr"),
    keep("sampler_is/{}/{}"),
    keep("packing/{}/{}"),
    keep("trajectory/{}/{}"),
    keep("trajectory_rewards/{}/{}"),
];
