//! The forms in which clients send the same values: temporality, kind of histogram, type of the rank, repeated requests.

use std::collections::HashMap;

use opentelemetry_proto::tonic::{
    common::v1::any_value,
    metrics::v1::{
        AggregationTemporality, ExponentialHistogram, ExponentialHistogramDataPoint, HistogramDataPoint,
        MetricsData, metric::Data, number_data_point,
    },
};
use prost::Message;

use super::*;

/// The form of a client's metrics.
#[derive(Clone, Copy, Debug, Default)]
struct Form {
    is_delta: bool,
    is_exponential: bool,
    has_rank_as_text: bool,
    is_sent_twice: bool,
}

/// Rank, number, duration, data time and tokens of a step.
type Facts = (i64, i64, Option<f64>, Option<f64>, Option<f64>);

/// Returns the facts of the steps of two ranks that send metrics in this form, every third step.
fn facts(form: Form) -> Vec<Facts> {
    let (mut bench, seen) = bench();
    let mut trainers = [0, 1].map(|rank| (Trainer::new("r", rank, 2), HashMap::new()));
    for step in 1..=60 {
        for (trainer, last) in &mut trainers {
            let end = at(step as f64);
            trainer
                .step(step, end, 1.0)
                .record(&metric::PERF_DATA_TIME, end, 0.25)
                .record(&metric::TRAIN_TOKENS, end, 1000.0);
            if step % 3 > 0 {
                continue;
            }
            for batch in trainer.batches() {
                let batch = in_form(&batch, form, last);
                for _ in 0..=usize::from(form.is_sent_twice) {
                    bench.stage.pass(batch.clone(), bench.now, &mut bench.out);
                }
            }
        }
    }
    bench.finish();
    let facts = seen.steps().into_iter().map(|step| {
        (
            step.rank.rank,
            step.number,
            step.duration_secs(),
            step.phase(Phase::Data),
            step.value(&metric::TRAIN_TOKENS),
        )
    });
    let mut facts: Vec<Facts> = facts.collect();
    facts.sort_by_key(|(rank, number, ..)| (*rank, *number));
    facts
}

/// The last cumulative values of a series: time, count and sum.
type Last = HashMap<String, (u64, u64, f64)>;

/// Returns a batch of cumulative metrics in another form.
fn in_form(batch: &Batch, form: Form, last: &mut Last) -> Batch {
    let mut data = MetricsData::decode(batch.bytes().clone()).unwrap();
    for resource in &mut data.resource_metrics {
        for attribute in &mut resource.resource.as_mut().unwrap().attributes {
            let value = attribute.value.as_mut().unwrap();
            if let (true, Some(any_value::Value::IntValue(number))) = (form.has_rank_as_text, &value.value) {
                value.value = Some(any_value::Value::StringValue(number.to_string()));
            }
        }
        for metric in resource
            .scope_metrics
            .iter_mut()
            .flat_map(|scope| &mut scope.metrics)
        {
            let data = metric.data.take().unwrap();
            let last = last.entry(metric.name.clone()).or_default();
            metric.data = Some(metric_in_form(data, form, last));
        }
    }
    Batch::new(Signal::Metrics, batch.items(), data.encode_to_vec())
}

fn metric_in_form(data: Data, form: Form, last: &mut (u64, u64, f64)) -> Data {
    let mut difference = |start: &mut u64, (time, count, sum): (u64, u64, f64)| {
        if !form.is_delta {
            return (count, sum);
        }
        let (last_time, last_count, last_sum) = std::mem::replace(last, (time, count, sum));
        *start = last_time.max(*start);
        (count - last_count, sum - last_sum)
    };
    let temporality = match form.is_delta {
        true => AggregationTemporality::Delta,
        false => AggregationTemporality::Cumulative,
    };
    match data {
        Data::Sum(mut sum) => {
            for point in &mut sum.data_points {
                let Some(number_data_point::Value::AsInt(value)) = point.value else {
                    panic!("{point:?}")
                };
                let now = (point.time_unix_nano, 0, value as f64);
                let (_, value) = difference(&mut point.start_time_unix_nano, now);
                point.value = Some(number_data_point::Value::AsInt(value as i64));
            }
            sum.aggregation_temporality = temporality.into();
            Data::Sum(sum)
        }
        Data::Histogram(mut histogram) => {
            for point in &mut histogram.data_points {
                let now = (point.time_unix_nano, point.count, point.sum.unwrap());
                let (count, sum) = difference(&mut point.start_time_unix_nano, now);
                (point.count, point.sum) = (count, Some(sum));
            }
            histogram.aggregation_temporality = temporality.into();
            if !form.is_exponential {
                return Data::Histogram(histogram);
            }
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points: histogram.data_points.into_iter().map(exponential).collect(),
                aggregation_temporality: temporality.into(),
            })
        }
        other => other,
    }
}

fn exponential(point: HistogramDataPoint) -> ExponentialHistogramDataPoint {
    ExponentialHistogramDataPoint {
        attributes: point.attributes,
        start_time_unix_nano: point.start_time_unix_nano,
        time_unix_nano: point.time_unix_nano,
        count: point.count,
        sum: point.sum,
        zero_count: point.count,
        ..ExponentialHistogramDataPoint::default()
    }
}

#[test]
fn steps_are_equal_in_every_form_of_their_metrics() {
    let expected = facts(Form::default());
    assert_eq!(expected.len(), 120);
    assert!(
        expected
            .iter()
            .all(|step| (step.2, step.3, step.4) == (Some(1.0), Some(0.25), Some(1000.0))),
        "{expected:?}"
    );
    for bits in 1..8 {
        let form = Form {
            is_delta: bits & 1 > 0,
            is_exponential: bits & 2 > 0,
            has_rank_as_text: bits & 4 > 0,
            is_sent_twice: false,
        };
        assert_eq!(facts(form), expected, "{form:?}");
    }
}

#[test]
fn delta_that_is_sent_twice_counts_once() {
    let form = Form {
        is_delta: true,
        is_sent_twice: true,
        ..Form::default()
    };
    assert_eq!(facts(form), facts(Form::default()));
}
