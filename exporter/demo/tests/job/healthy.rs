//! A job without faults.

use std::{collections::BTreeSet, time::Duration};

use pulsetrain_demo::{Demo, DemoConfig, SeriesCounter, Workload};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{attribute, metric, span};

use crate::read::{SpanItem, sent};

fn config(steps: u64) -> DemoConfig {
    DemoConfig {
        steps,
        ..DemoConfig::default()
    }
}

fn bytes(config: DemoConfig) -> Vec<u8> {
    let mut demo = Demo::new(config).expect("a job that can be simulated");
    let mut bytes = Vec::new();
    while let Some((_, batches)) = demo.next_batches() {
        batches
            .iter()
            .for_each(|batch| bytes.extend_from_slice(batch.bytes()));
    }
    bytes
}

#[test]
fn equal_seeds_yield_equal_bytes_and_different_seeds_differ() {
    for workload in [Workload::Sft, Workload::Rl] {
        let of_seed = |seed| {
            bytes(DemoConfig {
                seed,
                workload,
                ..config(120)
            })
        };
        assert_eq!(of_seed(3), of_seed(3));
        assert_ne!(of_seed(3), of_seed(4));
    }
}

#[test]
fn all_ranks_of_a_step_share_a_trace_and_end_together() {
    let sent = sent(config(60));
    for step in 1..=60 {
        let of_step: Vec<_> = sent
            .spans_of(&span::TRAIN_STEP)
            .filter(|span| span.step() == step)
            .collect();
        assert_eq!(of_step.len(), 4, "a span of each rank at step {step}");
        let traces: BTreeSet<_> = of_step.iter().map(|span| &span.trace).collect();
        let ids: BTreeSet<_> = of_step.iter().map(|span| &span.id).collect();
        assert_eq!((traces.len(), ids.len()), (1, 4));
        let ends = of_step.iter().map(|span| span.end);
        let apart = ends.clone().max().unwrap().nanos_since(ends.min().unwrap());
        assert!(apart < 20_000_000, "the ranks end {apart} ns apart");
    }
}

#[test]
fn phases_are_children_of_their_step_and_lie_in_it() {
    let sent = sent(config(10));
    for root in sent.spans_of(&span::TRAIN_STEP) {
        let children: Vec<_> = sent.spans.iter().filter(|span| span.parent == root.id).collect();
        let names: Vec<_> = children.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(
            names,
            ["perf.data", "perf.forward", "perf.backward", "perf.optimizer"]
        );
        for child in children {
            assert_eq!((&child.trace, child.rank()), (&root.trace, root.rank()));
            assert!(child.start >= root.start && child.end <= root.end);
        }
    }
}

#[test]
fn steps_vary_by_a_few_percent_and_the_loss_falls() {
    let sent = sent(config(400));
    let steps = sent.spans_of_rank(&span::TRAIN_STEP, 0);
    let later = steps.filter(|span| span.step() > 10);
    let mut durations: Vec<f64> = later.map(SpanItem::seconds).collect();
    durations.sort_by(f64::total_cmp);
    let [low, middle, high] = [1, 5, 9].map(|tenths| durations[durations.len() * tenths / 10]);
    assert!((middle - 0.5).abs() < 0.05, "{middle}");
    assert!(high / low < 1.15, "{low} to {high}");
    let losses: Vec<f64> = sent
        .points(&metric::TRAIN_LOSS)
        .map(|point| point.value)
        .collect();
    assert_eq!(losses.len(), 400);
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    assert!(mean(&losses[..20]) > 1.3 * mean(&losses[380..]));
}

#[test]
fn run_lifecycle_emits_its_spans() {
    let sent = sent(config(200));
    let count = |span| sent.spans_of(span).count();
    assert_eq!(count(&span::RUN_INIT), 4);
    assert_eq!(count(&span::RUN_COMPILE), 4);
    assert_eq!(count(&span::TRAIN_CHECKPOINT_SAVE), 4 * 4);
    assert_eq!(count(&span::EVAL_RUN), 4 * 2);
    assert_eq!(count(&span::TRAIN_CHECKPOINT_LOAD), 0);
    assert_eq!(sent.points(&metric::EVAL_LOSS).count(), 2);
    let planned: BTreeSet<_> = sent
        .points(&metric::TRAIN_PLANNED_STEPS)
        .map(|point| point.value as u64)
        .collect();
    assert_eq!(planned, BTreeSet::from([200]));
}

