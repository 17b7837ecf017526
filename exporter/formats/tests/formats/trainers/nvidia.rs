//! The contents of the samples of NVIDIA's trainers and loggers.

use super::Sample;

pub(super) const NVIDIA: &[Sample] = &[
    Sample {
        file: "nemo/train.log",
        format: "nemo",
        series: &[
            ("train.global_step", &[0.0, 1.0, 2.0]),
            ("train.loss", &[11.25, 11.12, 11.0]),
            ("train.learning_rate", &[5e-6, 1e-5, 1.5e-5]),
            ("train.step.duration", &[4.75, 4.75, 4.75]),
            ("train.throughput.tokens", &[8192.0]),
            ("eval.loss", &[10.75]),
        ],
    },
    Sample {
        file: "nv-one-logger/onelogger.log",
        format: "nv-one-logger",
        series: &[
            ("train.loss", &[2.5, 1.25]),
            ("train.tokens", &[655_360.0, 655_360.0]),
            (
                "train.attempt_throughput{train.attempt_statistic=mean}",
                &[131_072.0, 131_072.0],
            ),
            ("train.checkpoint_size", &[1e9]),
        ],
    },
];
