//! Limits, ends and states of series.

use pulsetrain_otlp::{
    UnixNanos,
    view::{AnyValue, Message, MetricData, MetricsData, NumberPoint},
    write::{AttributeValue, Envelope},
};
use pulsetrain_semconv::{attribute, metric};

use super::*;
use crate::SkipReason;

const LIMITS: SeriesLimits = SeriesLimits {
    per_metric: 2,
    ended: 3,
};

/// Returns the number points so far: metric, last attribute, and the value, or `None` for an end.
fn points(writer: &mut SeriesWriter) -> Vec<(String, String, Option<f64>)> {
    let Some(encoded) = writer.finish(&Envelope::new(&[], "test", "", "")) else {
        return Vec::new();
    };
    let data = MetricsData::decode(&encoded.bytes).expect("our own bytes");
    let mut found = Vec::new();
    let resources = data.resource_metrics.into_iter().flatten();
    let scopes = resources.flat_map(|resource| resource.scope_metrics).flatten();
    for metric in scopes.flat_map(|scope| scope.metrics).flatten() {
        let data_points = match metric.data() {
            Some(MetricData::Gauge(gauge)) => gauge.data_points,
            Some(MetricData::Sum(sum)) => sum.data_points,
            other => panic!("no number points: {other:?}"),
        };
        for point in data_points.into_iter().flatten() {
            let is_end = point.flags & NumberPoint::NO_RECORDED_VALUE != 0;
            let value = (!is_end).then(|| point.value().expect("a value").as_f64());
            let last = point.attributes.into_iter().last();
            let text = match last.and_then(|last| last.expect("our own bytes").value) {
                Some(AnyValue::String(text)) => text.to_string(),
                _ => String::new(),
            };
            found.push((metric.name.to_string(), text, value));
        }
    }
    found
}

fn named(name: &str) -> [Attribute<'_>; 1] {
    [(&attribute::DATA_NAME, AttributeValue::Text(name))]
}

fn point(metric: &Metric, attribute: &str, value: Option<f64>) -> (String, String, Option<f64>) {
    (metric.name.to_owned(), attribute.to_owned(), value)
}

#[test]
fn integers_are_rounded_and_scaled_counts_keep_all_bits() {
    let bytes = &metric::GPU_MEMORY_USED;
    assert_eq!(
        number(bytes, 8_029_999_999.999_999),
        NumberValue::Int(8_030_000_000)
    );
    let large = (1 << 60) + 1;
    assert_eq!(
        scaled_count(bytes, large, 2.0),
        NumberValue::Int(2 * large as i64)
    );
    assert_eq!(scaled_count(bytes, 3, 0.5), NumberValue::Int(2));
    assert_eq!(
        scaled_count(&metric::TRAIN_LOSS, 3, 0.5),
        NumberValue::Double(1.5)
    );
}

#[test]
fn ended_series_begins_again_and_its_total_continues() {
    let mut writer = SeriesWriter::new(LIMITS);
    for time in [1, 2] {
        for metric in [&metric::TRAIN_LOSS, &metric::TRAIN_TOKENS] {
            writer.record(metric, UnixNanos(time), 2.0, &[]).expect("a point");
        }
        assert_eq!(writer.end(UnixNanos(time)).ended, 2);
        assert_eq!(writer.end(UnixNanos(time)).ended, 0, "it has ended");
        assert!(!writer.has_active());
    }
    let series = |metric, values: [Option<f64>; 4]| values.map(|value| point(metric, "", value));
    let loss = series(&metric::TRAIN_LOSS, [Some(2.0), None, Some(2.0), None]);
    let tokens = series(&metric::TRAIN_TOKENS, [Some(2.0), None, Some(4.0), None]);
    assert_eq!(points(&mut writer), [loss, tokens].concat());
}

#[test]
fn sums_beyond_the_limit_are_rejected_and_gauges_beyond_it_have_no_end() {
    let mut writer = SeriesWriter::new(LIMITS);
    let names = ["a", "b", "c", "d"];
    let mut record = |metric| names.map(|name| writer.record(metric, UnixNanos(1), 1.0, &named(name)));
    let rejected = Err(SkipReason::TooManySeries);
    assert_eq!(
        record(&metric::TRAIN_TOKENS),
        [Ok(()), Ok(()), rejected, rejected]
    );
    assert_eq!(record(&metric::TRAIN_LOSS), [Ok(()); 4]);
    assert_eq!(record(&metric::TRAIN_LOSS), [Ok(()); 4]);
    assert_eq!(writer.end(UnixNanos(2)), EndedSeries { ended: 3, beyond: 6 });
    let found = points(&mut writer);
    assert_eq!(found.iter().filter(|(.., value)| value.is_none()).count(), 3);
    // There is room again for gauges, and the sums that were kept are still known.
    let mut record = |metric| names.map(|name| writer.record(metric, UnixNanos(3), 1.0, &named(name)));
    assert_eq!(
        record(&metric::TRAIN_TOKENS),
        [Ok(()), Ok(()), rejected, rejected]
    );
    writer.restart_sums(UnixNanos(3));
    let recorded = writer.record(&metric::TRAIN_TOKENS, UnixNanos(4), 1.0, &named("a"));
    assert_eq!(recorded, Ok(()));
    let last = points(&mut writer).pop();
    assert_eq!(last, Some(point(&metric::TRAIN_TOKENS, "a", Some(1.0))));
}

#[test]
fn series_without_a_value_since_the_last_call_ends() {
    let mut writer = SeriesWriter::new(LIMITS);
    for (time, names) in [(1, &["a", "b"][..]), (2, &["b"]), (3, &["b", "a"])] {
        for name in names {
            let recorded = writer.record(&metric::TRAIN_LOSS, UnixNanos(time), 1.0, &named(name));
            recorded.expect("a gauge");
        }
        let ended = writer.end_silent(UnixNanos(time)).ended;
        assert_eq!(ended, u64::from(time == 2));
    }
    let ends: Vec<_> = points(&mut writer)
        .into_iter()
        .filter(|(.., value)| value.is_none())
        .collect();
    assert_eq!(ends, [point(&metric::TRAIN_LOSS, "a", None)]);
}

#[test]
fn state_is_written_again_after_the_end_of_its_series() {
    let mut writer = SeriesWriter::new(SeriesLimits { ended: 100, ..LIMITS });
    let (metric, attribute) = (&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE);
    let record = |writer: &mut SeriesWriter| {
        let points = writer.record_state(metric, attribute, UnixNanos(1), "warmup", &[]);
        points.expect("within the limit")
    };
    let states = record(&mut writer);
    assert!(states > 1, "a point for each state");
    assert_eq!(record(&mut writer), 0, "it has not changed");
    assert_eq!(writer.end(UnixNanos(2)).ended, states);
    assert_eq!(record(&mut writer), states);
}
