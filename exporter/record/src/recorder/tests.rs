//! Reads back recorded items from the batches.

use opentelemetry_proto::tonic::metrics::v1::{self as proto, metric::Data};
use prost::Message as _;
use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::NumberValue,
    walk::{self, AnyPoint},
};
use pulsetrain_semconv::{attribute, metric};

use super::*;

/// Returns the batches of everything that `record` records.
fn recorded(record: impl FnOnce(&mut Recorder<'_>)) -> (Vec<Encoded>, Counts, ParseReport) {
    let mut batches = Vec::new();
    let run = Run {
        id: "r".into(),
        ..Run::default()
    };
    let mut recorder = Recorder::new(run, |batch| batches.push(batch));
    record(&mut recorder);
    let (counts, skipped) = recorder.finish();
    (batches, counts, skipped)
}

/// Returns the number points of a metric: their times, values and last attributes.
fn points(batches: &[Encoded], name: &str) -> Vec<(u64, NumberValue, String)> {
    let mut found = Vec::new();
    for batch in batches.iter().filter(|batch| batch.signal == Signal::Metrics) {
        let resource = walk::metrics(&batch.bytes).next().unwrap().unwrap();
        for metric in resource
            .items()
            .map(Result::unwrap)
            .filter(|metric| metric.name == name)
        {
            metric.each_point(|point| found.push(describe(&point))).unwrap();
        }
    }
    found
}

/// Returns the times and values of the number points of a metric.
fn values(batches: &[Encoded], name: &str) -> Vec<(u64, NumberValue)> {
    let points = points(batches, name).into_iter();
    points.map(|(time, value, _)| (time, value)).collect()
}

fn counts(skipped: &ParseReport) -> Vec<(SkipReason, u64)> {
    skipped.counts().collect()
}

fn record_phase(recorder: &mut Recorder<'_>, time: u64, phase: &str) {
    let (metric, attribute) = (&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE);
    recorder.record_state(metric, attribute, UnixNanos(time), phase, &[]);
}

fn describe(point: &AnyPoint<'_, '_>) -> (u64, NumberValue, String) {
    let attribute = point
        .attributes()
        .iter()
        .last()
        .map(|attribute| format!("{:?}", attribute.unwrap().value.unwrap()));
    (
        point.time().0,
        point.number().unwrap(),
        attribute.unwrap_or_default(),
    )
}

#[test]
fn counter_is_exported_as_a_cumulative_sum() {
    let (batches, counts, _) = recorded(|recorder| {
        for (time, tokens) in [(5, 100.0), (6, 50.0)] {
            recorder.record(&metric::TRAIN_TOKENS, UnixNanos(time), tokens, &[]);
        }
    });
    let expected = [(5, NumberValue::Int(100)), (6, NumberValue::Int(150))];
    assert_eq!(values(&batches, "train.tokens"), expected);
    assert_eq!(counts.points, 2);
}

#[test]
fn series_with_different_attributes_have_separate_sums() {
    let (batches, ..) = recorded(|recorder| {
        for kind in ["spike", "nonfinite", "spike"] {
            let attributes = [(&attribute::TRAIN_ANOMALY_TYPE, AttributeValue::Text(kind))];
            recorder.record(&metric::TRAIN_ANOMALIES, UnixNanos(1), 1.0, &attributes);
        }
    });
    let expected = [1, 1, 2].map(|count| (1, NumberValue::Int(count)));
    assert_eq!(values(&batches, "train.anomalies"), expected);
}

/// Time, value, trace and span.
type Exemplar = (u64, f64, [u8; 16], [u8; 8]);

/// Returns the exemplars of step durations, point by point.
fn exemplars(batches: &[Encoded]) -> Vec<Vec<Exemplar>> {
    let mut found = Vec::new();
    for batch in batches.iter().filter(|batch| batch.signal == Signal::Metrics) {
        let data = proto::MetricsData::decode(batch.bytes.as_slice()).expect("a batch is OTLP");
        let resources = data.resource_metrics.iter();
        let scopes = resources.flat_map(|resource| &resource.scope_metrics);
        for metric in scopes.flat_map(|scope| &scope.metrics) {
            if let Some(Data::Histogram(histogram)) = &metric.data {
                let points = histogram.data_points.iter();
                found.extend(points.map(|point| point.exemplars.iter().map(of_exemplar).collect()));
            }
        }
    }
    found
}

fn of_exemplar(exemplar: &proto::Exemplar) -> Exemplar {
    let Some(proto::exemplar::Value::AsDouble(value)) = exemplar.value else {
        panic!("{exemplar:?} has no number");
    };
    let trace = exemplar.trace_id.as_slice().try_into().expect("16 bytes");
    let span = exemplar.span_id.as_slice().try_into().expect("8 bytes");
    (exemplar.time_unix_nano, value, trace, span)
}

fn step_span(run: &Run, step: i64, end_unix_nanos: UnixNanos) -> SpanParts<'static> {
    SpanParts {
        span: &semconv::span::TRAIN_STEP,
        trace_id: crate::step_trace(run, step),
        span_id: crate::step_span(run, step),
        parent_span_id: None,
        start_unix_nanos: UnixNanos(1),
        end_unix_nanos,
        attributes: &[],
    }
}

