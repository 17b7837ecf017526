//! Surogate's console: dense, mixture of experts, verbose.

use crate::{Imported, imported::sample_text};

const SAMPLES: [&str; 3] = [
    "surogate/console_dense.log",
    "surogate/console_moe.log",
    "surogate/console_verbose.log",
];

/// The number that follows `key` in every line that begins with `begin`.
fn values_of(text: &str, begin: &str, key: &str) -> Vec<f64> {
    text.lines()
        .map(|line| {
            line.trim_start_matches("\u{1b}[1m")
                .trim_end_matches("\u{1b}[22m")
        })
        .filter(|line| line.starts_with(begin))
        .filter_map(|line| {
            let value = &line[line.find(&format!(" {key} "))? + key.len() + 2..];
            let value = value.trim_start_matches([' ', '!', '|']);
            let end = value.find([' ', '|']).unwrap_or(value.len());
            Some(value[..end].parse().expect("a number"))
        })
        .collect()
}

#[test]
fn every_value_of_every_console_arrives_once() {
    for name in SAMPLES {
        let text = sample_text(name);
        let imported = Imported::of("surogate-console", name);
        let mut count = 0;
        for (begin, key, metric, factor) in [
            (":: step", "loss", "train.loss", 1.0),
            (":: step", "norm", "train.grad_norm", 1.0),
            (":: step", "sol", "train.sol", 0.01),
            (":: step", "aux", "moe.aux_loss", 1.0),
            (":: step", "imbal", "moe.load_imbalance", 1.0),
            (":: step", "util", "moe.expert_utilization", 1.0),
            (":: step", "hot", "moe.max_expert_fraction", 1.0),
            (":: step", "ent", "moe.router_entropy", 1.0),
            (">> eval", "loss", "eval.loss", 1.0),
            (">> eval", "gap", "eval.gap", 1.0),
            ("[G] step", "power", "gpu.power", 1.0),
            ("[G] step", "temp", "gpu.temperature", 1.0),
            ("[G] step", "clock", "gpu.clock.frequency", 1e6),
        ] {
            let expected = values_of(&text, begin, key);
            let found = imported.values(metric);
            assert_eq!(found.len(), expected.len(), "{metric} of {name}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected * factor).abs() <= 1e-9 * (expected * factor).abs(),
                    "{metric} of {name}"
                );
            }
            count += expected.len();
        }
        assert_eq!(imported.values("train.loss").len(), 30, "{name}");
        assert!(count >= 3 * 30, "{name}");
        imported.lost_nothing();
        assert_eq!(imported.unknown_names(), [""; 0], "{name}");
    }
}

#[test]
fn the_spike_and_the_heading_are_read() {
    let imported = Imported::of("surogate-console", SAMPLES[0]);
    assert_eq!(imported.values("train.anomalies"), [1.0]);
    assert_eq!(
        imported.values_with("gpu.peak_flops", &[("gpu.precision", "bf16")]),
        [989.4e12]
    );
    assert_eq!(
        imported.values_with("data.tokens", &[("data.split", "train")]),
        [2.0e6]
    );
    assert_eq!(imported.values("train.expected_throughput"), [189_789.0]);
    assert_eq!(imported.events.len(), 2);
}

#[test]
fn console_and_log_agree_to_the_printed_precision() {
    for (console, log) in [
        (SAMPLES[0], "surogate/training_dense.json"),
        (SAMPLES[1], "surogate/training_moe.json"),
    ] {
        let (console, log) = (
            Imported::of("surogate-console", console),
            Imported::of("surogate", log),
        );
        for metric in [
            "train.loss",
            "train.grad_norm",
            "eval.loss",
            "train.step.duration",
        ] {
            let (printed, exact) = (console.values(metric), log.values(metric));
            assert_eq!(printed.len(), exact.len(), "{metric}");
            for (printed, exact) in printed.iter().zip(exact) {
                assert!(
                    (printed - exact).abs() <= 0.000_051,
                    "{metric}: {printed} and {exact}"
                );
            }
        }
    }
}
