//! The keys of the Trainer's dictionaries, TRL's among them, and what they mean.
//!
//! An evaluation has `eval_` before its keys; of several data sets each has its name behind it (`eval_squad_loss`), and
//! `evaluate(metric_key_prefix="test")` has `test_`. All of those are told apart by `data.name`.

use std::borrow::Cow;

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use super::super::{
    fields::{Field, Fields, Written},
    row::{Row, row},
};
use pulsetrain_record::Recorder;

const fn statistic(name: &'static str) -> Attribute<'static> {
    (&attribute::RL_STATISTIC, Out::Text(name))
}

const fn component(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_COMPONENT, Out::Text(name))
}

const fn of_pair(name: &'static str) -> Attribute<'static> {
    (&attribute::RL_COMPONENT, Out::Text(name))
}

const fn named(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_CUSTOM_NAME, Out::Text(name))
}

/// A key that has no metric: its values keep its name.
macro_rules! kept {
    ($key:literal) => {
        row($key, &metric::TRAIN_CUSTOM).with(&[named(concat!("hf_trainer.", $key))])
    };
}

/// What is said of an evaluation by a metric that training has too.
const EVAL: Attribute<'static> = (&attribute::DATA_SPLIT, Out::Text("eval"));
const MEAN: Attribute<'static> = statistic("mean");
const STD: Attribute<'static> = statistic("std");
const MIN: Attribute<'static> = statistic("min");
const MAX: Attribute<'static> = statistic("max");

