//! Each sentence of TorchSpec's documentation on its bottlenecks, quoted above the case that it is about.

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

/// "if dispatch_wait >> 0: bottleneck = "inference" # training is starved for data"
#[test]
fn long_dispatch_wait_is_an_inference_bottleneck() {
    assert_eq!(reading(2.1, 0.0, 0.0).bottleneck(), Some("inference"));
    assert_eq!(reading(2.1, 25.0, 12.3).bottleneck(), Some("inference"));
    assert_eq!(reading(0.1, 0.0, 0.0).bottleneck(), None);
}

/// "elif pool grows over time: bottleneck = "training" # inference outpaces training"
#[test]
fn growing_pool_is_a_training_bottleneck_unless_training_waits() {
    let growing = Reading {
        pool_grows: true,
        ..reading(0.0, 0.0, 12.3)
    };
    assert_eq!(growing.bottleneck(), Some("training"));
    let starved = Reading {
        dispatch_wait: Some(2.1),
        ..growing
    };
    assert_eq!(starved.bottleneck(), Some("inference"));
}

/// "if data_time >> compute_time: bottleneck = "mooncake transfer / data loading"", and
/// "elif compute_time >> data_time: bottleneck = "GPU compute (forward/backward/optimizer)""
#[test]
fn training_bottleneck_is_attributed_to_the_dominant_part_of_the_step() {
    assert_eq!(timed(1.2, 0.9, 0.25).bottleneck(), Some("data"));
    assert_eq!(timed(1.2, 0.25, 0.9).bottleneck(), Some("compute"));
    assert_eq!(timed(1.2, 0.6, 0.5).bottleneck(), Some("training"));
}

/// "I > T: Inference can produce data faster than training can consume. Training is the bottleneck."
#[test]
fn excess_inference_capacity_is_a_training_bottleneck() {
    assert_eq!(reading(0.0, 18.5, 13.2).bottleneck(), Some("training"));
}

/// "T > I: Training can consume faster than inference produces. Inference is the bottleneck."
#[test]
fn excess_training_capacity_is_an_inference_bottleneck() {
    assert_eq!(reading(0.0, 13.2, 18.5).bottleneck(), Some("inference"));
}

/// "I ~ T: System is balanced."
#[test]
fn similar_capacities_are_not_a_bottleneck() {
    assert_eq!(reading(0.0, 12.5, 12.3).bottleneck(), Some("none"));
    assert_eq!(reading(0.0, 12.3, 12.5).bottleneck(), Some("none"));
}

/// "Scenario 1: Inference bottleneck thru=8.2, I=8.5, T=15.3, wait=2.1s, pool=0"
#[test]
fn documented_scenario_1_is_an_inference_bottleneck() {
    assert_eq!(reading(2.1, 8.5, 15.3).bottleneck(), Some("inference"));
}

/// "Scenario 2: Training bottleneck thru=12.1, I=25.0, T=12.3, wait=0.0s, pool=48"
#[test]
fn documented_scenario_2_is_a_training_bottleneck() {
    assert_eq!(reading(0.0, 25.0, 12.3).bottleneck(), Some("training"));
}

/// "Scenario 3: Mooncake transfer bottleneck step_time=1.2s, data_time=0.9s, compute_time=0.25s"
#[test]
fn documented_scenario_3_is_a_data_bottleneck() {
    assert_eq!(timed(1.2, 0.9, 0.25).bottleneck(), Some("data"));
}
