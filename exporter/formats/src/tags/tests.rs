//! What the tables must be so that nobody's numbers end up in another's series.

use std::collections::{BTreeMap, BTreeSet};

use super::{row::Becomes, *};

/// Two names of one quantity: the pass over the data, said with a step and with an evaluation; the prefix that may be empty;
/// the name that older releases gave it, or another trainer of one library; a value in the summary and not in the history.
const SAME: [&str; 34] = [
    "train_samples_per_second",
    "train_steps_per_second",
    "train_runtime",
    "train_loss",
    "total_flos",
    "train/lr",
    "train/completion_length",
    "train/clip_ratio",
    "train/policy/clipfrac_avg",
    "train/policy/entropy_avg",
    "train/loss/policy_avg",
    "train/accuracy",
    "train/mean_reward",
    "train/objective/rlhf_reward",
    "train/objective/kl",
    "eval/accuracy",
    "eval/mean_reward",
    "lr/Adam",
    "wps",
    "validation_metrics/memory/max_active(GiB)",
    "validation_metrics/memory/max_reserved(GiB)",
    "validation_metrics/memory/max_reserved(%)",
    "/train/step_time_sec",
    "/train/steps_per_sec",
    "eval/epoch",
    "eval/dpo_reward_accuracy",
    "learning/dpo_reward_accuracy",
    "goodput",
    "/train/loss",
    "/eval/loss",
    "/train/perplexity",
    "/eval/perplexity",
    "/train/learning_rate",
    "/train/grad_norm",
];

fn series(row: &TagRow) -> Option<String> {
    let (Becomes::Value(metric) | Becomes::Total(metric)) = row.becomes else {
        return None;
    };
    row.captures
        .is_empty()
        .then(|| format!("{} {:?}", metric.name, row.attributes))
}

#[test]
fn no_two_tags_of_a_system_fill_the_same_series() {
    for system in system::SYSTEMS {
        let mut taken = BTreeMap::new();
        for row in system.rows.iter().filter(|row| !SAME.contains(&row.pattern)) {
            let Some(series) = series(row) else { continue };
            let before = taken.insert(series, row.pattern);
            assert_eq!(before, None, "{} of {}", row.pattern, system.name);
        }
    }
}

#[test]
fn a_tag_is_in_a_table_once() {
    for system in system::SYSTEMS {
        let mut patterns = BTreeSet::new();
        for row in system.rows {
            let captures: Vec<_> = row.captures.iter().map(|(_, attribute)| attribute.name).collect();
            assert!(
                patterns.insert((row.pattern, captures)),
                "{} of {}",
                row.pattern,
                system.name
            );
        }
    }
}

/// What is only in a summary of wandb, whose keys are all seen before the first of them is taken in.
const IN_SUMMARY: [&str; 1] = ["train_loss"];

/// A tag may come before the sign that gives its system away; then it was taken for anyone's.
#[test]
fn what_means_the_same_in_any_program_does_in_every_system() {
    for system in system::SYSTEMS {
        for row in system
            .rows
            .iter()
            .filter(|row| !IN_SUMMARY.contains(&row.pattern))
        {
            let Some(shared) = shared::ROWS.iter().find(|shared| shared.pattern == row.pattern) else {
                continue;
            };
            assert_eq!(row.becomes, shared.becomes, "{} of {}", row.pattern, system.name);
            assert_eq!(
                row.conversion, shared.conversion,
                "{} of {}",
                row.pattern, system.name
            );
        }
    }
}

#[test]
fn the_signs_of_a_system_are_in_no_other_table() {
    for system in system::SYSTEMS {
        for other in system::SYSTEMS.iter().filter(|other| other.name != system.name) {
            for row in other.rows {
                let claims = system
                    .signs
                    .iter()
                    .find(|sign| pattern::matches(sign, row.pattern));
                assert_eq!(
                    claims, None,
                    "{} of {} is a sign of {}",
                    row.pattern, other.name, system.name
                );
            }
        }
    }
}

#[test]
fn captures_are_attributes_that_their_metric_carries() {
    for row in system::SYSTEMS.iter().flat_map(|system| system.rows) {
        let (Becomes::Value(metric) | Becomes::Total(metric)) = row.becomes else {
            continue;
        };
        let given = row.attributes.iter().map(|(attribute, _)| *attribute);
        for attribute in row.captures.iter().map(|(_, attribute)| *attribute).chain(given) {
            let is_known = metric
                .attributes
                .iter()
                .any(|used| used.attribute.name == attribute.name);
            assert!(
                is_known,
                "{} of {} is none of {}",
                attribute.name, row.pattern, metric.name
            );
        }
    }
}

#[test]
fn every_system_has_a_name_of_the_registry() {
    let known: BTreeSet<&str> = pulsetrain_semconv::metric::ALL
        .iter()
        .flat_map(|metric| metric.upstream)
        .map(|upstream| upstream.system)
        .collect();
    for system in system::SYSTEMS {
        assert!(known.contains(system.name), "{}", system.name);
    }
}
