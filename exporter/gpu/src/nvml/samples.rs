//! The buffers of values that the driver samples many times a second: drained with the driver's own times.

use std::cell::Cell;

use nvml_wrapper::{Device, enum_wrappers::device::Sampling, enums::device::SampleValue, error::NvmlError};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::Metric;

use super::row::QueryError;
use crate::reading::{Labels, Readings, Sample};

/// Adds the samples of the driver since `seen`, in order, and advances `seen`.
pub(super) fn drain(
    device: &Device<'_>,
    sampling: Sampling,
    seen: &Cell<u64>,
    scale: f64,
    metric: &'static Metric,
    out: &mut Readings,
) -> Result<(), QueryError> {
    let last = seen.get();
    let samples = match device.samples(sampling, last) {
        Ok(samples) => samples,
        Err(NvmlError::NotFound) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut newer = samples.iter().filter(|sample| sample.timestamp > last).peekable();
    if newer.peek().is_none() {
        out.put(
            metric,
            Labels::default(),
            Sample::NothingObserved,
            UnixNanos::UNKNOWN,
        );
    }
    for sample in newer {
        seen.set(seen.get().max(sample.timestamp));
        let value = number(&sample.value) * scale;
        let time_unix_nanos = UnixNanos(sample.timestamp.saturating_mul(1000));
        out.put(
            metric,
            Labels::default(),
            Sample::Observed(value),
            time_unix_nanos,
        );
    }
    Ok(())
}

fn number(value: &SampleValue) -> f64 {
    match *value {
        SampleValue::F64(value) => value,
        SampleValue::U32(value) => f64::from(value),
        SampleValue::U64(value) => value as f64,
        SampleValue::I64(value) => value as f64,
    }
}
