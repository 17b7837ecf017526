//! The sentences of TorchSpec's documentation on its bottlenecks, quoted above the readings that they are about.

use super::*;

fn reading(wait: f64, infer: f64, train: f64) -> Reading {
    Reading {
        dispatch_wait: Some(wait),
        infer_capacity: infer,
        train_capacity: train,
        step_secs: Some(0.6),
        ..Reading::default()
    }
}

fn timed(step: f64, data: f64, compute: f64) -> Reading {
    Reading {
        step_secs: Some(step),
        data_secs: Some(data),
        compute_secs: Some(compute),
        ..reading(0.0, 25.0, 12.3)
    }
}

fn growing(wait: f64) -> Reading {
    Reading {
        pool_grows: true,
        ..reading(wait, 0.0, 12.3)
    }
}

#[test]
fn bottleneck_is_that_of_the_documentation() {
    for (reading, bottleneck) in [
        // "if dispatch_wait >> 0: bottleneck = "inference" # training is starved for data"
        (reading(2.1, 0.0, 0.0), Some("inference")),
        (reading(2.1, 25.0, 12.3), Some("inference")),
        (reading(0.1, 0.0, 0.0), None),
        // "elif pool grows over time: bottleneck = "training" # inference outpaces training"
        (growing(0.0), Some("training")),
        (growing(2.1), Some("inference")),
        // "if data_time >> compute_time: bottleneck = "mooncake transfer / data loading"", and
        // "elif compute_time >> data_time: bottleneck = "GPU compute (forward/backward/optimizer)""
        (timed(1.2, 0.9, 0.25), Some("data")),
        (timed(1.2, 0.25, 0.9), Some("compute")),
        (timed(1.2, 0.6, 0.5), Some("training")),
        // "I > T: Inference can produce data faster than training can consume. Training is the bottleneck."
        (reading(0.0, 18.5, 13.2), Some("training")),
        // "T > I: Training can consume faster than inference produces. Inference is the bottleneck."
        (reading(0.0, 13.2, 18.5), Some("inference")),
        // "I ~ T: System is balanced."
        (reading(0.0, 12.5, 12.3), Some("none")),
        (reading(0.0, 12.3, 12.5), Some("none")),
        // "Scenario 1: Inference bottleneck thru=8.2, I=8.5, T=15.3, wait=2.1s, pool=0"
        (reading(2.1, 8.5, 15.3), Some("inference")),
        // "Scenario 2: Training bottleneck thru=12.1, I=25.0, T=12.3, wait=0.0s, pool=48"
        (reading(0.0, 25.0, 12.3), Some("training")),
        // "Scenario 3: Mooncake transfer bottleneck step_time=1.2s, data_time=0.9s, compute_time=0.25s" is timed above.
    ] {
        assert_eq!(reading.bottleneck(), bottleneck, "{reading:?}");
    }
}