#[test]
fn duration_exemplar_links_only_to_the_span_of_its_step_and_rank() {
    let mut spans = Vec::new();
    let (batches, _, _) = recorded(|recorder| {
        let mut record = |rank, step, duration_at: u64, span_at: Option<u64>| {
            recorder.of_rank(Some(Rank::OfJob(rank)));
            recorder.record(&metric::TRAIN_STEP_DURATION, UnixNanos(duration_at), 0.5, &[]);
            if let Some(end) = span_at {
                let span = step_span(recorder.run(), step, UnixNanos(end));
                spans.push((span.trace_id, span.span_id));
                recorder.record_span(&span);
            }
            recorder.end_of_record();
        };
        record(0, 1, 10, Some(10));
        record(0, 2, 20, None);
        // A span with another end time belongs to another step.
        record(0, 3, 30, Some(31));
        record(1, 1, 10, Some(10));
        // Nor does a span of the next record count.
        let late = step_span(recorder.run(), 2, UnixNanos(20));
        recorder.record(&metric::TRAIN_STEP_DURATION, UnixNanos(20), 0.5, &[]);
        recorder.end_of_record();
        recorder.record_span(&late);
    });
    let one = |place: usize| vec![(10, 0.5, spans[place].0, spans[place].1)];
    // The batches of the current rank come first.
    assert_eq!(exemplars(&batches), [one(2), vec![], one(0), vec![], vec![]]);
    assert_eq!(spans[0].0, spans[2].0, "a step has one trace");
    assert_ne!(spans[0].1, spans[2].1, "a rank has its own span");
}

#[test]
fn nan_is_recorded_by_a_gauge_and_rejected_by_a_sum() {
    let (batches, _, skipped) = recorded(|recorder| {
        recorder.record(&metric::TRAIN_LOSS, UnixNanos(1), f64::NAN, &[]);
        recorder.record(&metric::TRAIN_TOKENS, UnixNanos(1), f64::NAN, &[]);
        recorder.record(&metric::TRAIN_STEP_DURATION, UnixNanos(1), f64::INFINITY, &[]);
    });
    assert!(points(&batches, "train.loss")[0].1.as_f64().is_nan());
    assert_eq!(points(&batches, "train.tokens"), []);
    assert_eq!(counts(&skipped), [(SkipReason::NotSummable, 2)]);
}

