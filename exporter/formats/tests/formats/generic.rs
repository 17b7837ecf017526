//! Logs of unknown trainers. The expectations are numbers written by hand from the logs.

use pulsetrain_formats::detect;

use crate::imported::{Imported, all_samples, sample};

/// The expected values of a metric.
type Expected = (&'static str, &'static [f64]);

const FOLDER: &str = "generic/";

static LOGS: &[(&str, &[Expected])] = &[
    (
        "fairseq.log",
        &[
            ("train.global_step", &[99.0, 199.0, 200.0, 299.0]),
            ("train.loss", &[13.25, 12.5, 11.75]),
            ("train.perplexity", &[6888.62, 3755.37, 2048.0]),
            ("train.learning_rate", &[1.25e-5, 2.5e-5, 3.75e-5]),
            ("train.grad_norm", &[2.5, 2.25, 1.75]),
            ("train.throughput.tokens", &[52_000.0, 52_500.0, 53_000.0]),
            ("train.throughput.steps", &[0.5, 0.5, 0.5]),
            ("train.loss_scale", &[2.0, 2.0, 2.0]),
            ("train.elapsed_time", &[182.0, 382.0, 573.0]),
            ("eval.loss", &[8.25]),
            ("eval.perplexity", &[128.0]),
        ],
    ),
    (
        "mmengine.log",
        &[
            ("train.global_step", &[10.0, 20.0, 30.0, 40.0]),
            ("train.epoch", &[1.0, 1.0, 1.0, 2.0]),
            ("train.loss", &[11.5, 9.25, 7.75, 6.5]),
            ("train.learning_rate", &[0.01, 0.01, 0.01, 0.005]),
            ("train.eta", &[25.0, 13.0, 93_609.0, 9.0]),
            ("memory.framework.allocated", &[]),
        ],
    ),
    (
        "detectron2.log",
        &[
            ("train.global_step", &[19.0, 39.0, 59.0]),
            ("train.loss", &[1.5, 1.25, 1.125]),
            ("train.loss_component", &[]),
            (
                "train.custom",
                // loss_cls, loss_box_reg, and max_mem, whose M may be of 1000 or of 1024.
                &[0.75, 0.25, 3961.0, 0.625, 0.25, 3961.0, 0.5, 0.25, 3961.0],
            ),
            ("train.learning_rate", &[0.0025, 0.005, 0.01]),
            ("train.eta", &[29_112.0, 29_091.0, 29_078.0]),
        ],
    ),
    (
        "imagenet.log",
        &[
            ("train.global_step", &[10.0, 20.0, 30.0]),
            ("train.loss", &[6.9375, 6.875, 6.75]),
            ("train.accuracy", &[0.0, 0.005, 0.02]),
            ("train.custom", &[0.5, 1.5, 3.0]),
        ],
    ),
    (
        "mnist.log",
        &[
            ("train.global_step", &[0.0, 640.0, 1280.0]),
            ("train.epoch", &[1.0, 1.0, 1.0]),
            ("train.loss", &[2.25, 1.75, 1.25]),
            ("eval.loss", &[0.0625]),
            ("eval.accuracy", &[0.98]),
            ("train.custom", &[]),
        ],
    ),
    (
        "bars.log",
        &[
            ("train.global_step", &[10.0, 45.0, 100.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("train.learning_rate", &[3e-4, 2e-4, 1e-4]),
            ("train.throughput.steps", &[2.0, 1.44]),
            ("train.custom", &[1.0, 1.0, 1.0]),
        ],
    ),
    (
        "ray.log",
        &[
            ("train.global_step", &[10.0, 20.0, 30.0]),
            ("train.loss", &[2.5, 2.25, f64::NAN]),
            ("train.grad_norm", &[1.25, 1.125, f64::INFINITY]),
            ("train.learning_rate", &[0.001, 0.001, 0.0005]),
            ("train.throughput.tokens", &[51_200.0, 51_300.0, 51_400.0]),
            ("train.mfu", &[0.415, 0.4175, 0.42]),
            ("rl.reward", &[0.25, 0.5, 0.75]),
            ("rl.entropy", &[1.5, 1.25, 1.0]),
        ],
    ),
    (
        "nested.jsonl",
        &[
            ("train.global_step", &[100.0, 200.0, 300.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("train.learning_rate", &[0.001, 0.0005, 0.00025]),
            ("train.throughput.tokens", &[1000.0, 1100.0, 1200.0]),
            ("eval.loss", &[2.75]),
        ],
    ),
    (
        "dicts.log",
        &[
            ("train.global_step", &[1.0, 2.0, 3.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("train.grad_norm", &[1.5, 1.25, 1.0]),
            ("train.learning_rate", &[3e-4, 2e-4, 1e-4]),
            ("train.throughput.samples", &[12.5, 12.75, 13.0]),
            ("eval.loss", &[2.375]),
            ("eval.accuracy", &[0.5]),
        ],
    ),
    (
        "table.csv",
        &[
            ("train.global_step", &[10.0, 20.0, 30.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("train.learning_rate", &[0.001, 0.001, 0.0005]),
            ("train.throughput.tokens", &[51_200.0, 51_300.0, 51_400.0]),
            ("eval.loss", &[2.375]),
        ],
    ),
    (
        "units.log",
        &[
            ("train.global_step", &[100.0, 200.0, 300.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("train.grad_norm", &[1.25, 1.5, 0.75]),
            ("train.learning_rate", &[3e-4, 2.5e-4, 2e-4]),
            ("train.mfu", &[0.455, 0.46, 0.465]),
            ("train.throughput.tokens", &[12_800.0, 12_900.0, 13_000.0]),
            ("eval.loss", &[2.375]),
        ],
    ),
    (
        "fastai.log",
        &[
            ("train.epoch", &[0.0, 1.0, 2.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("eval.loss", &[2.75, 2.5, 2.25]),
            ("train.accuracy", &[0.5, 0.625, 0.75]),
            // The time of an epoch.
            ("train.custom", &[12.0, 12.0, 13.0]),
        ],
    ),
    (
        "yolo.log",
        &[
            ("train.epoch", &[1.0, 2.0, 3.0]),
            (
                "train.custom",
                // GPU_mem, whose G may be of 1000 or of 1024, three losses, Instances and Size.
                &[
                    2.15, 1.25, 1.5, 1.125, 10.0, 640.0, 2.15, 1.0, 1.25, 1.0, 11.0, 640.0, 2.15, 0.75, 1.0,
                    0.875, 12.0, 640.0,
                ],
            ),
        ],
    ),
    (
        "splits.jsonl",
        &[
            ("train.global_step", &[10.0, 20.0, 30.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("eval.loss", &[2.75, 2.5]),
            ("eval.accuracy", &[0.5, 0.625]),
            ("train.learning_rate", &[0.001, 0.001, 0.0005]),
            // Seconds since the start under `time`.
            ("train.custom", &[12.5, 25.0, 26.0, 38.5, 39.5]),
        ],
    ),
    (
        "sections.log",
        &[
            ("train.epoch", &[1.0, 2.0, 3.0]),
            ("train.loss", &[2.5, 2.25, 2.0]),
            ("train.accuracy", &[0.25, 0.5, 0.75]),
            ("eval.loss", &[2.75, 2.5, 2.25]),
            ("eval.accuracy", &[0.125, 0.25, 0.5]),
        ],
    ),
    (
        "gan.log",
        &[
            ("train.epoch", &[0.0, 0.0, 0.0]),
            ("train.global_step", &[0.0, 50.0, 100.0]),
            (
                "train.custom",
                // Loss_D, Loss_G, D(x), and the first number under D(G(z)).
                &[
                    1.75, 5.25, 0.5, 0.625, 0.75, 25.25, 0.75, 0.125, 0.5, 5.125, 0.875, 0.25,
                ],
            ),
        ],
    ),
    (
        "timm.log",
        &[
            ("train.epoch", &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
            (
                "train.global_step",
                &[0.0, 50.0, 100.0, 150.0, 199.0, 200.0, 250.0, 300.0],
            ),
            ("train.loss", &[7.0, 6.64, 6.31, 6.0, 5.73, 5.72, 5.47, 5.23]),
            ("eval.loss", &[5.1, 4.6, 4.13]),
            ("eval.accuracy", &[0.11328, 0.11328, 0.11328]),
            // The duration of a batch of the evaluation, and Acc@5.
            ("train.custom", &[0.213, 30.078, 0.213, 30.078, 0.213, 30.078]),
        ],
    ),
    (
        "kohya.log",
        &[
            ("train.global_step", &[20.0, 140.0, 160.0, 180.0, 200.0, 220.0]),
            ("train.loss", &[0.118, 0.106, 0.104, 0.102, 0.1, 0.098]),
        ],
    ),
    (
        "swin.log",
        &[
            ("train.epoch", &[0.0, 0.0, 0.0, 1.0]),
            ("train.global_step", &[0.0, 10.0, 20.0, 1251.0]),
            ("train.loss", &[6.9812, 6.9712, 6.9612, 6.9112]),
            ("train.grad_norm", &[1.1012, 1.2012, 1.3012, 1.4012]),
            ("eval.loss", &[5.8012, 5.7012]),
            ("eval.accuracy", &[0.12012, 0.13012]),
        ],
    ),
    (
        "speechbrain.log",
        &[
            (
                "train.global_step",
                &[0.0, 250.0, 500.0, 750.0, 1000.0, 1250.0, 1500.0, 1750.0, 2000.0],
            ),
            (
                "train.loss",
                &[3.8, 3.74, 3.68, 3.61, 3.55, 3.5, 3.4, 3.34, 3.28, 3.21, 3.15],
            ),
            ("eval.loss", &[2.8]),
            ("eval.accuracy", &[0.56]),
        ],
    ),
    (
        "quickstart.log",
        &[
            // The program counts samples.
            (
                "train.global_step",
                &[64.0, 6464.0, 12864.0, 60064.0, 66464.0, 72864.0],
            ),
            (
                "train.loss",
                &[2.303494, 2.294637, 2.277102, 2.157494, 2.147637, 2.097102],
            ),
            ("eval.loss", &[2.150794, 1.880794]),
            ("eval.accuracy", &[0.509, 0.609]),
        ],
    ),
    (
        "paddleocr.log",
        &[
            ("train.global_step", &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0]),
            ("train.throughput.samples", &[349.32591; 7]),
            (
                "train.eta",
                &[1752.0, 1692.0, 1632.0, 1572.0, 1512.0, 1452.0, 1392.0],
            ),
        ],
    ),
];

/// Durations of steps, which are a histogram: the increase by each record.
static DURATIONS: &[(&str, &[f64])] = &[
    ("mmengine.log", &[0.01, 0.005, 0.005, 0.005]),
    ("detectron2.log", &[0.3325, 0.335, 0.3375]),
    ("imagenet.log", &[0.25, 0.24, 0.26]),
    ("bars.log", &[1.5]),
    ("nested.jsonl", &[0.25, 0.5, 0.25]),
    ("units.log", &[0.125, 0.25, 0.125]),
    (
        "timm.log",
        &[6.214, 0.417, 0.422, 0.427, 0.432, 0.412, 0.417, 0.422],
    ),
    ("paddleocr.log", &[0.18321; 7]),
];

fn assert_same(name: &str, metric: &str, found: &[f64], expected: &[f64]) {
    let is_same = |(found, expected): (&f64, &f64)| {
        found == expected || (found - expected).abs() < 1e-9 || found.is_nan() && expected.is_nan()
    };
    let are_same = found.len() == expected.len() && found.iter().zip(expected).all(is_same);
    assert!(
        are_same,
        "{name}: {metric}: found {found:?}, expected {expected:?}"
    );
}

#[test]
fn generic_format_extracts_the_printed_values_of_unknown_trainers() {
    for (name, expected) in LOGS {
        let imported = Imported::of("generic", &format!("{FOLDER}{name}"));
        for (metric, values) in *expected {
            assert_same(name, metric, &imported.values(metric), values);
        }
    }
}

#[test]
fn durations_of_steps_are_in_seconds() {
    for (name, expected) in DURATIONS {
        let imported = Imported::of("generic", &format!("{FOLDER}{name}"));
        assert_same(
            name,
            "train.step.duration",
            &imported.growth("train.step.duration"),
            expected,
        );
    }
}

#[test]
fn every_generic_log_has_an_expectation() {
    let named = |name: &String| LOGS.iter().any(|(log, _)| name.ends_with(log));
    let files = all_samples().into_iter().filter(|name| name.starts_with(FOLDER));
    let missing: Vec<String> = files
        .filter(|name| !named(name) && !name.ends_with("README.md"))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn documentation_and_lock_files_are_not_detected_as_training_logs() {
    for name in [
        "README.md",
        "CHANGELOG.md",
        "exporter/mapping/MAPPING.md",
        "exporter/formats/FORMATS.md",
        "Cargo.lock",
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(name);
        let bytes = std::fs::read(path).expect("the file can be read");
        assert!(detect(name, &bytes).is_err(), "{name}");
    }
    assert!(detect("", &sample("generic/README.md")).is_err());
}
