//! Two outputs of one run give the same series, up to the precision of the coarser output.

use crate::Imported;

const KEMPNERFORGE_EVENTS: &str = "kempnerforge/tensorboard/events.out.tfevents.1795219833.vm.31790.0";
const MAXTEXT_EVENTS: &str = "maxtext/tensorboard/events.out.tfevents.1795221261.vm";
const HF_EVENTS: &str = "hf-trainer/tensorboard/events.out.tfevents.1795221025.vm.20360.0";

/// The tolerance between two representations of a value: absolute, and relative to it.
#[derive(Clone, Copy)]
struct Precision {
    absolute: f64,
    relative: f64,
}

/// A number whose last decimal, number `digits`, is rounded.
const fn digits(digits: u32) -> Precision {
    let mut absolute = 0.5;
    let mut left = digits;
    while left > 0 {
        absolute /= 10.0;
        left -= 1;
    }
    Precision {
        absolute,
        relative: 0.0,
    }
}

/// A number with this many significant digits, whose last digit is rounded.
const fn significant(digits: u32) -> Precision {
    Precision {
        absolute: 0.0,
        relative: self::digits(digits - 1).absolute,
    }
}

/// At least one of both outputs has 32 bits of the number.
const FLOAT: Precision = Precision {
    absolute: 1e-12,
    relative: 0.0,
};

/// Checks that the coarse values of `metric` agree with the fine ones, in equal number and at least `least`.
fn agree(metric: &str, coarse: &[f64], fine: &[f64], least: usize, precision: Precision) {
    assert!(coarse.len() >= least, "{metric}: only {}", coarse.len());
    assert_eq!(coarse.len(), fine.len(), "{metric}");
    for (coarse, fine) in coarse.iter().zip(fine) {
        // An event file has 32 bits of each number.
        let tolerance = precision.absolute + (precision.relative + 1e-6) * fine.abs();
        assert!(
            (coarse - fine).abs() <= tolerance,
            "{metric}: {coarse} and {fine}"
        );
    }
}

fn imports_agree(coarse: &Imported, fine: &Imported, metrics: &[(&str, usize, Precision)]) {
    for (metric, least, precision) in metrics {
        agree(
            metric,
            &coarse.values(metric),
            &fine.values(metric),
            *least,
            *precision,
        );
    }
}

#[test]
fn kempnerforge_log_agrees_with_its_tensorboard_file() {
    let printed = Imported::of("kempnerforge", "kempnerforge/dense.stdout");
    let written = Imported::of("tensorboard", KEMPNERFORGE_EVENTS);
    let metrics = [
        ("train.global_step", 13, FLOAT),
        ("train.loss", 13, digits(4)),
        ("train.learning_rate", 13, significant(3)),
        ("train.grad_norm", 13, digits(3)),
        ("train.throughput.tokens", 13, digits(0)),
        // A percentage with one decimal.
        ("train.mfu", 13, digits(3)),
        ("train.step.duration", 13, digits(2)),
        ("eval.loss", 3, digits(4)),
        ("eval.perplexity", 3, digits(4)),
    ];
    imports_agree(&printed, &written, &metrics);
}

#[test]
fn torchspec_tensorboard_and_wandb_files_agree() {
    let events = Imported::of(
        "tensorboard",
        "torchspec/tensorboard/events.out.tfevents.1795220486.vm.14720.0",
    );
    let wandb = Imported::of("wandb", "torchspec/perf.wandb");
    for point in &events.points {
        let twin = wandb.points.iter().find(|twin| {
            // Both are written in one turn of the loop.
            (twin.metric == point.metric && twin.attributes == point.attributes)
                && twin.time.abs_diff(point.time) < 40_000_000
                && (twin.value - point.value).abs() <= 1e-6 * point.value.abs()
        });
        assert!(twin.is_some(), "{point:?}");
    }
    let verdicts = events.values("perf.bottleneck").len();
    assert!(verdicts > 0);
    assert_eq!(events.points.len(), 1111 + 40 + verdicts);
}

/// The bar of step 2 was never drawn, and the inference capacity of step 1 is missing. Some steps are timed by a line.
#[test]
fn torchspec_log_agrees_with_its_tensorboard_file() {
    let shown = Imported::of("torchspec", "torchspec/perf.stderr");
    let events = Imported::of(
        "tensorboard",
        "torchspec/tensorboard/events.out.tfevents.1795220486.vm.14720.0",
    );
    let agree_at = |metric: &str, other: &str, steps: &[usize], precision| {
        let written = events.values(other);
        let first = 40 - written.len() + 1;
        let written: Vec<f64> = steps.iter().map(|step| written[step - first]).collect();
        agree(metric, &shown.values(metric), &written, steps.len(), precision);
    };
    let drawn: Vec<usize> = (1..=40).filter(|step| *step != 2).collect();
    for (metric, precision) in [
        ("train.loss", digits(3)),
        ("train.accept_length", digits(2)),
        ("perf.train_capacity", digits(1)),
    ] {
        agree_at(metric, metric, &drawn, precision);
    }
    agree_at(
        "perf.infer_capacity",
        "perf.infer_capacity",
        &drawn[1..],
        digits(1),
    );
    let timed: Vec<usize> = (1..=40).filter(|step| *step <= 5 || step % 5 == 0).collect();
    for (metric, written) in [
        ("train.step.duration", "perf.step_time"),
        ("perf.data_time", "perf.data_time"),
        ("perf.compute_time", "perf.compute_time"),
        ("perf.forward_time", "perf.forward_time"),
        ("perf.backward_time", "perf.backward_time"),
        ("perf.optimizer_time", "perf.optimizer_time"),
    ] {
        agree_at(metric, written, &timed, digits(3));
    }
}

