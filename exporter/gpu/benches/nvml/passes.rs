//! The durations of the passes, from the histogram that the source sends.

use std::{
    collections::VecDeque,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::Batch;
use pulsetrain_semconv::metric;
use serde_json::Value;

/// The number of batches that are kept; one pass has fewer.
const KEPT: usize = 16;

/// The last batches of metrics, undecoded: the cost of decoding them would be measured too.
#[derive(Clone, Default)]
pub(crate) struct LastBatches(Arc<Mutex<VecDeque<Vec<u8>>>>);

/// The passes by upper bound of their duration.
#[derive(Debug)]
pub(crate) struct Passes {
    bounds: Vec<f64>,
    counts: Vec<u64>,
}

impl LastBatches {
    /// Keeps a batch of metrics.
    pub(crate) fn keep(&self, batch: &Batch) {
        if batch.signal() == Signal::Metrics {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.truncate(KEPT - 1);
            kept.push_front(batch.bytes().to_vec());
        }
    }

    /// Returns the passes so far.
    pub(crate) fn passes(&self) -> Result<Passes, Box<dyn Error>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for bytes in kept.iter() {
            let mut json = Vec::new();
            pulsetrain_otlp::json::encode(Signal::Metrics, bytes, &mut json)?;
            if let Some(passes) = Passes::find(&serde_json::from_slice(&json)?) {
                return Ok(passes);
            }
        }
        Err("no batch has the time of a pass".into())
    }
}

impl Passes {
    fn find(message: &Value) -> Option<Self> {
        let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let scopes = each(&message["resourceMetrics"])
            .into_iter()
            .flat_map(|resource| each(&resource["scopeMetrics"]));
        let mut metrics = scopes.flat_map(|scope| each(&scope["metrics"]));
        let passes = metrics.find(|found| found["name"] == metric::PULSETRAIN_SOURCE_DURATION.name)?;
        let point = &passes["histogram"]["dataPoints"][0];
        let count = |value: &Value| {
            value
                .as_str()
                .and_then(|text| text.parse().ok())
                .or(value.as_u64())
        };
        Some(Self {
            bounds: each(&point["explicitBounds"])
                .iter()
                .filter_map(Value::as_f64)
                .collect(),
            counts: each(&point["bucketCounts"]).iter().filter_map(count).collect(),
        })
    }

    /// Returns the passes since `earlier`.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for (count, before) in self.counts.iter_mut().zip(&earlier.counts) {
            *count -= before;
        }
        self
    }

    /// Returns the upper bound of a percentile of the durations in seconds, or `None` without passes.
    pub(crate) fn percentile(&self, part: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        let mut below = 0;
        let mut counts = self.counts.iter();
        let place = counts.position(|count| {
            below += count;
            all > 0 && below as f64 >= part * all as f64
        })?;
        Some(self.bounds.get(place).copied().unwrap_or(f64::INFINITY))
    }
}
