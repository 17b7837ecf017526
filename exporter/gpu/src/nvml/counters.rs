//! Performance counters: the sample of the last pass is kept, so that the means since then are known at once. A pass never waits
//! between two samples.
//!
//! A row that also fills a counter integrates its rate: the mean between two samples times the time between them.

use std::{collections::BTreeMap, time::Duration};

use nvml_wrapper::{error::NvmlError, gpm::GpmSample};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::clock::{self, Instant};
use pulsetrain_semconv::attribute::GPU_ENGINE_INDEX;

use super::{
    ffi,
    probe::Pass,
    row::{Read, Row, refuse_all},
};
use crate::reading::{Labels, Readings, Sample};

/// The minimum time between two samples (`nvml.h`, `nvmlGpmSampleGet`).
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// The sample of the last pass, and the integrals up to it.
#[derive(Default)]
pub(super) struct Counters<'nvml> {
    before: Option<PreviousSample<'nvml>>,
    /// The integrals by the index of the row. A gap in the samples ends an integral, and the next one begins at zero.
    integrals: BTreeMap<usize, f64>,
}

/// A sample, and the time before and after the call that made it.
struct PreviousSample<'nvml> {
    sample: GpmSample<'nvml>,
    began: Instant,
    ended: Instant,
}

impl<'nvml> Counters<'nvml> {
    /// Takes a sample, puts the means since the last sample into `out`, and returns the outcome of each row. The first sample has
    /// no outcome.
    pub(super) fn ask(
        &mut self,
        pass: &Pass<'_, 'nvml>,
        rows: &[(usize, &'static Row)],
        out: &mut Readings,
    ) -> Vec<(usize, Result<(), NvmlError>)> {
        // Not the time of the pass: other queries may have taken long since it began.
        let now = clock::now();
        if let Some(before) = &self.before
            && now.saturating_duration_since(before.ended) < MIN_SAMPLE_INTERVAL
        {
            return Vec::new();
        }
        let places = rows.iter().map(|(place, _)| *place);
        let time_unix_nanos = clock::unix_nanos();
        let sample = match sample(pass, self.before.is_some()) {
            Ok(sample) => PreviousSample {
                sample,
                began: now,
                ended: clock::now(),
            },
            Err(error) => {
                self.before = None;
                self.integrals.clear();
                return refuse_all(places, error);
            }
        };
        let Some(before) = self.before.take() else {
            self.before = Some(sample);
            return Vec::new();
        };
        let between = Between {
            seconds: now.saturating_duration_since(before.began).as_secs_f64(),
            time_unix_nanos,
        };
        let ids: Vec<_> = rows
            .iter()
            .filter_map(|(_, row)| counter(row))
            .map(|counter| counter.0)
            .collect();
        let answers = match means(&before.sample, &sample.sample, &ids) {
            Ok(results) => rows
                .iter()
                .zip(results)
                .map(|((place, row), result)| (*place, self.put(*place, row, result, between, out)))
                .collect(),
            Err(error) => {
                self.integrals.clear();
                refuse_all(places, error)
            }
        };
        self.before = Some(sample);
        answers
    }

    /// Puts a value into `out`, and its integral if the row has a counter for it.
    fn put(
        &mut self,
        place: usize,
        row: &Row,
        value: Result<f64, NvmlError>,
        between: Between,
        out: &mut Readings,
    ) -> Result<(), NvmlError> {
        let known = self.integrals.remove(&place);
        let value = Some(value?).filter(|value| value.is_finite());
        let (Some(value), Some((_, labels, scale))) = (value, counter(row)) else {
            return Err(NvmlError::NoData);
        };
        out.cadence = row.cadence;
        out.now(row.metric, labels, value * scale);
        for metric in row.also {
            // The first value begins the counter: its start time is known only then.
            let integral = known.map_or(0.0, |known| known + value * scale * between.seconds);
            let total = Sample::Total {
                raw: integral as u64,
                scale: 1.0,
                wraps: false,
            };
            self.integrals.insert(place, integral);
            out.put(metric, labels, total, between.time_unix_nanos);
        }
        Ok(())
    }
}

/// The time between two samples, and the time of the later one.
#[derive(Clone, Copy)]
struct Between {
    seconds: f64,
    time_unix_nanos: UnixNanos,
}

/// Returns the means of counters between two samples. If a driver refuses them together, because it is older than one of them,
/// each is read separately.
fn means(
    before: &GpmSample<'_>,
    after: &GpmSample<'_>,
    ids: &[u32],
) -> Result<Vec<Result<f64, NvmlError>>, NvmlError> {
    let all = ffi::performance_counters(before, after, ids);
    if !matches!(all, Err(NvmlError::InvalidArg)) {
        return all;
    }
    let each = |id: &u32| ffi::performance_counters(before, after, &[*id])?.remove(0);
    Ok(ids.iter().map(each).collect())
}

fn sample<'nvml>(pass: &Pass<'_, 'nvml>, supported: bool) -> Result<GpmSample<'nvml>, NvmlError> {
    match pass.instance {
        Some((gpu, instance)) => gpu.gpm_mig_sample(instance),
        None if supported || pass.device.gpm_support()? => pass.device.gpm_sample(),
        None => Err(NvmlError::NotSupported),
    }
}

fn counter(row: &Row) -> Option<(u32, Labels, f64)> {
    let Read::Counter {
        id,
        labels,
        engine,
        scale,
    } = &row.read
    else {
        return None;
    };
    let labels = match engine {
        Some(engine) => Labels::numbered(labels, &GPU_ENGINE_INDEX, *engine),
        None => Labels::fixed(labels),
    };
    Some((*id, labels, *scale))
}
