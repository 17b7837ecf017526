//! MaxText: standard error, standard output and its JSON lines.

use crate::{
    Imported,
    imported::{attributes, sample_text, time},
};

const STEPS: [(&str, &str, f64); 8] = [
    ("seconds", "train.step.duration", 1.0),
    ("TFLOP/s/device", "train.throughput.flops_per_device", 1e12),
    ("Tokens/s/device", "train.throughput.tokens_per_device", 1.0),
    ("total_weights", "train.total_weights", 1.0),
    ("loss", "train.loss", 1.0),
    ("lm_loss", "train.loss_component", 1.0),
    ("perplexity", "train.perplexity", 1.0),
    ("completed step", "train.global_step", 1.0),
];

/// The lines that tell of a step, each cut at its prefix.
fn step_lines(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.find("completed step: ").map(|at| &line[at..]))
        .collect()
}

fn value_of(line: &str, key: &str) -> f64 {
    let start = line.find(&format!(" {key}: ")).map(|at| at + 1).unwrap_or(0);
    let value = &line[start + key.len() + 2..];
    value
        .split(',')
        .next()
        .expect("there is one")
        .trim()
        .parse()
        .expect("it is a number")
}

#[test]
fn every_value_of_standard_error_arrives_once() {
    let text = sample_text("maxtext/demo.stderr");
    let imported = Imported::of("maxtext", "maxtext/demo.stderr");
    let lines = step_lines(&text);
    assert_eq!(lines.len(), 12);
    for (key, metric, factor) in STEPS {
        let expected: Vec<f64> = lines.iter().map(|line| value_of(line, key) * factor).collect();
        let found = if metric == "train.step.duration" {
            imported.growth(metric)
        } else {
            imported.values(metric)
        };
        assert_eq!(found.len(), expected.len(), "{metric}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found - expected).abs() <= 1e-9 * expected.abs().max(1e-3),
                "{metric}: {found} and {expected}"
            );
        }
    }
    // Seven values a step, five estimates of memory, the parameters and the devices.
    assert_eq!(imported.measured(), 12 * 7 + 5 + 2);
    imported.lost_nothing();
    assert_eq!(imported.unknown_names(), [""; 0]);
}

#[test]
fn every_option_and_fact_of_the_environment_is_an_event() {
    let text = sample_text("maxtext/demo.stderr");
    let imported = Imported::of("maxtext", "maxtext/demo.stderr");
    let options = text
        .lines()
        .filter(|line| line.contains("] Config param "))
        .count();
    let facts = text
        .lines()
        .filter(|line| line.contains("] System Information: "))
        .count();
    assert!(options > 700 && facts == 3);
    assert_eq!(imported.events.len(), options + facts);
}

#[test]
fn a_step_ends_at_the_time_of_its_line() {
    let imported = Imported::of("maxtext", "maxtext/demo.stderr");
    assert_eq!(imported.spans.len(), 12);
    let first = &imported.spans[0];
    assert_eq!(attributes(first)["train.step"], "0");
    // 2026-11-21 00:33:13.624218 UTC, and 2.041 s before.
    assert_eq!(time(first, "endTimeUnixNano"), 1_795_221_193_624_218_000);
    assert_eq!(time(first, "startTimeUnixNano"), 1_795_221_191_583_218_000);
}

#[test]
fn standard_output_tells_the_operations_of_a_step() {
    let imported = Imported::of("maxtext", "maxtext/demo.stdout");
    assert_eq!(imported.values("train.flops_per_step_per_device"), [0.0]);
    assert_eq!(imported.values("train.flops_share"), [0.875, 0.125]);
    assert_eq!(imported.counts.points, 3);
}

#[test]
fn every_value_of_the_json_lines_arrives_once() {
    for name in [
        "maxtext/demo.metrics.jsonl",
        "maxtext/metrics_step_000000_to_step_000004.txt",
        "maxtext/metrics_step_000005_to_step_000009.txt",
        "maxtext/metrics_step_000010_to_step_000011.txt",
    ] {
        let imported = Imported::of("maxtext-metrics", name);
        let rows: Vec<serde_json::Value> = sample_text(name)
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"))
            .collect();
        let values: usize = rows
            .iter()
            .map(|row| row.as_object().expect("an object").len() - 2)
            .sum();
        assert_eq!(imported.measured(), values, "{name}");
        for (key, metric) in [
            ("learning/loss", "train.loss"),
            ("learning/grad_norm", "train.grad_norm"),
            ("learning/raw_grad_norm", "train.raw_grad_norm"),
            ("learning/current_learning_rate", "train.learning_rate"),
            ("step", "train.global_step"),
        ] {
            let expected: Vec<f64> = rows
                .iter()
                .map(|row| row[key].as_f64().expect("a number"))
                .collect();
            assert_eq!(imported.values(metric), expected, "{metric} of {name}");
        }
        imported.lost_nothing();
    }
}

#[test]
fn the_json_lines_and_standard_error_agree_to_the_printed_precision() {
    let printed = Imported::of("maxtext", "maxtext/demo.stderr");
    let exact = Imported::of("maxtext-metrics", "maxtext/demo.metrics.jsonl");
    for metric in ["train.loss", "train.perplexity"] {
        let (printed, exact) = (printed.values(metric), exact.values(metric));
        assert_eq!(printed.len(), exact.len());
        for (printed, exact) in printed.iter().zip(exact) {
            assert!(
                (printed - exact).abs() <= 0.000_501,
                "{metric}: {printed} and {exact}"
            );
        }
    }
}
