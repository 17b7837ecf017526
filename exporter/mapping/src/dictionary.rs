//! The dictionary of usual keys, `mappings/generic.yaml`: for printed logs, and for tags of files and clients whose trainer has
//! no row for them.

use pulsetrain_semconv::{Metric, metric};

use crate::{
    Mapping, MappingTarget, ResolvedMapping, Trainer, field_mapping::FieldMapping, key_path::known_tail,
    key_pattern::KeyPattern, trainer,
};

/// The mapping with the dictionary.
pub const DICTIONARY: &str = "generic";

/// The ends of tags whose numbers are the step. Other words for it can be counts of a part of the run.
const STEP_ENDS: [&str; 2] = ["global_step", "global_steps"];

/// The key of a duration that can also be the time since the start.
const TIME: &str = "time";

/// Returns the row of the dictionary for a tag, whose numbers have no unit. Numbers whose unit the tag does not show, and those
/// that can be something else, have none: a tag is always a measurement, so that no row drops it.
pub fn dictionary_row(tag: &str) -> Option<ResolvedMapping> {
    let mapping = trainer(DICTIONARY).mapping();
    if is_step(tag, mapping) {
        return std::sync::Arc::new(FieldMapping::step(KeyPattern::Exact(tag.to_owned()))).resolve(tag);
    }
    let tail = || mapping.resolve(None, &known_tail(tag, mapping)?);
    let found = mapping.resolve(None, tag).or_else(tail)?;
    let row = &found.mapping;
    let has_unit = row.conversion.or(row.without_suffix).is_some();
    let is_dropped = matches!(row.target, MappingTarget::Dropped(_));
    let is_duration = row.target.metric().is_some_and(is_step_duration);
    let is_unclear = is_duration && names_time(tag, mapping);
    (has_unit && !is_dropped && !is_unclear).then_some(found)
}

/// Returns whether programs of several trainers write a tag: the dictionary knows it, or it without its first part.
pub(crate) fn is_common(tag: &str) -> bool {
    let mapping = trainer(DICTIONARY).mapping();
    let knows = |tag: &str| mapping.resolve(None, tag).is_some() || known_tail(tag, mapping).is_some();
    knows(tag) || tag.split_once('/').is_some_and(|(_, rest)| knows(rest))
}

/// Returns whether the rows of a trainer's tags have a metric.
pub(crate) fn has_metric(trainer: &Trainer, metric: &Metric) -> bool {
    let mut rows = trainer.mapping().scalars().table().rows();
    rows.any(|row| {
        row.target
            .metric()
            .is_some_and(|own| own.ordinal == metric.ordinal)
    })
}

fn is_step(tag: &str, mapping: &Mapping) -> bool {
    let spelling = mapping.spelling(tag);
    mapping.step_rank(tag).is_some() && STEP_ENDS.iter().any(|end| spelling.ends_with(end))
}

fn is_step_duration(metric: &Metric) -> bool {
    metric.ordinal == metric::TRAIN_STEP_DURATION.ordinal
}

fn names_time(tag: &str, mapping: &Mapping) -> bool {
    let spelling = mapping.spelling(tag);
    spelling == TIME || mapping.without_prefixes(&spelling).any(|key| key == TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric_of(tag: &str) -> Option<&'static str> {
        let row = dictionary_row(tag)?;
        match &row.mapping.target {
            MappingTarget::Step => Some("step"),
            target => target.metric().map(|metric| metric.name),
        }
    }

    #[test]
    fn tags_have_the_metrics_of_printed_keys() {
        for (tag, metric) in [
            ("Loss/train", Some("train.loss")),
            ("Loss/test", Some("eval.loss")),
            ("Loss/validation", Some("eval.loss")),
            ("Accuracy/train", Some("train.accuracy")),
            ("Accuracy/val", Some("eval.accuracy")),
            ("acc", Some("train.accuracy")),
            ("val_acc", Some("eval.accuracy")),
            ("Loss/total_loss", Some("train.loss")),
            ("train/lr", Some("train.learning_rate")),
            ("optim/grad_norm", Some("train.grad_norm")),
            ("charts/episodic_return", Some("rl.trajectory_reward")),
            ("rollout/ep_rew_mean", Some("rl.trajectory_reward")),
            ("losses/policy_loss", Some("rl.policy_loss")),
            ("trainer/global_step", Some("step")),
            ("charts/SPS", None),
            ("time", None),
            ("train/time", None),
            ("gpu", None),
            ("memory", None),
            ("layer3/norm", None),
            ("histogram/weights", None),
        ] {
            assert_eq!(metric_of(tag), metric, "{tag}");
        }
    }

    #[test]
    fn tags_that_several_trainers_write_are_common() {
        for (tag, common) in [
            ("train/tokens_per_second", true),
            ("train/norm", true),
            ("learning/loss", true),
            ("eval/samples_per_second", true),
            ("train/simulated_acc_len", false),
            ("args/text_summary", false),
        ] {
            assert_eq!(is_common(tag), common, "{tag}");
        }
    }
}
