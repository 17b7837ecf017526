//! Converts OTLP points to values of the store.
//!
//! Explicit histograms keep their buckets. Exponential ones become Prometheus' native histograms: the schema
//! is at most 8, and the bucket index is one higher, because OTLP names a bucket by its lower bound and
//! Prometheus by its upper. `render/classic` has their text form.

use std::sync::Arc;

use pulsetrain_otlp::{
    UnixNanos, WireError,
    view::{
        Buckets, Exemplar as OtlpExemplar, ExponentialHistogramPoint, HistogramPoint, NumberPoint, Repeated,
        SummaryPoint,
    },
};

use super::{
    escape, labels,
    store::{
        Rejection,
        bounds::Bounds,
        value::{Exemplar, Histogram, Native, SampleValue, Side, Summary},
    },
};
use pulsetrain_otlp::json::value_text;

/// The maximum number of buckets of a histogram, and of quantiles of a summary.
const MAX_BUCKETS: usize = 10_000;
/// The maximum number of exemplars of a native histogram.
const MAX_NATIVE_EXEMPLARS: usize = 10;
/// The maximum length of an exemplar's labels in characters (OpenMetrics 1.0, "Exemplars").
const MAX_EXEMPLAR_CHARACTERS: usize = 128;
/// The zero threshold of a native histogram whose point has none (Prometheus' own default for OTLP).
const ZERO_THRESHOLD: f64 = 1e-128;
const SCHEMAS: std::ops::RangeInclusive<i32> = -4..=8;

/// The reason why a point has no value: rejected, or malformed protobuf.
pub(super) enum PointError {
    Rejected(Rejection),
    Wire(WireError),
}

impl From<WireError> for PointError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

const MALFORMED: PointError = PointError::Rejected(Rejection::Malformed);

pub(super) fn number(point: &NumberPoint<'_>) -> Result<SampleValue, PointError> {
    point
        .value()
        .map(|value| SampleValue::Number(value.as_f64()))
        .ok_or(MALFORMED)
}

/// Returns the histogram of a point. `share` finds shared bounds.
pub(super) fn histogram(
    point: &HistogramPoint<'_>,
    share: impl FnOnce(Vec<f64>) -> Result<Arc<Bounds>, Rejection>,
) -> Result<SampleValue, PointError> {
    let mut bounds: Vec<f64> = point.explicit_bounds.iter().collect::<Result<_, _>>()?;
    let mut buckets: Vec<u64> = point
        .bucket_counts
        .iter()
        .map(|count| count.map(|count| count.0))
        .collect::<Result<_, _>>()?;
    if buckets.is_empty() && bounds.is_empty() {
        buckets.push(point.count);
    }
    let rising =
        bounds.windows(2).all(|pair| pair[0] < pair[1]) && !bounds.iter().any(|bound| bound.is_nan());
    if buckets.len() != bounds.len() + 1 || buckets.len() > MAX_BUCKETS || !rising {
        return Err(MALFORMED);
    }
    merge_infinite(&mut bounds, &mut buckets);
    Ok(SampleValue::Histogram(Box::new(Histogram {
        bounds: share(bounds).map_err(PointError::Rejected)?,
        buckets: buckets.into(),
        count: point.count,
        sum: point.sum,
    })))
}

/// Merges buckets at infinite bounds with their neighbours, because the page writes `+Inf` itself.
fn merge_infinite(bounds: &mut Vec<f64>, buckets: &mut Vec<u64>) {
    if bounds
        .pop_if(|bound| bound.is_infinite() && *bound > 0.0)
        .is_some()
    {
        let last = buckets.pop().unwrap_or_default();
        if let Some(bucket) = buckets.last_mut() {
            *bucket = bucket.saturating_add(last);
        }
    }
    if bounds.first() == Some(&f64::NEG_INFINITY) {
        bounds.remove(0);
        let first = buckets.remove(0);
        if let Some(bucket) = buckets.first_mut() {
            *bucket = bucket.saturating_add(first);
        }
    }
}

pub(super) fn native(point: &ExponentialHistogramPoint<'_>) -> Result<SampleValue, PointError> {
    if point.scale < *SCHEMAS.start() || !point.zero_threshold.is_finite() {
        return Err(MALFORMED);
    }
    let schema = point.scale.min(*SCHEMAS.end());
    let scale_down = point.scale.saturating_sub(schema).min(63) as u32;
    let (positive, negative) = (
        side(point.positive, scale_down)?,
        side(point.negative, scale_down)?,
    );
    // Prometheus rejects a page with a histogram whose count differs from the sum of its buckets.
    let counts = positive.counts.iter().chain(&negative.counts).copied();
    let count: u128 = counts.chain([point.zero_count]).map(u128::from).sum();
    let count = i64::try_from(count).map_err(|_| MALFORMED)? as u64;
    Ok(SampleValue::Native(Box::new(Native {
        schema,
        zero_threshold: if point.zero_threshold > 0.0 {
            point.zero_threshold
        } else {
            ZERO_THRESHOLD
        },
        zero_count: point.zero_count,
        count,
        sum: point.sum,
        positive,
        negative,
    })))
}

