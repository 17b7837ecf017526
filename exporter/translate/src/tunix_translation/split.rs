//! Splits a message into the points of Tunix and the bytes of the rest.

use pulsetrain_mapping::tunix_otel::{MODE, OtelPoint, PREFIX, SCOPE};
use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, KeyValue, Message, Metric, ResourceMetrics, ScopeMetrics},
    walk::{AnyPoint, PointKind},
};

use crate::field_rewrite::{FieldAction, rewrite_field};

/// The field numbers on the path from a message to a metric.
const RESOURCE_METRICS: u32 = 1;
const SCOPE_METRICS: u32 = 2;
const METRICS: u32 = 2;

/// Passes the points of Tunix of each resource to `take`, with the bytes of the resource. Returns the message without the points,
/// and their number.
///
/// # Errors
/// The bytes are not valid OTLP.
pub(super) fn split(
    message: &[u8],
    mut take: impl FnMut(&[u8], &[OtelPoint<'_>]),
) -> Result<(Vec<u8>, u32), WireError> {
    let mut taken = 0;
    let left = rewrite_field(message, RESOURCE_METRICS, |field| {
        let mut points = Vec::new();
        let left = take_points(field, &mut points)?;
        if points.is_empty() {
            return Ok(FieldAction::Keep);
        }
        taken += points.len() as u32;
        take(resource(field)?, &points);
        let is_empty = ResourceMetrics::decode(&left)?.scope_metrics.is_empty();
        Ok(if is_empty {
            FieldAction::Remove
        } else {
            FieldAction::Replace(left)
        })
    })?;
    Ok((left, taken))
}

/// Returns the bytes of the resource.
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

/// Appends the points of Tunix of a resource to `points` and returns the rest of the message.
fn take_points<'m>(
    resource_metrics: &'m [u8],
    points: &mut Vec<OtelPoint<'m>>,
) -> Result<Vec<u8>, WireError> {
    rewrite_field(resource_metrics, SCOPE_METRICS, |scope| {
        let is_tunix = ScopeMetrics::decode(scope)?
            .scope
            .is_some_and(|scope| scope.name == SCOPE);
        if !is_tunix {
            return Ok(FieldAction::Keep);
        }
        let before = points.len();
        let left = rewrite_field(scope, METRICS, |metric| {
            let found = points_of(metric)?;
            let action = match found.is_empty() {
                true => FieldAction::Keep,
                false => FieldAction::Remove,
            };
            points.extend(found);
            Ok(action)
        })?;
        if points.len() == before {
            return Ok(FieldAction::Keep);
        }
        let is_empty = ScopeMetrics::decode(&left)?.metrics.is_empty();
        Ok(if is_empty {
            FieldAction::Remove
        } else {
            FieldAction::Replace(left)
        })
    })
}

/// Returns the points of a gauge of Tunix. The list is empty if the metric is not a gauge, or if another writer added points.
fn points_of(metric: &[u8]) -> Result<Vec<OtelPoint<'_>>, WireError> {
    let metric = Metric::decode(metric)?;
    let data = metric.data().filter(|data| data.kind() == PointKind::Gauge);
    let (Some(data), Ok(name)) = (data, metric.name.to_str()) else {
        return Ok(Vec::new());
    };
    let mut points = Vec::with_capacity(data.point_count());
    let mut is_of_tunix = true;
    data.try_each_point(|point| {
        match point_of(name, &point)? {
            Some(point) => points.push(point),
            None => is_of_tunix = false,
        }
        Ok::<_, WireError>(())
    })?;
    if !is_of_tunix {
        points.clear();
    }
    Ok(points)
}

/// Returns a point of Tunix, or `None` if it lacks the mode. Plain fine-tuning has no prefix.
fn point_of<'m>(name: &'m str, point: &AnyPoint<'_, 'm>) -> Result<Option<OtelPoint<'m>>, WireError> {
    let (mut prefix, mut mode) = (Some(""), None);
    for attribute in point.attributes() {
        let attribute = attribute?;
        if attribute.key == PREFIX {
            prefix = text(&attribute);
        } else if attribute.key == MODE {
            mode = text(&attribute);
        }
    }
    let (Some(prefix), Some(mode), Some(value)) = (prefix, mode, point.number()) else {
        return Ok(None);
    };
    Ok(Some(OtelPoint {
        prefix,
        mode,
        name,
        time_unix_nanos: point.time(),
        value: value.as_f64(),
    }))
}

fn text<'m>(attribute: &KeyValue<'m>) -> Option<&'m str> {
    match attribute.value {
        Some(AnyValue::String(text)) => text.to_str().ok(),
        _ => None,
    }
}
