//! Keys that are paths: `info.learner.default_policy.learner_stats.policy_loss`, `main/loss`.
//!
//! If no rule knows the path, its tail decides: the longest one that a rule knows, and of rules for any loss
//! ([`metric::TRAIN_LOSS_COMPONENT`]) the last part. A path through settings has no tail, and one through an evaluation is of the
//! evaluation.

use pulsetrain_semconv::metric;

use crate::{
    Mapping,
    split::{EVAL_PREFIX, is_one_of, names_evaluation},
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

/// Returns the tail of a path that a rule knows, if no rule knows the path itself.
pub fn known_tail(key: &str, mapping: &Mapping) -> Option<String> {
    if !key.contains(DELIMITERS) || key.contains(char::is_whitespace) {
        return None;
    }
    let mut parts: Vec<&str> = key.split(DELIMITERS).collect();
    let is_setting = parts
        .iter()
        .any(|part| part.is_empty() || is_one_of(&SETTINGS, part));
    if is_setting || knows(key, mapping) == Some(true) || mapping.step_rank(key).is_some() {
        return None;
    }
    if parts.len() > 2 && parts.last().is_some_and(|last| is_one_of(&MEANS, last)) {
        parts.pop();
    }
    let mut tails = (1..parts.len()).map(|start| {
        let is_evaluation = parts[..start].iter().any(|part| is_of_evaluation(part));
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
    let is_step = !is_of_time && mapping.step_rank(&last).is_some();
    let is_known = knows(&last, mapping).is_some() || is_step;
    (is_known && !is_vague).then_some(last)
}

/// Returns whether a part of a path is of an evaluation. `evaluate_response` is a function, which does not name one.
fn is_of_evaluation(part: &str) -> bool {
    let is_function = part
        .split_once('_')
        .is_some_and(|(verb, _)| is_one_of(&["evaluate", "validate"], verb));
    names_evaluation(part) && !is_function
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
    use crate::trainer;

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
            ("reward/evaluate_response/avg_reward", Some("avg_reward")),
            ("scores/validate_batch/grad_norm", Some("grad_norm")),
            ("validation_set/main/loss", Some("eval loss")),
            ("ppo/task_reward/avg", Some("task_reward")),
            ("train/loss", None),
            ("a/b", None),
            ("loss", None),
        ] {
            assert_eq!(known_tail(path, mapping).as_deref(), tail, "{path}");
        }
    }
}