fn side(buckets: Option<Buckets<'_>>, scale_down: u32) -> Result<Side, PointError> {
    let Some(buckets) = buckets else {
        return Ok(Side::default());
    };
    let index = |place: usize| ((i64::from(buckets.offset) + place as i64) >> scale_down) + 1;
    let first = index(0);
    let mut counts: Vec<u64> = Vec::new();
    for (place, count) in buckets.bucket_counts.iter().enumerate() {
        let merged = (index(place) - first) as usize;
        if place >= MAX_BUCKETS {
            return Err(MALFORMED);
        }
        counts.resize(counts.len().max(merged + 1), 0);
        counts[merged] = counts[merged].saturating_add(count?);
    }
    let last = first + counts.len() as i64;
    match (i32::try_from(first), i32::try_from(last)) {
        (Ok(first), Ok(_)) => Ok(Side {
            first,
            counts: counts.into(),
        }),
        _ => Err(MALFORMED),
    }
}

pub(super) fn summary(point: &SummaryPoint<'_>) -> Result<SampleValue, PointError> {
    if point.quantile_values.len() > MAX_BUCKETS {
        return Err(MALFORMED);
    }
    let mut quantiles: Vec<(f64, f64)> = point
        .quantile_values
        .iter()
        // Adding 0.0 removes the sign of zero.
        .map(|entry| entry.map(|entry| (entry.quantile + 0.0, entry.value)))
        .collect::<Result<_, _>>()?;
    if quantiles
        .iter()
        .any(|(quantile, _)| !(0.0..=1.0).contains(quantile))
    {
        return Err(MALFORMED);
    }
    quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    quantiles.dedup_by(|a, b| a.0 == b.0);
    Ok(SampleValue::Summary(Box::new(Summary {
        count: point.count,
        sum: point.sum,
        quantiles: quantiles.into(),
    })))
}

/// Returns the exemplars of a point, each with its bucket.
pub(super) fn exemplars(
    exemplars: &Repeated<'_, OtlpExemplar<'_>>,
    value: &SampleValue,
) -> Result<Vec<Exemplar>, WireError> {
    let mut kept: Vec<Exemplar> = Vec::new();
    for exemplar in exemplars.iter() {
        let exemplar = exemplar?;
        let Some(number) = exemplar.value() else { continue };
        let number = number.as_f64();
        let bucket = match value {
            SampleValue::Histogram(histogram) => {
                histogram.bounds.values().partition_point(|bound| *bound < number) as u32
            }
            SampleValue::Native(_) => kept.len() as u32,
            SampleValue::Number(_) | SampleValue::Summary(_) => 0,
        };
        kept.push(Exemplar {
            bucket,
            labels: exemplar_labels(&exemplar)?,
            value: number,
            unix_nanos: UnixNanos(exemplar.time_unix_nano),
        });
        if kept.len() == MAX_NATIVE_EXEMPLARS && matches!(value, SampleValue::Native(_)) {
            break;
        }
    }
    Ok(kept)
}

/// Returns the labels: trace and span first, then the other attributes if all of them fit.
fn exemplar_labels(exemplar: &OtlpExemplar<'_>) -> Result<Box<str>, WireError> {
    let ids = [("trace_id", exemplar.trace_id), ("span_id", exemplar.span_id)];
    let mut pairs: Vec<(String, String)> = ids
        .iter()
        .filter(|(_, id)| id.iter().any(|byte| *byte != 0) && id.len() <= 16)
        .map(|(name, id)| {
            (
                (*name).to_owned(),
                id.iter().map(|byte| format!("{byte:02x}")).collect(),
            )
        })
        .collect();
    let with_ids = pairs.len();
    for attribute in exemplar.filtered_attributes.iter() {
        let attribute = attribute?;
        let name = pulsetrain_semconv::prometheus_label(&attribute.key.to_str_lossy());
        let value = attribute.value.map_or("".into(), value_text);
        if !name.is_empty() && !escape::hides_name(&name) && pairs.iter().all(|(other, _)| *other != name) {
            pairs.push((name, value.into_owned()));
        }
    }
    let characters: usize = pairs
        .iter()
        .map(|(name, value)| name.chars().count() + value.chars().count())
        .sum();
    if characters > MAX_EXEMPLAR_CHARACTERS {
        pairs.truncate(with_ids);
    }
    let mut text = String::new();
    labels::write(
        pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())),
        &mut text,
    );
    Ok(text.into())
}
