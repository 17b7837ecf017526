//! Reads every field of every item through the views, the values of attributes included. The sum keeps the compiler from
//! removing the work.

use pulsetrain_otlp::view::{
    AnyValue, KeyValue, Message, MetricData, MetricsData, NumberPoint, NumberValue, Repeated, Span,
    TracesData,
};

pub(crate) fn spans(bytes: &[u8]) -> u64 {
    let data = TracesData::decode(bytes).unwrap();
    let mut sum = 0u64;
    for resource in data.resource_spans {
        let resource = resource.unwrap();
        sum += resource
            .resource
            .map_or(0, |resource| attributes(resource.attributes));
        for scope in resource.scope_spans {
            for span in scope.unwrap().spans {
                sum = sum.wrapping_add(self::span(&span.unwrap()));
            }
        }
    }
    sum
}

fn span(span: &Span<'_>) -> u64 {
    let ids = span.trace_id.len() + span.span_id.len() + span.parent_span_id.len();
    let text = span.name.as_bytes().len() + span.trace_state.as_bytes().len();
    let times = span.start_time_unix_nano ^ span.end_time_unix_nano;
    let lists = span.events.len() + span.links.len();
    let rest = span.flags + span.kind as u32 + span.dropped_attributes_count + span.dropped_events_count;
    let status = span.status.map_or(0, |status| status.code as u64);
    times ^ ((ids + text + lists) as u64 + u64::from(rest) + status + attributes(span.attributes))
}

pub(crate) fn points(bytes: &[u8]) -> u64 {
    let data = MetricsData::decode(bytes).unwrap();
    let mut sum = 0u64;
    for resource in data.resource_metrics {
        for scope in resource.unwrap().scope_metrics {
            for metric in scope.unwrap().metrics {
                let metric = metric.unwrap();
                sum += (metric.name.as_bytes().len() + metric.unit.as_bytes().len()) as u64;
                sum = sum.wrapping_add(match metric.data() {
                    Some(MetricData::Gauge(gauge)) => number_points(gauge.data_points),
                    Some(MetricData::Sum(sum)) => number_points(sum.data_points),
                    _ => 0,
                });
            }
        }
    }
    sum
}

fn number_points(points: Repeated<'_, NumberPoint<'_>>) -> u64 {
    points
        .into_iter()
        .map(|point| {
            let point = point.unwrap();
            let value = match point.value() {
                Some(NumberValue::Double(value)) => value.to_bits(),
                Some(NumberValue::Int(value)) => value as u64,
                None => 0,
            };
            let times = point.start_time_unix_nano ^ point.time_unix_nano;
            times
                ^ value
                ^ u64::from(point.flags)
                ^ (attributes(point.attributes) + point.exemplars.len() as u64)
        })
        .fold(0, u64::wrapping_add)
}

fn attributes(attributes: Repeated<'_, KeyValue<'_>>) -> u64 {
    let values = attributes.into_iter().map(|attribute| {
        let attribute = attribute.unwrap();
        let value = match attribute.value {
            Some(AnyValue::String(text)) => text.as_bytes().len() as u64,
            Some(AnyValue::Int(value)) => value as u64,
            Some(AnyValue::Double(value)) => value.to_bits(),
            Some(AnyValue::Bool(value)) => u64::from(value),
            _ => 0,
        };
        value ^ attribute.key.as_bytes().len() as u64
    });
    values.fold(0, u64::wrapping_add)
}
