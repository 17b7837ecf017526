//! A message in two: the points of Tunix, and the bytes of all the rest.

use pulsetrain_mapping::tunix_otel::{MODE, OtelPoint, PREFIX, SCOPE};
use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, KeyValue, Message, Metric, MetricData, NumberPoint, ResourceMetrics, ScopeMetrics},
};

use crate::rest::{Part, rest};

/// The fields of a message on the way down to a metric.
const RESOURCE_METRICS: u32 = 1;
const SCOPE_METRICS: u32 = 2;
const METRICS: u32 = 2;

/// Shows `take` the points of Tunix of each resource, with the resource's bytes; answers with the message without them, and
/// how many there were.
///
/// # Errors
/// Bytes that are no OTLP.
pub(super) fn split(
    message: &[u8],
    mut take: impl FnMut(&[u8], &[OtelPoint<'_>]),
) -> Result<(Vec<u8>, u32), WireError> {
    let mut taken = 0;
    let left = rest(message, RESOURCE_METRICS, |part| {
        let mut points = Vec::new();
        let left = of_resource(part, &mut points)?;
        if points.is_empty() {
            return Ok(Part::Kept);
        }
        taken += points.len() as u32;
        take(resource(part)?, &points);
        let is_empty = ResourceMetrics::decode(&left)?.scope_metrics.is_empty();
        Ok(if is_empty { Part::Gone } else { Part::Instead(left) })
    })?;
    Ok((left, taken))
}

/// The bytes of the resource itself.
fn resource(resource_metrics: &[u8]) -> Result<&[u8], WireError> {
    let mut found: &[u8] = &[];
    let mut reader = pulsetrain_otlp::wire::Reader::new(resource_metrics);
    while !reader.is_at_end() {
        match reader.tag()? {
            0x0a => found = reader.delimited()?,
            other => drop(reader.value(other)?),
        }
    }
    Ok(found)
}

fn of_resource<'m>(part: &'m [u8], points: &mut Vec<OtelPoint<'m>>) -> Result<Vec<u8>, WireError> {
    rest(part, SCOPE_METRICS, |scope| {
        let is_tunix = ScopeMetrics::decode(scope)?
            .scope
            .is_some_and(|scope| scope.name == SCOPE);
        if !is_tunix {
            return Ok(Part::Kept);
        }
        let before = points.len();
        let left = rest(scope, METRICS, |metric| {
            let its = points_of(metric)?;
            let part = if its.is_empty() { Part::Kept } else { Part::Gone };
            points.extend(its);
            Ok(part)
        })?;
        if points.len() == before {
            return Ok(Part::Kept);
        }
        let is_empty = ScopeMetrics::decode(&left)?.metrics.is_empty();
        Ok(if is_empty { Part::Gone } else { Part::Instead(left) })
    })
}

/// The points of a gauge all of whose points are Tunix's; else none, and it stays what it is.
fn points_of(metric: &[u8]) -> Result<Vec<OtelPoint<'_>>, WireError> {
    let metric = Metric::decode(metric)?;
    let (Some(MetricData::Gauge(gauge)), Ok(name)) = (metric.data(), metric.name.to_str()) else {
        return Ok(Vec::new());
    };
    let mut points = Vec::with_capacity(gauge.data_points.len());
    for point in gauge.data_points {
        match point_of(name, &point?)? {
            Some(point) => points.push(point),
            None => return Ok(Vec::new()),
        }
    }
    Ok(points)
}

/// Every point of Tunix has its mode; the prefix is left out where it is empty, as that of plain fine-tuning is.
fn point_of<'m>(name: &'m str, point: &NumberPoint<'m>) -> Result<Option<OtelPoint<'m>>, WireError> {
    let (mut prefix, mut mode) = (Some(""), None);
    for attribute in point.attributes {
        let attribute = attribute?;
        if attribute.key == PREFIX {
            prefix = text(&attribute);
        } else if attribute.key == MODE {
            mode = text(&attribute);
        }
    }
    let (Some(prefix), Some(mode), Some(value)) = (prefix, mode, point.value()) else {
        return Ok(None);
    };
    Ok(Some(OtelPoint {
        prefix,
        mode,
        name,
        time_unix_nanos: point.time_unix_nano,
        value: value.as_f64(),
    }))
}

fn text<'m>(attribute: &KeyValue<'m>) -> Option<&'m str> {
    match attribute.value {
        Some(AnyValue::String(text)) => text.to_str().ok(),
        _ => None,
    }
}
