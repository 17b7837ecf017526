//! The Trainer of Hugging Face transformers (`integrations/integration_utils.py`, `rewrite_logs`): `eval_x` becomes `eval/x`,
//! `test_x` becomes `test/x`, everything else `train/x`; the trainers of TRL among them. To wandb it gives what it says once of
//! a whole run under its own name, in the summary.

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::{attribute, metric};

use super::{
    row::{Capture, TagRow, keep, step, tag, total},
    system::{System, TextRow, seen},
};

pub(super) const SYSTEM: System = System {
    name: "hf_trainer",
    signs: &[
        "args/text_summary",
        "train/num_input_tokens_seen",
        "train/train_runtime",
        "train/total_flos",
        "eval/samples_per_second",
        "eval/{}_samples_per_second",
        // Of TRL.
        "train/mean_token_accuracy",
        "train/num_tokens",
        "train/rewards/{}/mean",
        "train/rewards/chosen",
        "train/completions/mean_length",
        "train/objective/rlhf_reward",
        // In the summary of wandb.
        "train_samples_per_second",
    ],
    rows: ROWS,
    texts: &[
        TextRow::Configuration("args/text_summary"),
        TextRow::Option("{}/text_summary"),
    ],
    seen_in_events: seen!(
        "an event file",
        "the Trainer of Hugging Face",
        "args/text_summary, train/train_runtime ..."
    ),
    seen_in_wandb: seen!(
        "a wandb file",
        "the Trainer of Hugging Face",
        "eval/samples_per_second, train/num_tokens ..."
    ),
};

const fn statistic(name: &'static str) -> Attribute<'static> {
    (&attribute::RL_STATISTIC, Value::Text(name))
}

const fn component(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_COMPONENT, Value::Text(name))
}

