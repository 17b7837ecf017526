//! KempnerForge: standard output of a dense model.

use crate::{Imported, imported::sample_text};

const KEYS: [(&str, &str, f64); 8] = [
    ("loss", "train.loss", 1.0),
    ("lr", "train.learning_rate", 1.0),
    ("grad_norm", "train.grad_norm", 1.0),
    ("tok/s", "train.throughput.tokens", 1.0),
    ("mfu", "train.mfu", 0.01),
    ("step_time", "train.step.duration", 1.0),
    ("eval/loss", "eval.loss", 1.0),
    ("eval/perplexity", "eval.perplexity", 1.0),
];

/// What the lines say of `key`, in order.
fn values_of(text: &str, key: &str) -> Vec<f64> {
    text.lines()
        .filter(|line| line.contains("[step "))
        .flat_map(|line| line[line.find("] ").map_or(0, |at| at + 2)..].split(['|', ' ']))
        .filter_map(|part| part.trim().strip_prefix(key)?.strip_prefix('='))
        .map(|value| {
            value
                .trim_end_matches(['%', 's'])
                .replace(',', "")
                .parse()
                .expect("a number")
        })
        .collect()
}

#[test]
fn every_value_arrives_once() {
    let text = sample_text("kempnerforge/dense.stdout");
    let imported = Imported::of("kempnerforge", "kempnerforge/dense.stdout");
    let mut count = 0;
    for (key, metric, factor) in KEYS {
        let expected = values_of(&text, key);
        assert!(expected.len() >= 3, "{key}");
        let found = if metric == "train.step.duration" {
            imported.growth(metric)
        } else {
            imported.values(metric)
        };
        assert_eq!(found.len(), expected.len(), "{metric}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                (found - expected * factor).abs() < 1e-9 * expected.abs().max(1.0),
                "{metric}: {found} and {expected}"
            );
        }
        count += expected.len();
    }
    // Used and total memory of 13 steps, and the model's parameters.
    assert_eq!(imported.measured(), count + 2 * 13 + 1);
    assert_eq!(imported.values("run.parameters"), [262_464.0]);
    assert_eq!(imported.values("train.steps").last(), Some(&60.0));
    imported.lost_nothing();
    assert_eq!(imported.unknown_names(), [""; 0]);
}

#[test]
fn configuration_and_messages_are_events() {
    let imported = Imported::of("kempnerforge", "kempnerforge/dense.stdout");
    let named = |name: &str| {
        imported
            .events
            .iter()
            .filter(|event| event["eventName"] == name)
            .count()
    };
    assert_eq!((named("run.config"), named("run.message")), (1, 4));
    assert_eq!(imported.events.len(), 5);
}
