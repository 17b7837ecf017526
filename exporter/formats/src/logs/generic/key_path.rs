//! Keys that are paths: `info.learner.default_policy.learner_stats.policy_loss`, `main/loss`.
//!
//! If no rule knows the path, its tail decides: the longest one that a rule knows, and of rules for any loss
//! ([`metric::TRAIN_LOSS_COMPONENT`]) the last part. A tail belongs to the first path of the log that has it: two paths never
//! share a series. A path through settings has no tail, and one through an evaluation is of the evaluation.

use pulsetrain_mapping::{Field, Mapping};
use pulsetrain_semconv::metric;
use std::collections::HashMap;

use super::{
    record_keys::{MAX_KEYS, step_rank},
    section::{EVAL_PREFIX, is_one_of, names_evaluation},
};

/// The delimiters of the parts of a path.
const DELIMITERS: [char; 2] = ['/', '.'];

/// Parts of a path to settings, which are no measurements.
const SETTINGS: [&str; 9] = [
    "config",
    "configs",
    "cfg",
    "args",
    "params",
    "hparams",
    "hyperparameters",
    "settings",
    "options",
];

/// Tails whose meaning depends on the path.
const VAGUE: [&str; 19] = [
    "time", "duration", "dt", "ms", "wall", "runtime", "data", "norm", "forward", "backward", "fwd", "bwd",
    "it", "update", "updates", "tokens", "samples", "reward", "rewards",
];

/// Ends of paths to a mean, which have the metric of the part before them.
const MEANS: [&str; 2] = ["avg", "mean"];

/// Words in paths to durations, whose parts named `step` are no steps.
const TIMES: [&str; 4] = ["time", "timing", "timer", "perf"];

/// The most fields of a record whose paths are compared with each other.
const MAX_FIELDS: usize = 512;

/// The paths of a log.
#[derive(Debug, Default)]
pub(super) struct KeyPaths {
    /// The path that each tail belongs to; `None` if the first record with it has several.
    owners: HashMap<String, Option<String>>,
}

impl KeyPaths {
    /// Returns the tail that decides the metric of a key in a record.
    pub(super) fn tail(&mut self, key: &str, fields: &[Field<'_>], mapping: &Mapping) -> Option<String> {
        let tail = known_tail(key, mapping)?;
        if self.owners.len() >= MAX_KEYS || fields.len() > MAX_FIELDS {
            return None;
        }
        if !self.owners.contains_key(&tail) {
            let is_other = |other: &str| {
                other != key
                    && (mapping.spelling(other) == mapping.spelling(&tail)
                        || known_tail(other, mapping).is_some_and(|other| other == tail))
            };
            let is_shared = fields.iter().any(|(other, _)| is_other(other));
            self.owners
                .insert(tail.clone(), (!is_shared).then(|| key.to_owned()));
        }
        let owner = self.owners.get(&tail)?.as_ref();
        owner.is_some_and(|owner| owner == key).then_some(tail)
    }
}

/// Returns the tail of a path that a rule knows, if no rule knows the path itself.
pub(super) fn known_tail(key: &str, mapping: &Mapping) -> Option<String> {
    if !key.contains(DELIMITERS) || key.contains(char::is_whitespace) {
        return None;
    }
    let mut parts: Vec<&str> = key.split(DELIMITERS).collect();
    let is_setting = parts
        .iter()
        .any(|part| part.is_empty() || is_one_of(&SETTINGS, part));
    if is_setting || knows(key, mapping) == Some(true) || step_rank(mapping, key).is_some() {
        return None;
    }
    if parts.len() > 2 && parts.last().is_some_and(|last| is_one_of(&MEANS, last)) {
        parts.pop();
    }
    let mut tails = (1..parts.len()).map(|start| {
        let is_evaluation = parts[..start].iter().any(|part| names_evaluation(part));
        let prefix = if is_evaluation { EVAL_PREFIX } else { "" };
        (start, [prefix, &parts[start..].join("/")].concat())
    });
    let (start, last) = tails
        .clone()
        .find(|(_, tail)| knows(tail, mapping) == Some(true))
        .or_else(|| tails.next_back())?;
    let is_vague = start + 1 == parts.len() && is_one_of(&VAGUE, parts[start]);
    let is_of_time = parts
        .iter()
        .any(|part| TIMES.iter().any(|time| part.contains(time)));
    let is_step = !is_of_time && step_rank(mapping, &last).is_some();
    let is_known = knows(&last, mapping).is_some() || is_step;
    (is_known && !is_vague).then_some(last)
}

/// Returns whether a rule knows a key other than as a part of the loss; `None` if no rule knows it.
fn knows(key: &str, mapping: &Mapping) -> Option<bool> {
    let resolved = mapping.resolve(None, key)?;
    let metric = resolved.mapping.target.metric();
    Some(metric.is_none_or(|metric| metric.ordinal != metric::TRAIN_LOSS_COMPONENT.ordinal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_mapping::{FieldValue, trainer};

    #[test]
    fn longest_known_tail_of_a_path_decides() {
        let mapping = trainer("generic").mapping();
        for (path, tail) in [
            (
                "info.learner.default_policy.learner_stats.policy_loss",
                Some("policy_loss"),
            ),
            ("main/loss", Some("loss")),
            ("validation/main/loss", Some("eval loss")),
            ("learner.critic.loss", Some("critic/loss")),
            ("losses/kl_loss", Some("kl_loss")),
            ("system/step", Some("step")),
            ("config.lr", None),
            ("timers/sample/time", None),
            ("timeperf/step", None),
            ("actor/entropy/avg", Some("entropy")),
            ("train/loss", None),
            ("a/b", None),
            ("loss", None),
        ] {
            assert_eq!(known_tail(path, mapping).as_deref(), tail, "{path}");
        }
    }

    #[test]
    fn tail_belongs_to_one_path() {
        let mapping = trainer("generic").mapping();
        let fields = |keys: &[&'static str]| {
            let fields = keys.iter().map(|key| ((*key).into(), FieldValue::Number(1.0)));
            fields.collect::<Vec<Field<'_>>>()
        };
        let mut paths = KeyPaths::default();
        assert_eq!(
            paths.tail("a/loss", &fields(&["a/loss", "b/loss"]), mapping),
            None
        );
        assert_eq!(
            paths.tail("b/lr", &fields(&["b/lr", "loss"]), mapping).as_deref(),
            Some("lr")
        );
        assert_eq!(paths.tail("c/lr", &fields(&["c/lr"]), mapping), None);
    }
}