#[test]
fn constant_metrics_are_resent_every_minute() {
    let sent = sent(config(300));
    let times: Vec<UnixNanos> = sent
        .points(&metric::RUN_DEVICES)
        .map(|point| point.time)
        .collect();
    assert_eq!(times.len(), 3);
    for pair in times.windows(2) {
        let seconds = pair[1].nanos_since(pair[0]) / 1_000_000_000;
        assert!((60..75).contains(&seconds), "{seconds}");
    }
}

#[test]
fn gpus_of_every_host_carry_their_rank() {
    let config = DemoConfig {
        ranks: 12,
        ..config(10)
    };
    let sent = sent(config);
    let mut seen = BTreeSet::new();
    for point in sent.points(&metric::GPU_POWER) {
        let host = point.resource[attribute::HOST_NAME.name].clone();
        let index: i64 = point.attribute(&attribute::GPU_INDEX).parse().unwrap();
        seen.insert((host, index, point.rank().unwrap()));
    }
    assert_eq!(seen.len(), 12);
    for (host, index, rank) in seen {
        assert_eq!((host, index), (format!("demo-node-{}", rank / 8), rank % 8));
    }
    let ids = |metric| {
        let points = sent.points(metric);
        points
            .map(|point| point.attribute(&attribute::GPU_ID).to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(ids(&metric::GPU_POWER), ids(&metric::GPU_PEAK_FLOPS));
}

#[test]
fn healthy_reinforcement_learning_rarely_waits_and_syncs_weights() {
    let config = DemoConfig {
        workload: Workload::Rl,
        ..config(100)
    };
    let sent = sent(config);
    let seconds = |span| -> f64 { sent.spans_of(span).map(SpanItem::seconds).sum() };
    let (waits, steps) = (seconds(&span::PERF_DISPATCH_WAIT), seconds(&span::TRAIN_STEP));
    assert!(waits < 0.05 * steps, "{waits} of {steps}");
    assert_eq!(sent.spans_of(&span::RL_WEIGHT_SYNC).count(), 400);
    assert_eq!(sent.spans_of(&span::RL_ROLLOUT).count(), 100);
    assert!(sent.points(&metric::RL_TRAJECTORY_REWARD).count() > 0);
}

#[test]
fn series_are_counted_once_regardless_of_their_points() {
    let series = |steps| {
        let mut demo = Demo::new(config(steps)).unwrap();
        let mut series = SeriesCounter::default();
        while let Some((_, batches)) = demo.next_batches() {
            batches.iter().for_each(|batch| series.observe(batch));
        }
        series.series()
    };
    assert_eq!(series(20), series(40));
    let sent = sent(config(20));
    let own: BTreeSet<_> = sent
        .points
        .iter()
        .map(|point| {
            let instance = point.resource[attribute::SERVICE_INSTANCE_ID.name].clone();
            (instance, point.metric.clone(), format!("{:?}", point.attributes))
        })
        .collect();
    assert_eq!(series(20), own.len() as u64);
}

#[test]
fn invalid_job_is_rejected_with_advice() {
    let refused = |config: DemoConfig| Demo::new(config).err().expect("it is refused").to_string();
    let message = refused(DemoConfig {
        ranks: 0,
        ..config(1)
    });
    assert!(
        message.contains("0 ranks") && message.contains("1 to"),
        "{message}"
    );
    assert!(refused(config(0)).contains("at least 1 step"));
    let step_time = Duration::ZERO;
    assert!(
        refused(DemoConfig {
            step_time,
            ..config(1)
        })
        .contains("another rate")
    );
    let with = |fault: &str, config| {
        refused(DemoConfig {
            faults: vec![fault.parse().unwrap()],
            ..config
        })
    };
    assert!(with("straggler:rank=4", config(100)).contains("ranks 0 to 3"));
    assert!(with("straggler@101", config(100)).contains("ends after step 100"));
    assert!(with("inference-bottleneck", config(100)).contains("workload rl"));
    let one = DemoConfig {
        ranks: 1,
        ..config(100)
    };
    assert!(with("collective-hang", one).contains("at least 2 ranks"));
}