#[test]
fn state_is_exported_on_change_and_again_after_a_minute() {
    let minute = 60_000_000_000;
    let exported_at = |times: &[(u64, &str)]| {
        let (batches, ..) = recorded(|recorder| {
            for (time, phase) in times {
                record_phase(recorder, *time, phase);
            }
        });
        let active = |(time, value, state)| (value == NumberValue::Int(1)).then_some((time, state));
        points(&batches, "train.phase")
            .into_iter()
            .filter_map(active)
            .collect::<Vec<_>>()
    };
    let states = exported_at(&[
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
fn unregistered_state_is_exported_and_reset_to_zero_on_change() {
    let (batches, ..) = recorded(|recorder| {
        for (time, phase) in [(1, "annealing"), (2, "warmup")] {
            record_phase(recorder, time, phase);
        }
    });
    let annealing: Vec<_> = points(&batches, "train.phase")
        .into_iter()
        .filter_map(|(time, value, state)| state.contains("annealing").then_some((time, value)))
        .collect();
    assert_eq!(annealing, [(1, NumberValue::Int(1)), (2, NumberValue::Int(0))]);
}

#[test]
fn every_series_ends_once_regardless_of_how_points_were_recorded() {
    let mut recorder = Recorder::new(Run::default(), |_| {}).tracking_series();
    let mut loss = PreparedSeries::new(&metric::TRAIN_LOSS, &[]);
    let mut duration = PreparedSeries::new(&metric::TRAIN_STEP_DURATION, &[]);
    for time in 1..=3 {
        recorder.record(&metric::TRAIN_LOSS, UnixNanos(time), 2.5, &[]);
        recorder.record(&metric::TRAIN_GRAD_NORM, UnixNanos(time), 2.5, &[]);
        recorder.record_prepared(&mut loss, UnixNanos(time), 2.5);
        recorder.record_prepared(&mut duration, UnixNanos(time), 0.5);
        recorder.record_custom(UnixNanos(time), "mine", 1.0);
    }
    let before = recorder.counts().points;
    recorder.end_series();
    assert_eq!(recorder.counts().points - before, 4);
}

#[test]
fn prepared_series_shares_its_sum_with_other_recording_paths_and_restarts() {
    let (batches, ..) = recorded(|recorder| {
        let mut steps = PreparedSeries::new(&metric::TRAIN_STEPS, &[]);
        recorder.record(&metric::TRAIN_STEPS, UnixNanos(1), 2.0, &[]);
        recorder.record_prepared(&mut steps, UnixNanos(2), 3.0);
        recorder.of_rank(Some(Rank::OfJob(7)));
        recorder.record_prepared(&mut steps, UnixNanos(3), 1.0);
        recorder.of_rank(None);
        recorder.record_prepared(&mut steps, UnixNanos(4), 1.0);
        recorder.restart_sums();
        recorder.record_prepared(&mut steps, UnixNanos(5), 1.0);
    });
    let mut sums = values(&batches, "train.steps");
    sums.sort_by_key(|(time, _)| *time);
    let expected = [(1, 2), (2, 5), (3, 1), (4, 6), (5, 1)];
    assert_eq!(sums, expected.map(|(time, sum)| (time, NumberValue::Int(sum))));
}

#[test]
fn custom_names_are_bounded_and_the_rest_is_counted() {
    let (batches, _, skipped) = recorded(|recorder| {
        for number in 0..300 {
            recorder.record_custom(UnixNanos(1), &format!("name {number}"), 1.0);
        }
    });
    assert_eq!(points(&batches, "train.custom").len(), 256);
    assert_eq!(counts(&skipped), [(SkipReason::TooManyCustomNames, 44)]);
}

#[test]
fn batches_are_flushed_before_they_exceed_the_size_limit() {
    let (batches, counts, _) = recorded(|recorder| {
        for time in 0..200_000 {
            recorder.record(&metric::TRAIN_LOSS, UnixNanos(time), 1.0, &[]);
            recorder.end_of_record();
        }
    });
    assert!(batches.len() > 2 && batches.iter().all(|batch| batch.bytes.len() < BATCH_BYTES + 1024));
    let items: u64 = batches.iter().map(|batch| u64::from(batch.items)).sum();
    assert_eq!(items, counts.points);
}

#[test]
fn series_beyond_the_limit_are_counted_and_not_kept() {
    let mut recorder = Recorder::new(Run::default(), |_| {});
    for number in 0..ranks::SERIES.per_metric + 3 {
        let name = number.to_string();
        let attributes = [(&attribute::DATA_NAME, AttributeValue::Text(&name))];
        recorder.record(&metric::TRAIN_TOKENS, UnixNanos(1), 2.0, &attributes);
    }
    let (recorded, skipped) = recorder.finish();
    assert_eq!(recorded.points, ranks::SERIES.per_metric as u64);
    assert_eq!(counts(&skipped), [(SkipReason::TooManySeries, 3)]);
}
