//! What is recorded, read back from the batches.

use pulsetrain_otlp::view::{Message, MetricData, MetricsData, NumberPoint, NumberValue};
use pulsetrain_semconv::{attribute, metric};

use super::*;

/// Everything that `record` records, as batches.
fn recorded(record: impl FnOnce(&mut Recorder<'_>)) -> (Vec<Encoded>, Counts, Skipped) {
    let mut batches = Vec::new();
    let mut recorder = Recorder::new(
        Run {
            id: "r".into(),
            ..Run::default()
        },
        |batch| batches.push(batch),
    );
    record(&mut recorder);
    let (counts, skipped) = recorder.finish();
    (batches, counts, skipped)
}

/// The number points of a metric: their times, values and last attributes.
fn points(batches: &[Encoded], name: &str) -> Vec<(u64, NumberValue, String)> {
    let mut found = Vec::new();
    for batch in batches
        .iter()
        .filter(|batch| batch.signal == pulsetrain_otlp::Signal::Metrics)
    {
        let data = MetricsData::decode(&batch.bytes).unwrap();
        let scope = data
            .resource_metrics
            .iter()
            .next()
            .unwrap()
            .unwrap()
            .scope_metrics
            .iter()
            .next()
            .unwrap()
            .unwrap();
        for metric in scope
            .metrics
            .iter()
            .map(Result::unwrap)
            .filter(|metric| metric.name == name)
        {
            let points = match metric.data() {
                Some(MetricData::Gauge(gauge)) => gauge.data_points,
                Some(MetricData::Sum(sum)) => sum.data_points,
                other => panic!("{name} has no number points: {other:?}"),
            };
            found.extend(points.iter().map(|point| describe(&point.unwrap())));
        }
    }
    found
}

fn describe(point: &NumberPoint<'_>) -> (u64, NumberValue, String) {
    let attribute = point
        .attributes
        .iter()
        .last()
        .map(|attribute| format!("{:?}", attribute.unwrap().value.unwrap()));
    (
        point.time_unix_nano,
        point.value().unwrap(),
        attribute.unwrap_or_default(),
    )
}

#[test]
fn a_counter_leaves_as_the_sum_since_the_start() {
    let (batches, counts, _) = recorded(|recorder| {
        for (time, tokens) in [(5, 100.0), (6, 50.0)] {
            recorder.record(&metric::TRAIN_TOKENS, time, tokens, &[]);
        }
    });
    let values: Vec<_> = points(&batches, "train.tokens")
        .into_iter()
        .map(|(time, value, _)| (time, value))
        .collect();
    assert_eq!(values, [(5, NumberValue::Int(100)), (6, NumberValue::Int(150))]);
    assert_eq!(counts.points, 2);
}

#[test]
fn series_with_different_attributes_have_sums_of_their_own() {
    let (batches, ..) = recorded(|recorder| {
        for kind in ["spike", "nonfinite", "spike"] {
            let attributes = [(&attribute::TRAIN_ANOMALY_TYPE, Value::Text(kind))];
            recorder.record(&metric::TRAIN_ANOMALIES, 1, 1.0, &attributes);
        }
    });
    let values: Vec<_> = points(&batches, "train.anomalies")
        .into_iter()
        .map(|(_, value, _)| value)
        .collect();
    assert_eq!(
        values,
        [NumberValue::Int(1), NumberValue::Int(1), NumberValue::Int(2)]
    );
}

#[test]
fn a_nan_is_a_value_of_a_gauge_and_none_of_a_sum() {
    let (batches, _, skipped) = recorded(|recorder| {
        recorder.record(&metric::TRAIN_LOSS, 1, f64::NAN, &[]);
        recorder.record(&metric::TRAIN_TOKENS, 1, f64::NAN, &[]);
        recorder.record(&metric::TRAIN_STEP_DURATION, 1, f64::INFINITY, &[]);
    });
    assert!(points(&batches, "train.loss")[0].1.as_f64().is_nan());
    assert_eq!(points(&batches, "train.tokens"), []);
    assert_eq!(
        skipped.counts().collect::<Vec<_>>(),
        [(SkipReason::NotSummable, 2)]
    );
}

#[test]
fn a_state_is_said_when_it_changes_and_again_after_a_minute() {
    let minute = 60_000_000_000;
    let said_at = |times: &[(u64, &str)]| {
        let (batches, ..) = recorded(|recorder| {
            for (time, phase) in times {
                recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, *time, phase, &[]);
            }
        });
        let active = |(time, value, state)| (value == NumberValue::Int(1)).then_some((time, state));
        points(&batches, "train.phase")
            .into_iter()
            .filter_map(active)
            .collect::<Vec<_>>()
    };
    let states = said_at(&[
        (1, "warmup"),
        (2, "warmup"),
        (3, "plateau"),
        (4 + minute, "plateau"),
    ]);
    let times: Vec<u64> = states.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [1, 3, 4 + minute]);
    assert!(states[1].1.contains("plateau"));
}

#[test]
fn a_state_that_the_registry_does_not_know_is_said_and_taken_back() {
    let (batches, ..) = recorded(|recorder| {
        for (time, phase) in [(1, "annealing"), (2, "warmup")] {
            recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
        }
    });
    let annealing: Vec<_> = points(&batches, "train.phase")
        .into_iter()
        .filter_map(|(time, value, state)| state.contains("annealing").then_some((time, value)))
        .collect();
    assert_eq!(annealing, [(1, NumberValue::Int(1)), (2, NumberValue::Int(0))]);
}

#[test]
fn custom_names_are_bounded_and_the_rest_is_counted() {
    let (batches, _, skipped) = recorded(|recorder| {
        for number in 0..300 {
            recorder.record_custom(1, &format!("name {number}"), 1.0);
        }
    });
    assert_eq!(points(&batches, "train.custom").len(), 256);
    assert_eq!(
        skipped.counts().collect::<Vec<_>>(),
        [(SkipReason::TooManyCustomNames, 44)]
    );
}

#[test]
fn batches_leave_before_they_grow_large() {
    let (batches, counts, _) = recorded(|recorder| {
        for time in 0..200_000 {
            recorder.record(&metric::TRAIN_LOSS, time, 1.0, &[]);
            recorder.end_of_record();
        }
    });
    assert!(batches.len() > 2 && batches.iter().all(|batch| batch.bytes.len() < BATCH_BYTES + 1024));
    assert_eq!(
        batches.iter().map(|batch| u64::from(batch.items)).sum::<u64>(),
        counts.points
    );
}