const fn data_set(name: &'static str) -> Attribute<'static> {
    (&attribute::DATA_NAME, Value::Text(name))
}

/// What is said of an evaluation by a metric that training has too.
const EVAL: Attribute<'static> = (&attribute::DATA_SPLIT, Value::Text("eval"));
const MEAN: Attribute<'static> = statistic("mean");
const STD: Attribute<'static> = statistic("std");
const MIN: Attribute<'static> = statistic("min");
const MAX: Attribute<'static> = statistic("max");

/// The part of a tag that is the name of a data set, or of a reward function.
const DATA_SET: &[Capture] = &[(0, &attribute::DATA_NAME)];
const COMPONENT: &[Capture] = &[(0, &attribute::RL_COMPONENT)];

static ROWS: &[TagRow] = &[
    step("train/global_step"),
    tag("train/loss", &metric::TRAIN_LOSS),
    tag("train/grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("train/learning_rate", &metric::TRAIN_LEARNING_RATE),
    tag("train/epoch", &metric::TRAIN_EPOCH),
    total("train/num_input_tokens_seen", &metric::TRAIN_TOKENS),
    tag("train/train_tokens_per_second", &metric::TRAIN_THROUGHPUT_TOKENS),
    tag(
        "train/train_samples_per_second",
        &metric::TRAIN_THROUGHPUT_SAMPLES,
    ),
    tag("train/train_steps_per_second", &metric::TRAIN_THROUGHPUT_STEPS),
    tag("train/train_runtime", &metric::TRAIN_ELAPSED_TIME),
    tag("train/train_loss", &metric::TRAIN_MEAN_LOSS),
    total("train/total_flos", &metric::TRAIN_COMPLETED_FLOPS),
    // In the summary of wandb.
    tag("train_samples_per_second", &metric::TRAIN_THROUGHPUT_SAMPLES),
    tag("train_steps_per_second", &metric::TRAIN_THROUGHPUT_STEPS),
    tag("train_runtime", &metric::TRAIN_ELAPSED_TIME),
    tag("train_loss", &metric::TRAIN_MEAN_LOSS),
    total("total_flos", &metric::TRAIN_COMPLETED_FLOPS),
    tag("eval/loss", &metric::EVAL_LOSS),
    tag("eval/accuracy", &metric::EVAL_ACCURACY),
    tag("eval/perplexity", &metric::EVAL_PERPLEXITY),
    tag("eval/runtime", &metric::EVAL_DURATION),
    tag("eval/samples_per_second", &metric::EVAL_THROUGHPUT_SAMPLES),
    tag("eval/steps_per_second", &metric::EVAL_THROUGHPUT_STEPS),
    tag("test/loss", &metric::EVAL_LOSS).with(&[data_set("test")]),
    tag("test/runtime", &metric::EVAL_DURATION).with(&[data_set("test")]),
    tag("test/samples_per_second", &metric::EVAL_THROUGHPUT_SAMPLES).with(&[data_set("test")]),
    tag("test/steps_per_second", &metric::EVAL_THROUGHPUT_STEPS).with(&[data_set("test")]),
    // All trainers of TRL.
    total("train/num_tokens", &metric::TRAIN_REAL_TOKENS),
    tag("train/entropy", &metric::RL_ENTROPY).with(&[MEAN]),
    tag("train/mean_token_accuracy", &metric::TRAIN_ACCURACY),
    tag("train/aux_loss", &metric::MOE_AUX_LOSS),
    tag("train/lr", &metric::TRAIN_LEARNING_RATE),
    keep("eval/num_tokens"),
    tag("eval/entropy", &metric::RL_ENTROPY).with(&[MEAN, EVAL]),
    tag("eval/mean_token_accuracy", &metric::EVAL_ACCURACY),
    keep("eval/aux_loss"),
    // Of GRPO and RLOO.
    tag("train/step_time", &metric::TRAIN_STEP_DURATION),
    tag("train/reward", &metric::RL_REWARD).with(&[MEAN]),
    tag("train/reward_std", &metric::RL_REWARD).with(&[STD]),
    tag("train/kl", &metric::RL_KL).with(&[MEAN]),
    tag("train/policy_loss", &metric::RL_POLICY_LOSS),
    tag("train/completion_length", &metric::RL_COMPLETION_LENGTH).with(&[MEAN]),
    tag("train/completions/mean_length", &metric::RL_COMPLETION_LENGTH).with(&[MEAN]),
    tag("train/completions/min_length", &metric::RL_COMPLETION_LENGTH).with(&[MIN]),
    tag("train/completions/max_length", &metric::RL_COMPLETION_LENGTH).with(&[MAX]),
    tag(
        "train/completions/clipped_ratio",
        &metric::RL_COMPLETION_CLIP_RATIO,
    ),
    tag("train/clip_ratio", &metric::RL_POLICY_CLIP_FRACTION),
    tag("train/clip_ratio/region_mean", &metric::RL_POLICY_CLIP_FRACTION),
    tag(
        "train/clip_ratio/low_mean",
        &metric::RL_POLICY_CLIP_LOWER_FRACTION,
    ),
    tag(
        "train/sampling/importance_sampling_ratio/{}",
        &metric::RL_IMPORTANCE_RATIO,
    )
    .capturing(&[(0, &attribute::RL_STATISTIC)]),
    tag(
        "train/sampling/sampling_logp_difference/{}",
        &metric::RL_LOGP_DIFFERENCE,
    )
    .capturing(&[(0, &attribute::RL_STATISTIC)]),
    tag("eval/reward", &metric::RL_REWARD).with(&[MEAN, EVAL]),
    tag("eval/reward_std", &metric::RL_REWARD).with(&[STD, EVAL]),
    tag("eval/kl", &metric::RL_KL).with(&[MEAN, EVAL]),
    tag("eval/completions/mean_length", &metric::RL_COMPLETION_LENGTH).with(&[MEAN, EVAL]),
    tag("eval/completions/min_length", &metric::RL_COMPLETION_LENGTH).with(&[MIN, EVAL]),
    tag("eval/completions/max_length", &metric::RL_COMPLETION_LENGTH).with(&[MAX, EVAL]),
    tag(
        "eval/completions/clipped_ratio",
        &metric::RL_COMPLETION_CLIP_RATIO,
    )
    .with(&[EVAL]),
    // Of DPO and its kin.
    tag("train/rewards/accuracies", &metric::TRAIN_ACCURACY).with(&[component("dpo")]),
    tag("train/nll_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("lm")]),
    tag("eval/rewards/accuracies", &metric::EVAL_ACCURACY).with(&[component("dpo")]),
    tag("eval/nll_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("lm")]),
    // Of the trainer of reward models.
    tag("train/accuracy", &metric::TRAIN_ACCURACY),
    tag("train/mean_reward", &metric::RL_REWARD).with(&[MEAN]),
    tag("train/min_reward", &metric::RL_REWARD).with(&[MIN]),
    tag("train/max_reward", &metric::RL_REWARD).with(&[MAX]),
    tag("eval/mean_reward", &metric::RL_REWARD).with(&[MEAN, EVAL]),
    tag("eval/min_reward", &metric::RL_REWARD).with(&[MIN, EVAL]),
    tag("eval/max_reward", &metric::RL_REWARD).with(&[MAX, EVAL]),
    // Of PPO.
    tag("train/objective/rlhf_reward", &metric::RL_REWARD).with(&[MEAN]),
    tag("train/objective/scores", &metric::RL_SCORE).with(&[MEAN]),
    tag("train/objective/kl", &metric::RL_KL).with(&[MEAN]),
    tag("train/policy/approxkl_avg", &metric::RL_POLICY_KL).with(&[MEAN]),
    tag("train/policy/clipfrac_avg", &metric::RL_POLICY_CLIP_FRACTION),
    tag("train/policy/entropy_avg", &metric::RL_ENTROPY).with(&[MEAN]),
    tag("train/loss/policy_avg", &metric::RL_POLICY_LOSS),
    tag("train/loss/value_avg", &metric::RL_VALUE_LOSS),
    tag("train/val/clipfrac_avg", &metric::RL_VALUE_CLIP_FRACTION),
    tag("train/val/ratio", &metric::RL_IMPORTANCE_RATIO).with(&[MEAN]),
    // Reward functions by their names, and the rewards of DPO by the side that they are of.
    tag("train/rewards/{}/mean", &metric::RL_REWARD_COMPONENT)
        .capturing(COMPONENT)
        .with(&[MEAN]),
    tag("train/rewards/{}/std", &metric::RL_REWARD_COMPONENT)
        .capturing(COMPONENT)
        .with(&[STD]),
    tag("train/rewards/{}", &metric::RL_REWARD_COMPONENT)
        .capturing(COMPONENT)
        .with(&[MEAN]),
    tag("eval/rewards/{}/mean", &metric::RL_REWARD_COMPONENT)
        .capturing(COMPONENT)
        .with(&[MEAN, EVAL]),
    tag("eval/rewards/{}/std", &metric::RL_REWARD_COMPONENT)
        .capturing(COMPONENT)
        .with(&[STD, EVAL]),
    tag("eval/rewards/{}", &metric::RL_REWARD_COMPONENT)
        .capturing(COMPONENT)
        .with(&[MEAN, EVAL]),
    // Several data sets, by their names.
    tag("eval/{}_loss", &metric::EVAL_LOSS).capturing(DATA_SET),
    tag("eval/{}_runtime", &metric::EVAL_DURATION).capturing(DATA_SET),
    tag("eval/{}_samples_per_second", &metric::EVAL_THROUGHPUT_SAMPLES).capturing(DATA_SET),
    tag("eval/{}_steps_per_second", &metric::EVAL_THROUGHPUT_STEPS).capturing(DATA_SET),
];
