//! Hugging Face's Trainer: standard output of version 5, and `trainer_state.json`.

use serde_json::Value;

use crate::{Imported, imported::sample_text};

#[test]
fn every_value_of_standard_output_arrives_once() {
    let text = sample_text("hf-trainer/stdout.log");
    let imported = Imported::of("hf-trainer", "hf-trainer/stdout.log");
    let rows: Vec<Value> = text
        .lines()
        .filter(|line| line.starts_with("{'"))
        .map(|line| serde_json::from_str(&line.replace('\'', "\"")).expect("a flat dictionary"))
        .collect();
    assert_eq!(rows.len(), 7);
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    for (key, metric) in [
        ("loss", "train.loss"),
        ("grad_norm", "train.grad_norm"),
        ("epoch", "train.epoch"),
        ("train_tokens_per_second", "train.throughput.tokens"),
        ("eval_loss", "eval.loss"),
        ("num_input_tokens_seen", "train.tokens"),
    ] {
        let expected: Vec<f64> = rows.iter().filter_map(|row| number(&row[key])).collect();
        assert_eq!(imported.values(metric), expected, "{metric}");
    }
    let count: usize = rows
        .iter()
        .map(|row| row.as_object().expect("an object").len())
        .sum();
    assert_eq!(imported.measured(), count);
    imported.lost_nothing();
    assert_eq!(imported.unknown_names(), [""; 0]);
}

#[test]
fn every_value_of_the_state_arrives_once_with_every_digit() {
    let state: Value = serde_json::from_str(&sample_text("hf-trainer/trainer_state.json")).expect("JSON");
    let history = state["log_history"].as_array().expect("a list");
    let imported = Imported::of("hf-trainer-state", "hf-trainer/trainer_state.json");
    for (key, metric) in [
        ("loss", "train.loss"),
        ("learning_rate", "train.learning_rate"),
        ("eval_loss", "eval.loss"),
        ("epoch", "train.epoch"),
    ] {
        let expected: Vec<f64> = history.iter().filter_map(|entry| entry[key].as_f64()).collect();
        assert_eq!(imported.values(metric), expected, "{metric}");
    }
    assert_eq!(imported.values("train.global_step"), [5.0, 10.0, 15.0, 20.0]);
    assert_eq!(imported.values("train.completed_flops"), [391_249_920.0]);
    let count: usize = history
        .iter()
        .map(|entry| entry.as_object().expect("an object").len() - 1)
        .sum();
    assert_eq!(imported.measured(), count + 1);
    imported.lost_nothing();
}

#[test]
fn both_outputs_agree_to_the_printed_precision() {
    let printed = Imported::of("hf-trainer", "hf-trainer/stdout.log");
    let exact = Imported::of("hf-trainer-state", "hf-trainer/trainer_state.json");
    for metric in ["train.loss", "train.grad_norm", "eval.loss"] {
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
