//! Performance counters: the sample of the last pass is kept, so that what is between it and this one is known at once.
//! Nobody ever waits between two samples.

use std::time::Duration;

use nvml_wrapper::{
    error::NvmlError,
    gpm::{GpmSample, gpm_metrics_get},
};
use pulsetrain_pipeline::clock::{self, Instant};
use pulsetrain_semconv::attribute::GPU_ENGINE_INDEX;

use super::{
    probe::Pass,
    row::{Read, Row, error_for, reason},
};
use crate::nvml::reading::{Labels, Readings};

/// How far two samples must be apart (`nvml.h`, `nvmlGpmSampleGet`).
const APART: Duration = Duration::from_millis(100);

/// The sample of the last pass.
#[derive(Default)]
pub(super) struct Counters<'nvml> {
    before: Option<(GpmSample<'nvml>, Instant)>,
}

impl<'nvml> Counters<'nvml> {
    /// Takes a sample, puts what was between it and the last one into `out`, and says what became of each row. The first
    /// time there is nothing to say.
    pub(super) fn ask(
        &mut self,
        pass: &Pass<'_, 'nvml>,
        rows: &[(usize, &'static Row)],
        out: &mut Readings,
    ) -> Vec<(usize, Result<(), NvmlError>)> {
        // Not the time of the pass: much may have been asked since it began.
        let now = clock::now();
        if let Some((_, taken)) = &self.before
            && now.saturating_duration_since(*taken) < APART
        {
            return Vec::new();
        }
        let sample = match sample(pass, self.before.is_some()) {
            Ok(sample) => sample,
            Err(error) => {
                self.before = None;
                return refuse_all(rows, error);
            }
        };
        let Some((before, _)) = self.before.take() else {
            self.before = Some((sample, now));
            return Vec::new();
        };
        let ids: Vec<_> = rows
            .iter()
            .filter_map(|(_, row)| counter(row))
            .map(|counter| counter.0)
            .collect();
        let answers = match gpm_metrics_get(pass.nvml, &before, &sample, &ids) {
            Ok(results) => rows
                .iter()
                .zip(results)
                .map(|((place, row), result)| (*place, result.map(|result| put(row, result.value, out))))
                .collect(),
            Err(error) => refuse_all(rows, error),
        };
        self.before = Some((sample, now));
        answers
    }
}

fn sample<'nvml>(pass: &Pass<'_, 'nvml>, supported: bool) -> Result<GpmSample<'nvml>, NvmlError> {
    match pass.instance {
        Some((gpu, instance)) => gpu.gpm_mig_sample(instance),
        None if supported || pass.device.gpm_support()? => pass.device.gpm_sample(),
        None => Err(NvmlError::NotSupported),
    }
}

/// The first row is told the error, which may mean more than the counters; the others only that there is nothing.
fn refuse_all(rows: &[(usize, &'static Row)], error: NvmlError) -> Vec<(usize, Result<(), NvmlError>)> {
    let reason = reason(&error);
    let mut first = Some(error);
    rows.iter()
        .map(|(place, _)| (*place, Err(first.take().unwrap_or_else(|| error_for(reason)))))
        .collect()
}

fn counter(row: &Row) -> Option<(nvml_wrapper::enums::gpm::GpmMetricId, Labels, f64)> {
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

fn put(row: &Row, value: f64, out: &mut Readings) {
    // A counter whose engine did nothing at all may come as no number.
    if let Some((_, labels, scale)) = counter(row).filter(|_| value.is_finite()) {
        out.cadence = row.cadence;
        out.now(row.metric, labels, value * scale);
    }
}
