//! One run, read from two of its own outputs, gives the same series up to what the coarser one prints.

use crate::Imported;

const TENSORBOARD: &str = "kempnerforge/tensorboard/events.out.tfevents.1795219833.vm.31790.0";

const MAXTEXT_EVENTS: &str = "maxtext/tensorboard/events.out.tfevents.1795221261.vm";

/// A metric of KempnerForge's console, and half of the last digit that is printed: absolute, and as a share of the value.
const PRINTED: [(&str, f64, f64); 8] = [
    ("train.loss", 0.5e-4, 0.0),
    ("train.learning_rate", 0.0, 0.5e-2),
    ("train.grad_norm", 0.5e-3, 0.0),
    ("train.throughput.tokens", 0.5, 0.0),
    ("train.mfu", 0.5e-3, 0.0),
    ("train.step.duration", 0.5e-2, 0.0),
    ("eval.loss", 0.5e-4, 0.0),
    ("eval.perplexity", 0.5e-4, 0.0),
];

fn values(imported: &Imported, metric: &str) -> Vec<f64> {
    if metric == "train.step.duration" {
        imported.growth(metric)
    } else {
        imported.values(metric)
    }
}

#[test]
fn kempnerforge_prints_what_it_writes_to_tensorboard() {
    let printed = Imported::of("kempnerforge", "kempnerforge/dense.stdout");
    let written = Imported::of("tensorboard", TENSORBOARD);
    for (metric, absolute, relative) in PRINTED {
        let (coarse, fine) = (values(&printed, metric), values(&written, metric));
        assert!(coarse.len() >= 3, "{metric}");
        assert_eq!(coarse.len(), fine.len(), "{metric}");
        for (coarse, fine) in coarse.iter().zip(&fine) {
            // The file has 32 bits of each number.
            let tolerance = absolute + (relative + 1e-6) * fine.abs();
            assert!(
                (coarse - fine).abs() <= tolerance,
                "{metric}: {coarse} and {fine}"
            );
        }
    }
    assert_eq!(
        printed.values("train.global_step"),
        written.values("train.global_step")
    );
}

#[test]
fn torchspec_writes_the_same_to_tensorboard_and_to_wandb() {
    let events = Imported::of(
        "tensorboard",
        "torchspec/tensorboard/events.out.tfevents.1795220486.vm.14720.0",
    );
    let wandb = Imported::of("wandb", "torchspec/perf.wandb");
    let mut count = 0;
    for point in &events.points {
        let twin = wandb.points.iter().find(|twin| {
            // Both are written in one turn of the loop.
            (twin.metric == point.metric && twin.attributes == point.attributes)
                && twin.time.abs_diff(point.time) < 40_000_000
                && (twin.value - point.value).abs() <= 1e-6 * point.value.abs()
        });
        assert!(
            twin.is_some(),
            "{} {:?} {}",
            point.metric,
            point.attributes,
            point.value
        );
        count += 1;
    }
    assert_eq!(count, 1111 + 40);
}

#[test]
fn maxtext_writes_the_same_to_its_windows_and_to_tensorboard() {
    let events = Imported::of("tensorboard", MAXTEXT_EVENTS);
    let windows = [
        "000000_to_step_000004",
        "000005_to_step_000009",
        "000010_to_step_000011",
    ]
    .map(|steps| Imported::of("maxtext-metrics", &format!("maxtext/metrics_step_{steps}.txt")));
    // The samples are of one seed and not of one start: what was learned is the same, how long it took is not.
    let of_windows = |metric: &str| -> Vec<f64> {
        let each = windows.iter().map(|window| values(window, metric));
        each.flatten().collect()
    };
    for metric in [
        "train.loss",
        "train.perplexity",
        "train.grad_norm",
        "train.raw_grad_norm",
        "train.param_norm",
        "train.learning_rate",
        "train.total_weights",
        "train.loss_component",
        "train.custom",
        "train.global_step",
    ] {
        let sorted = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        let (found, expected) = (sorted(values(&events, metric)), sorted(of_windows(metric)));
        assert!(expected.len() >= 12, "{metric}: {}", expected.len());
        assert_eq!(found.len(), expected.len(), "{metric}");
        for (found, expected) in found.iter().zip(&expected) {
            // The event file has 32 bits of each number.
            assert!(
                (found - expected).abs() <= 2e-6 * expected.abs().max(1e-9),
                "{metric}: {found} and {expected}"
            );
        }
    }
}
