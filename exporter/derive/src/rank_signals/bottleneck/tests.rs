//! The scenarios of TorchSpec's documentation, and trainers without an inference side.

use super::*;
use crate::test_trainer::{Bench, Trainer, at};

fn reading() -> Reading {
    Reading {
        has_pool: true,
        dispatch_wait: Some(0.0),
        work_secs: Some(1.0),
        ..Reading::default()
    }
}

#[test]
fn documented_scenarios_yield_the_documented_bottlenecks() {
    // "thru=8.2, I=8.5, T=15.3, wait=2.1s, pool=0"
    let inference = Reading {
        dispatch_wait: Some(2.1),
        infer_capacity: Some(8.5),
        train_capacity: Some(15.3),
        ..reading()
    };
    assert_eq!(inference.state(), Some("inference"));
    // "thru=12.1, I=25.0, T=12.3, wait=0.0s, pool=48"
    let training = Reading {
        infer_capacity: Some(25.0),
        train_capacity: Some(12.3),
        pool_grows: true,
        ..reading()
    };
    assert_eq!(training.state(), Some("training"));
    // "step_time=1.2s, data_time=0.9s, compute_time=0.25s"
    let transfer = Reading {
        work_secs: Some(1.2),
        data_secs: Some(0.9),
        compute_secs: Some(0.25),
        ..training
    };
    assert_eq!(transfer.state(), Some("data"));
    let compute = Reading {
        data_secs: Some(0.25),
        compute_secs: Some(0.9),
        ..transfer
    };
    assert_eq!(compute.state(), Some("compute"));
    // "I ~ T: System is balanced."
    let balanced = Reading {
        infer_capacity: Some(12.0),
        train_capacity: Some(12.3),
        ..reading()
    };
    assert_eq!(balanced.state(), Some("none"));
    assert_eq!(reading().state(), None, "too little is known");
}

#[test]
fn state_of_a_trainer_without_inference_changes_with_its_data_share() {
    let mut bench = Bench::new(vec![Box::new(Bottleneck::default())]);
    let mut rank = Trainer::new("r", 0, 1);
    for (number, data) in [0.05, 0.05, 0.5, 0.5].into_iter().enumerate() {
        let end = at(number as f64 + 1.0);
        rank.step(number as i64, end, 1.0)
            .record(&metric::PERF_DATA_TIME, end, data)
            .record(&metric::PERF_FORWARD_TIME, end, 0.2)
            .record(&metric::PERF_BACKWARD_TIME, end, 0.3);
    }
    bench.pass(&mut rank).finish();
    let points = bench.points(&metric::PERF_BOTTLENECK);
    let active: Vec<_> = points
        .iter()
        .filter(|point| point.value == 1.0)
        .map(|point| (point.time, point.attributes[0].as_str()))
        .collect();
    let expected = [
        (at(1.0), "perf.bottleneck=compute"),
        (at(3.0), "perf.bottleneck=data"),
    ];
    assert_eq!(active, expected);
    assert_eq!(points.len(), 2 * 7, "every state, whenever it changes");
}

#[test]
fn wait_for_samples_within_a_step_does_not_count_as_work() {
    let mut bench = Bench::new(vec![Box::new(Bottleneck::default())]);
    let mut rank = Trainer::new("r", 0, 1);
    let phases = [
        (&pulsetrain_semconv::span::PERF_DISPATCH_WAIT, 0.6),
        (&pulsetrain_semconv::span::PERF_FORWARD, 0.4),
    ];
    rank.step_span(1, at(1.0), 1.0, &phases);
    bench.pass(&mut rank).finish();
    let points = bench.points(&metric::PERF_BOTTLENECK);
    let active = points.iter().find(|point| point.value == 1.0);
    assert_eq!(active.unwrap().attributes, ["perf.bottleneck=inference"]);
}
