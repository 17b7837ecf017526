//! Decodes the points of selected metrics in a batch.

use pulsetrain_otlp::{
    WireError,
    view::{Message, Metric, Text},
    walk::{self, AnyPoint},
    wire::{Reader, WireValue},
    write::Buffer,
};
use pulsetrain_run::RunOrigin;

use crate::{config::MAX_RESOURCE_BYTES, spans::copy, steps::assembler::resource_bytes};

/// Fields of the messages that enclose metrics (proto/metrics/v1/metrics.proto).
const RESOURCE_METRICS: u32 = 1;
const SCOPE_METRICS: u32 = 2;
const METRICS: u32 = 2;

/// Calls `each` for every point of the metrics that `wanted` selects by name, with the resource as bytes and
/// as an origin.
///
/// # Errors
/// Bytes that are not metrics. `each` was called for the points before them.
pub(crate) fn for_each<'a, T: Copy>(
    bytes: &'a [u8],
    wanted: impl Fn(Text<'_>) -> Option<T>,
    mut each: impl FnMut(T, &RunOrigin, &'a [u8], &AnyPoint<'_, 'a>),
) -> Result<(), WireError> {
    for resource in walk::metrics(bytes) {
        let resource = resource?;
        if resource_bytes(resource.bytes).len() > MAX_RESOURCE_BYTES {
            continue;
        }
        // Decoded for the first point that needs it, because most batches have none.
        let mut origin = None;
        for metric in resource.items() {
            let metric = metric?;
            let Some(wanted) = wanted(metric.name) else {
                continue;
            };
            let origin = origin.get_or_insert_with(|| RunOrigin::from_attributes(resource.attributes()));
            metric.each_point(|point| each(wanted, origin, resource.bytes, &point))?;
        }
    }
    Ok(())
}

/// Returns a batch of the metrics that `wanted` selects by name.
///
/// # Errors
/// Bytes that are not metrics.
pub(crate) fn only(bytes: &[u8], wanted: impl Fn(Text<'_>) -> bool) -> Result<Vec<u8>, WireError> {
    let is_wanted = |metric: &[u8]| Metric::decode(metric).map(|metric| wanted(metric.name));
    within(bytes, RESOURCE_METRICS, |resource| {
        within(resource, SCOPE_METRICS, |scope| {
            within(scope, METRICS, |metric| {
                Ok(is_wanted(metric)?.then(|| metric.to_vec()))
            })
            .map(Some)
        })
        .map(Some)
    })
}

/// Returns a message in which `part` replaces the fields of this number. Other fields stay.
fn within(
    bytes: &[u8],
    number: u32,
    mut part: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, WireError>,
) -> Result<Vec<u8>, WireError> {
    let mut out = Buffer::default();
    for field in Reader::new(bytes) {
        let field = field?;
        match field.value {
            WireValue::Bytes(resource_message) if field.number == number => {
                if let Some(part) = part(resource_message)? {
                    out.delimited(number, &part);
                }
            }
            _ => copy(&field, &mut out),
        }
    }
    Ok(out.into_vec())
}