/// The samples share a seed but are separate runs: values of training agree, durations do not.
#[test]
fn maxtext_log_agrees_with_its_metrics_file_and_tensorboard() {
    let printed = Imported::of("maxtext", "maxtext/demo.stderr");
    let written = Imported::of("maxtext-metrics", "maxtext/demo.metrics.jsonl");
    let events = Imported::of("tensorboard", MAXTEXT_EVENTS);
    let metrics = [
        ("train.global_step", 12, FLOAT),
        ("train.loss", 12, digits(3)),
        ("train.perplexity", 12, digits(3)),
        ("train.total_weights", 12, FLOAT),
    ];
    imports_agree(&printed, &written, &metrics);
    imports_agree(&printed, &events, &metrics);
    let lm = [("train.component", "lm")];
    for fine in [&written, &events] {
        agree(
            "lm_loss",
            &printed.values_with("train.loss_component", &lm),
            &fine.values_with("train.loss_component", &lm),
            12,
            digits(3),
        );
    }
    // Metrics that only the two finer outputs have.
    let finer = [
        ("train.learning_rate", 12, FLOAT),
        ("train.grad_norm", 12, FLOAT),
        ("train.raw_grad_norm", 12, FLOAT),
        ("train.param_norm", 12, FLOAT),
    ];
    imports_agree(&events, &written, &finer);
}

#[test]
fn maxtext_metrics_windows_agree_with_tensorboard() {
    let events = Imported::of("tensorboard", MAXTEXT_EVENTS);
    let windows = [
        "000000_to_step_000004",
        "000005_to_step_000009",
        "000010_to_step_000011",
    ]
    .map(|steps| Imported::of("maxtext-metrics", &format!("maxtext/metrics_step_{steps}.txt")));
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
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
        "train.step_tokens_per_device",
        "train.global_step",
    ] {
        let of_windows = windows.iter().flat_map(|window| window.values(metric));
        let (found, expected) = (sorted(events.values(metric)), sorted(of_windows.collect()));
        agree(metric, &found, &expected, 12, FLOAT);
    }
}

#[test]
fn tunix_log_agrees_with_its_tensorboard_file() {
    for (log, events) in [
        (
            "tunix/colocated/stderr_absl.log",
            "tunix/colocated/tensorboard/events.out.tfevents.1795219881.vm",
        ),
        (
            "tunix/rollout1_actor2/stderr_absl.log",
            "tunix/rollout1_actor2/tensorboard/events.out.tfevents.1795219969.vm",
        ),
    ] {
        let (printed, written) = (Imported::of("tunix", log), Imported::of("tensorboard", events));
        let metrics = [("train.loss", 8, digits(6)), ("train.perplexity", 8, digits(6))];
        imports_agree(&printed, &written, &metrics);
        // An evaluation is printed as the mean of all evaluations so far, that of perplexities as of their logarithms.
        let means = running_means(&written.values("eval.loss"));
        agree("eval.loss", &printed.values("eval.loss"), &means, 4, digits(6));
        let means: Vec<f64> = means.iter().map(|mean| mean.exp()).collect();
        agree(
            "eval.perplexity",
            &printed.values("eval.perplexity"),
            &means,
            4,
            digits(6),
        );
    }
}

fn running_means(values: &[f64]) -> Vec<f64> {
    let sums = values.iter().scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    (1_u32..)
        .zip(sums)
        .map(|(count, sum)| sum / f64::from(count))
        .collect()
}

#[test]
fn surogate_console_agrees_with_its_log_file() {
    for model in ["dense", "moe"] {
        let printed = Imported::of("surogate-console", &format!("surogate/console_{model}.log"));
        let written = Imported::of("surogate", &format!("surogate/training_{model}.json"));
        let metrics = [
            ("train.global_step", 30, FLOAT),
            ("train.loss", 30, digits(4)),
            ("train.grad_norm", 30, digits(4)),
            ("train.step.duration", 30, digits(9)),
            ("eval.loss", 3, digits(4)),
            ("eval.duration", 3, digits(9)),
        ];
        imports_agree(&printed, &written, &metrics);
    }
}

#[test]
fn three_outputs_of_the_hugging_face_trainer_agree() {
    let printed = Imported::of("hf-trainer", "hf-trainer/stdout.log");
    let written = Imported::of("hf-trainer-state", "hf-trainer/trainer_state.json");
    let events = Imported::of("tensorboard", HF_EVENTS);
    let metrics = [
        ("train.loss", 4, significant(4)),
        ("train.grad_norm", 4, significant(4)),
        ("train.learning_rate", 4, significant(4)),
        ("eval.loss", 2, significant(4)),
        ("eval.duration", 2, significant(4)),
        ("eval.throughput.samples", 2, significant(4)),
    ];
    imports_agree(&printed, &written, &metrics);
    imports_agree(&printed, &events, &metrics);
}
