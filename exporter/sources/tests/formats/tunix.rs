//! Tunix: standard error of two runs of reinforcement learning.

use crate::{Imported, imported::sample_text};

const SAMPLES: [&str; 2] = [
    "tunix/colocated/stderr_absl.log",
    "tunix/rollout1_actor2/stderr_absl.log",
];

/// The number behind `key` in every line that has it.
fn values_of(text: &str, key: &str) -> Vec<f64> {
    text.lines()
        .filter(|line| line.contains("] Train step "))
        .filter_map(|line| line.split_once(&format!("{key}: ")))
        .map(|(_, rest)| rest.split(' ').next().expect("a word").parse().expect("a number"))
        .collect()
}

#[test]
fn every_value_arrives_once() {
    for name in SAMPLES {
        let text = sample_text(name);
        let imported = Imported::of("tunix", name);
        let mut count = 0;
        for (key, metric) in [
            ("training loss", "train.loss"),
            ("training perplexity", "train.perplexity"),
            ("eval loss", "eval.loss"),
            ("eval perplexity", "eval.perplexity"),
        ] {
            let expected = values_of(&text, key);
            assert!(!expected.is_empty(), "{key} of {name}");
            assert_eq!(imported.values(metric), expected, "{metric} of {name}");
            count += expected.len();
        }
        count += text.matches("] Compiled train_step cache size: ").count();
        assert_eq!(imported.measured(), count, "{name}");
        let loops = text.matches("] Train loop finished in: ").count();
        assert_eq!(imported.events.len(), loops + 6, "{name}");
        imported.lost_nothing();
        assert_eq!(imported.unknown_names(), [""; 0], "{name}");
    }
}

#[test]
fn prompts_and_completions_do_not_leave() {
    for name in SAMPLES {
        let imported = Imported::of("tunix", name);
        let all = format!("{:?}", imported.events);
        assert!(!all.contains("hello there") && !all.contains("Morgane"), "{name}");
    }
}
