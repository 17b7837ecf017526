//! TorchSpec: standard error with performance metrics.

use crate::{Imported, imported::sample_text};

/// The bars that show a loss, the last of them once, each from its step on.
fn bars(text: &str) -> Vec<&str> {
    let mut bars: Vec<&str> = text
        .split(['\r', '\n'])
        .filter(|chunk| chunk.contains("Training:") && chunk.contains("loss="))
        .map(|chunk| &chunk[chunk.rfind("| ").expect("a bar") + 2..])
        .collect();
    bars.dedup_by_key(|bar| bar.split('/').next().map(str::to_owned));
    bars
}

fn value_of(text: &str, key: &str) -> f64 {
    let at = text
        .find(&format!(" {key}="))
        .unwrap_or_else(|| panic!("{key} in {text}"));
    let value = &text[at + key.len() + 2..];
    let end = value.find([',', ']', 's', '/', ' ']).unwrap_or(value.len());
    value[..end].parse().expect("a number")
}

#[test]
fn every_value_of_the_bars_arrives_once() {
    let text = sample_text("torchspec/perf.stderr");
    let imported = Imported::of("torchspec", "torchspec/perf.stderr");
    let bars = bars(&text);
    assert!(bars.len() > 35);
    for (key, metric) in [
        ("loss", "train.loss"),
        ("acc", "train.accuracy"),
        ("acc_len", "train.accept_length"),
        ("thru", "perf.throughput"),
        ("I", "perf.infer_capacity"),
        ("T", "perf.train_capacity"),
        ("pool", "perf.sample_pool_size"),
        ("epoch", "train.epoch"),
    ] {
        let expected: Vec<f64> = bars.iter().map(|bar| value_of(bar, key)).collect();
        assert_eq!(imported.values(metric), expected, "{metric}");
    }
    imported.lost_nothing();
    assert_eq!(imported.unknown_names(), [""; 0]);
}

#[test]
fn every_timing_line_is_a_step_with_its_parts() {
    let text = sample_text("torchspec/perf.stderr");
    let imported = Imported::of("torchspec", "torchspec/perf.stderr");
    let lines: Vec<&str> = text
        .match_indices(" TIMING step=")
        .map(|(at, _)| text[at..].lines().next().expect("a line"))
        .collect();
    assert_eq!(lines.len(), 12);
    for (key, metric) in [
        ("data", "perf.data_time"),
        ("compute", "perf.compute_time"),
        ("bwd", "perf.backward_time"),
        ("opt", "perf.optimizer_time"),
    ] {
        let found = imported.growth(metric);
        assert_eq!(found.len(), lines.len(), "{metric}");
        for (found, line) in found.iter().zip(&lines) {
            assert!(
                (found - value_of(line, key)).abs() < 1e-9,
                "{metric}: {found} in {line}"
            );
        }
    }
    assert_eq!(imported.spans.len(), lines.len());
}

#[test]
fn every_step_waits_once_and_counts_once() {
    let imported = Imported::of("torchspec", "torchspec/perf.stderr");
    assert_eq!(imported.values("train.steps").last(), Some(&40.0));
    let steps = imported.values("train.global_step").len();
    assert_eq!(imported.values("perf.dispatch_wait").len(), steps);
}