const CHOSEN: &[Attribute<'static>] = &[of_pair("chosen"), MEAN];
const REJECTED: &[Attribute<'static>] = &[of_pair("rejected"), MEAN];
const EVAL_CHOSEN: &[Attribute<'static>] = &[of_pair("chosen"), MEAN, EVAL];
const EVAL_REJECTED: &[Attribute<'static>] = &[of_pair("rejected"), MEAN, EVAL];
const GIB: f64 = (1_u64 << 30) as f64;

/// The keys of ms-swift whose values are durations.
pub(super) const ELAPSED: &str = "elapsed_time";
pub(super) const REMAINING: &str = "remaining_time";

/// The keys, `{}` where a part of one varies.
pub(super) static ROWS: &[Row] = &[
    row("loss", &metric::TRAIN_LOSS),
    row("grad_norm", &metric::TRAIN_GRAD_NORM),
    row("learning_rate", &metric::TRAIN_LEARNING_RATE),
    row("epoch", &metric::TRAIN_EPOCH),
    row("num_input_tokens_seen", &metric::TRAIN_TOKENS).running_total(),
    row("train_runtime", &metric::TRAIN_ELAPSED_TIME),
    row("train_tokens_per_second", &metric::TRAIN_THROUGHPUT_TOKENS),
    row("train_samples_per_second", &metric::TRAIN_THROUGHPUT_SAMPLES),
    row("train_steps_per_second", &metric::TRAIN_THROUGHPUT_STEPS),
    row("train_loss", &metric::TRAIN_MEAN_LOSS),
    row("total_flos", &metric::TRAIN_COMPLETED_FLOPS).running_total(),
    row("eval_loss", &metric::EVAL_LOSS),
    row("eval_accuracy", &metric::EVAL_ACCURACY),
    row("eval_perplexity", &metric::EVAL_PERPLEXITY),
    row("eval_runtime", &metric::EVAL_DURATION),
    row("eval_samples_per_second", &metric::EVAL_THROUGHPUT_SAMPLES),
    row("eval_steps_per_second", &metric::EVAL_THROUGHPUT_STEPS),
    // Of `trainer_state.json`.
    kept!("best_metric"),
    kept!("best_global_step"),
    // Of an evaluation before any training, and of one on TPUs.
    kept!("eval_model_preparation_time"),
    kept!("eval_jit_compilation_time"),
    // All trainers of TRL.
    row("num_tokens", &metric::TRAIN_REAL_TOKENS).running_total(),
    row("entropy", &metric::RL_ENTROPY).with(&[MEAN]),
    row("mean_token_accuracy", &metric::TRAIN_ACCURACY),
    row("aux_loss", &metric::MOE_AUX_LOSS),
    row("lr", &metric::TRAIN_LEARNING_RATE),
    // What it says again of training, in the middle of an evaluation.
    kept!("eval_num_tokens"),
    row("eval_entropy", &metric::RL_ENTROPY).with(&[MEAN, EVAL]),
    row("eval_mean_token_accuracy", &metric::EVAL_ACCURACY),
    // Of GRPO and RLOO.
    row("step_time", &metric::TRAIN_STEP_DURATION),
    row("reward", &metric::RL_REWARD).with(&[MEAN]),
    row("reward_std", &metric::RL_REWARD).with(&[STD]),
    row("kl", &metric::RL_KL).with(&[MEAN]),
    row("policy_loss", &metric::RL_POLICY_LOSS),
    row("completion_length", &metric::RL_COMPLETION_LENGTH).with(&[MEAN]),
    row("completions/mean_length", &metric::RL_COMPLETION_LENGTH).with(&[MEAN]),
    row("completions/min_length", &metric::RL_COMPLETION_LENGTH).with(&[MIN]),
    row("completions/max_length", &metric::RL_COMPLETION_LENGTH).with(&[MAX]),
    row("completions/clipped_ratio", &metric::RL_COMPLETION_CLIP_RATIO),
    row("clip_ratio", &metric::RL_POLICY_CLIP_FRACTION),
    row("clip_ratio/region_mean", &metric::RL_POLICY_CLIP_FRACTION),
    row("clip_ratio/low_mean", &metric::RL_POLICY_CLIP_LOWER_FRACTION),
    row(
        "sampling/importance_sampling_ratio/mean",
        &metric::RL_IMPORTANCE_RATIO,
    )
    .with(&[MEAN]),
    row(
        "sampling/importance_sampling_ratio/min",
        &metric::RL_IMPORTANCE_RATIO,
    )
    .with(&[MIN]),
    row(
        "sampling/importance_sampling_ratio/max",
        &metric::RL_IMPORTANCE_RATIO,
    )
    .with(&[MAX]),
    row(
        "sampling/sampling_logp_difference/mean",
        &metric::RL_LOGP_DIFFERENCE,
    )
    .with(&[MEAN]),
    row(
        "sampling/sampling_logp_difference/max",
        &metric::RL_LOGP_DIFFERENCE,
    )
    .with(&[MAX]),
    row("eval_reward", &metric::RL_REWARD).with(&[MEAN, EVAL]),
    row("eval_reward_std", &metric::RL_REWARD).with(&[STD, EVAL]),
    row("eval_kl", &metric::RL_KL).with(&[MEAN, EVAL]),
    row("eval_completions/mean_length", &metric::RL_COMPLETION_LENGTH).with(&[MEAN, EVAL]),
    row("eval_completions/min_length", &metric::RL_COMPLETION_LENGTH).with(&[MIN, EVAL]),
    row("eval_completions/max_length", &metric::RL_COMPLETION_LENGTH).with(&[MAX, EVAL]),
    row(
        "eval_completions/clipped_ratio",
        &metric::RL_COMPLETION_CLIP_RATIO,
    )
    .with(&[EVAL]),
    row(
        "completions/mean_terminated_length",
        &metric::RL_TERMINATED_LENGTH,
    )
    .with(&[MEAN]),
    row("completions/min_terminated_length", &metric::RL_TERMINATED_LENGTH).with(&[MIN]),
    row("completions/max_terminated_length", &metric::RL_TERMINATED_LENGTH).with(&[MAX]),
    row("frac_reward_zero_std", &metric::RL_ZERO_VARIANCE_FRACTION),
    row("clip_ratio/high_mean", &metric::RL_POLICY_CLIP_UPPER_FRACTION),
    kept!("clip_ratio/low_min"),
    kept!("clip_ratio/high_max"),
    kept!("cispo_clip_ratio"),
    kept!("vespo/phi_seq_mean"),
    kept!("entropy_coef"),
    row("tools/call_frequency", &metric::RL_TOOL_CALLS).with(&[MEAN]),
    kept!("tools/failure_frequency"),
    row("num_turns", &metric::RL_TURNS).with(&[MEAN]),
    row("teacher_kl", &metric::RL_TEACHER_KL).with(&[MEAN]),
    row("beta", &metric::RL_KL_COEFFICIENT),
    // Of DPO and its kin: ORPO, CPO, KTO, BCO.
    row("rewards/accuracies", &metric::TRAIN_ACCURACY).with(&[component("dpo")]),
    row("nll_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("lm")]),
    row("eval_rewards/accuracies", &metric::EVAL_ACCURACY).with(&[component("dpo")]),
    row("eval_nll_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("lm")]),
    row("logps/chosen", &metric::RL_LOGP).with(CHOSEN),
    row("logps/rejected", &metric::RL_LOGP).with(REJECTED),
    row("logits/chosen", &metric::RL_LOGIT).with(CHOSEN),
    row("logits/rejected", &metric::RL_LOGIT).with(REJECTED),
    row("eval_logps/chosen", &metric::RL_LOGP).with(EVAL_CHOSEN),
    row("eval_logps/rejected", &metric::RL_LOGP).with(EVAL_REJECTED),
    row("eval_logits/chosen", &metric::RL_LOGIT).with(EVAL_CHOSEN),
    row("eval_logits/rejected", &metric::RL_LOGIT).with(EVAL_REJECTED),
    kept!("log_odds_ratio"),
    kept!("log_odds_chosen"),
    // Of the trainer of reward models.
    row("accuracy", &metric::TRAIN_ACCURACY),
    row("margin", &metric::RL_REWARD_COMPONENT).with(&[of_pair("margins"), MEAN]),
    row("mean_reward", &metric::RL_REWARD).with(&[MEAN]),
    row("min_reward", &metric::RL_REWARD).with(&[MIN]),
    row("max_reward", &metric::RL_REWARD).with(&[MAX]),
    row("eval_mean_reward", &metric::RL_REWARD).with(&[MEAN, EVAL]),
    row("eval_min_reward", &metric::RL_REWARD).with(&[MIN, EVAL]),
    row("eval_max_reward", &metric::RL_REWARD).with(&[MAX, EVAL]),
    // Of PPO.
    row("objective/rlhf_reward", &metric::RL_REWARD).with(&[MEAN]),
    row("objective/scores", &metric::RL_SCORE).with(&[MEAN]),
    row("objective/kl", &metric::RL_KL).with(&[MEAN]),
    row("policy/approxkl_avg", &metric::RL_POLICY_KL).with(&[MEAN]),
    row("policy/clipfrac_avg", &metric::RL_POLICY_CLIP_FRACTION),
    row("policy/entropy_avg", &metric::RL_ENTROPY).with(&[MEAN]),
    row("loss/policy_avg", &metric::RL_POLICY_LOSS),
    row("loss/value_avg", &metric::RL_VALUE_LOSS),
    row("val/clipfrac_avg", &metric::RL_VALUE_CLIP_FRACTION),
    row("val/ratio", &metric::RL_IMPORTANCE_RATIO).with(&[MEAN]),
    kept!("objective/entropy"),
    kept!("objective/non_score_reward"),
    kept!("val/ratio_var"),
    kept!("val/num_eos_tokens"),
    kept!("eps"),
    kept!("episode"),
    // Of axolotl.
    row("ppl", &metric::TRAIN_PERPLEXITY),
    row("eval_ppl", &metric::EVAL_PERPLEXITY),
    row("memory/max_active (GiB)", &metric::MEMORY_FRAMEWORK_PEAK).times(GIB),
    row("memory/max_allocated (GiB)", &metric::MEMORY_FRAMEWORK_ALLOCATED).times(GIB),
    row("memory/device_reserved (GiB)", &metric::MEMORY_FRAMEWORK_RESERVED).times(GIB),
    row(
        "tokens/train_per_sec_per_gpu",
        &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE,
    ),
    row("tokens/total", &metric::TRAIN_TOKENS).running_total(),
    row("tokens/trainable", &metric::TRAIN_REAL_TOKENS).running_total(),
    // Of ms-swift.
    row("token_acc", &metric::TRAIN_ACCURACY),
    row("eval_token_acc", &metric::EVAL_ACCURACY),
    row("load_balancing_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("moe_lb")]),
    row("memory(GiB)", &metric::MEMORY_FRAMEWORK_RESERVED).times(GIB),
    row("train_speed(s/it)", &metric::TRAIN_SMOOTHED_STEP_TIME),
    row(ELAPSED, &metric::TRAIN_ELAPSED_TIME),
    row(REMAINING, &metric::TRAIN_ETA),
    // Reward functions by their names, and the rewards of DPO by the side that they are of.
    row("rewards/{}", &metric::RL_REWARD_COMPONENT).with(&[MEAN]),
    row("rewards/{}/mean", &metric::RL_REWARD_COMPONENT).with(&[MEAN]),
    row("rewards/{}/std", &metric::RL_REWARD_COMPONENT).with(&[STD]),
    row("eval_rewards/{}", &metric::RL_REWARD_COMPONENT).with(&[MEAN, EVAL]),
    row("eval_rewards/{}/mean", &metric::RL_REWARD_COMPONENT).with(&[MEAN, EVAL]),
    row("eval_rewards/{}/std", &metric::RL_REWARD_COMPONENT).with(&[STD, EVAL]),
];

/// Records dictionaries.
#[derive(Debug)]
pub(super) struct Dictionaries {
    fields: Fields,
}

impl Default for Dictionaries {
    fn default() -> Self {
        Self {
            fields: Fields::of("hf_trainer"),
        }
    }
}

impl Dictionaries {
    /// The same dictionaries of a history that is read again and again: its steps start over in one attempt.
    pub(super) fn of_one_attempt(self) -> Self {
        Self {
            fields: self.fields.of_one_attempt(),
        }
    }

    /// Records that a step is done.
    pub(super) fn step(&mut self, time_unix_nanos: u64, step: i64, recorder: &mut Recorder<'_>) {
        self.fields.step(time_unix_nanos, step, recorder);
    }

    /// Records all that a dictionary says.
    pub(super) fn record(
        &mut self,
        written: Written,
        mut fields: Vec<Field<'_>>,
        recorder: &mut Recorder<'_>,
    ) {
        let prefix = data_set(&fields).map(str::to_owned);
        let prefix = prefix.as_deref();
        if prefix.is_some() || fields.iter().any(|(key, _)| has_name(key)) {
            fields.retain_mut(|(key, value)| {
                let Some((known, attribute, name)) = varying(key, prefix) else {
                    return true;
                };
                let field = [(Cow::Borrowed(known), value.clone())];
                let attributes = [(attribute, Out::Text(name))];
                self.fields.record(ROWS, written, &field, &attributes, recorder);
                false
            });
        }
        self.fields.record(ROWS, written, &fields, &[], recorder);
    }
}

/// What stands before the keys of an evaluation of one data set of several: `eval_squad` of `eval_squad_runtime`.
fn data_set<'f>(fields: &'f [Field<'_>]) -> Option<&'f str> {
    let prefixes = fields.iter().filter_map(|(key, _)| key.strip_suffix("_runtime"));
    prefixes
        .into_iter()
        .find(|prefix| !matches!(*prefix, "train" | "eval"))
}

/// Whether a part of a key may be the name of a reward function.
fn has_name(key: &str) -> bool {
    key.starts_with("rewards/") || key.starts_with("eval_rewards/")
}

/// A key of which a part varies, as the table has it, with the attribute that the part is and the part.
fn varying<'k>(
    key: &'k str,
    data_set: Option<&'k str>,
) -> Option<(&'static str, &'static pulsetrain_semconv::Attribute, &'k str)> {
    if let Some(rest) = data_set.and_then(|prefix| key.strip_prefix(prefix)?.strip_prefix('_')) {
        let is_it =
            |row: &Row| row.key().strip_prefix("eval_") == Some(rest) && row.may_carry(&attribute::DATA_NAME);
        let known = row_of(is_it)?;
        let prefix = data_set?;
        let name = prefix.strip_prefix("eval_").unwrap_or(prefix);
        return Some((known, &attribute::DATA_NAME, name));
    }
    if !has_name(key) || row_of(|row| row.key() == key).is_some() {
        return None;
    }
    let (before, name) = key.split_once("rewards/")?;
    let (name, statistic) = match name.rsplit_once('/') {
        Some((name, statistic @ ("mean" | "std"))) => (name, statistic),
        _ => (name, ""),
    };
    let known = match (before, statistic) {
        ("", "") => "rewards/{}",
        ("", "mean") => "rewards/{}/mean",
        ("", _) => "rewards/{}/std",
        (_, "") => "eval_rewards/{}",
        (_, "mean") => "eval_rewards/{}/mean",
        (_, _) => "eval_rewards/{}/std",
    };
    Some((known, &attribute::RL_COMPONENT, name))
}

fn row_of(is_it: impl Fn(&Row) -> bool) -> Option<&'static str> {
    ROWS.iter().find(|row| is_it(row)).map(Row::key)
}
