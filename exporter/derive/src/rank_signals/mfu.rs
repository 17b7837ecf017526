//! `train.mfu`, model FLOPs utilization, `train.smoothed.mfu`, and the denominator `gpu.peak_flops`.
//!
//! mfu = operations of the model a second on one device / peak operations a second of the device. The
//! operations are those of the model (6N + 12LHQT a token for a dense transformer), not those of
//! recomputation. Sources: PaLM, arXiv 2204.02311, appendix B; torchtitan `components/metrics.py` (`mfu = 100
//! * num_flops_per_token * tps / gpu_peak_flops`). Smoothed as in `smoothed.rs`.
//!
//! The peak is `gpu.peak_flops` of a source, else that of a table by the GPU's name (`peak_flops.rs`), which
//! is sent with the attributes of the GPU. It is dense bf16. All GPUs of a run are assumed equal, so the last
//! one counts.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use pulsetrain_otlp::{
    UnixNanos,
    view::{KeyValue, Repeated},
    write::{Attribute, AttributeValue},
};
use pulsetrain_run::{RunOrigin, integer, label};
use pulsetrain_semconv::{Event, Metric, attribute, event, metric};

use super::{
    average::Ema,
    peak_flops::{self, PRECISIONS, Peaks},
    throughput,
};
use crate::{
    signals::{Derivation, EventFacts, PointFacts, Signals},
    steps::{RankId, StepFacts},
};

/// The maximum number of runs and hosts with GPUs. Further ones are ignored.
const MAX_OWNERS: usize = 16_384;

/// Derives `train.mfu` and `gpu.peak_flops`.
#[derive(Debug, Default)]
pub(super) struct Mfu {
    by_run: HashMap<Arc<str>, Peaks>,
    by_host: HashMap<Arc<str>, Peaks>,
    smoothed: HashMap<RankId, Ema>,
    /// The ids of GPUs whose peaks a source sends, possibly with another resource.
    given: HashSet<Box<str>>,
}

impl Mfu {
    /// Returns the utilization of a step. The trainer's value has precedence.
    fn value(&self, step: &StepFacts) -> Option<f64> {
        if let Some(given) = step.value(&metric::TRAIN_MFU) {
            return Some(given);
        }
        let peak = self.peak(step)?;
        Some(throughput::flops_per_device(step)? / peak).filter(|mfu| mfu.is_finite())
    }

    fn peak(&self, step: &StepFacts) -> Option<f64> {
        let by_host = || self.by_host.get(step.rank.host.as_ref()?);
        let peaks = self.by_run.get(&step.rank.run).or_else(by_host)?;
        peak_flops::of_training(peaks)
    }

    fn record(&mut self, origin: &RunOrigin, peaks: &Peaks) {
        let owners = [
            (&mut self.by_run, &origin.run_id),
            (&mut self.by_host, &origin.host),
        ];
        for (known, owner) in owners {
            let Some(owner) = owner else { continue };
            if known.len() < MAX_OWNERS || known.contains_key(owner) {
                let known = known.entry(Arc::clone(owner)).or_default();
                for (known, peak) in known.iter_mut().zip(peaks) {
                    *known = peak.or(*known);
                }
            }
        }
    }

    /// Records a GPU with a known name, and sends its peaks.
    fn record_gpu(
        &mut self,
        origin: &RunOrigin,
        (resource, time): (&[u8], UnixNanos),
        attributes: Repeated<'_, KeyValue<'_>>,
        out: &mut Signals,
    ) {
        let gpu = GpuLabels::from_attributes(attributes);
        let Some(peaks) = gpu.name.and_then(peak_flops::find) else {
            return;
        };
        self.record(origin, &peaks);
        if gpu.id.is_some_and(|id| self.given.contains(id)) {
            return;
        }
        let resource = out.resource(resource);
        for (precision, peak) in PRECISIONS.iter().zip(peaks) {
            if let Some(peak) = peak {
                let mut labels: Vec<Attribute<'_>> =
                    vec![(&attribute::GPU_PRECISION, AttributeValue::Text(precision))];
                labels.extend(gpu.id.map(|id| (&attribute::GPU_ID, AttributeValue::Text(id))));
                labels.extend(
                    gpu.index
                        .map(|index| (&attribute::GPU_INDEX, AttributeValue::Int(index))),
                );
                resource.record(&metric::GPU_PEAK_FLOPS, time, peak, &labels);
            }
        }
    }
}

/// The attributes that identify a GPU.
#[derive(Default)]
struct GpuLabels<'a> {
    name: Option<&'a str>,
    id: Option<&'a str>,
    index: Option<i64>,
    precision: Option<&'a str>,
}

impl<'a> GpuLabels<'a> {
    fn from_attributes(attributes: Repeated<'a, KeyValue<'a>>) -> Self {
        let mut gpu = Self::default();
        for entry in attributes.iter().map_while(Result::ok) {
            let value = entry.value.unwrap_or_default();
            if entry.key == attribute::GPU_NAME.name {
                gpu.name = label(value);
            } else if entry.key == attribute::GPU_ID.name {
                gpu.id = label(value);
            } else if entry.key == attribute::GPU_INDEX.name {
                gpu.index = integer(value);
            } else if entry.key == attribute::GPU_PRECISION.name {
                gpu.precision = label(value);
            }
        }
        gpu
    }
}

impl Derivation for Mfu {
    fn sends(&self) -> &'static [&'static Metric] {
        &[
            &metric::TRAIN_MFU,
            &metric::TRAIN_SMOOTHED_MFU,
            &metric::GPU_PEAK_FLOPS,
        ]
    }

    fn points(&self) -> &'static [&'static Metric] {
        &[&metric::GPU_PEAK_FLOPS, &metric::GPU_INFO]
    }

    fn events(&self) -> &'static [&'static Event] {
        &[&event::RUN_GPU_MODEL]
    }

    fn on_point(&mut self, point: &PointFacts<'_>, out: &mut Signals) {
        if point.is_end {
            return;
        }
        let mut origin = point.origin.clone();
        // Attributes that cannot be decoded are ignored. The batch passes unchanged.
        let _ = origin.read(point.attributes);
        if point.metric.ordinal == metric::GPU_INFO.ordinal {
            self.record_gpu(&origin, (point.resource, point.time), point.attributes, out);
            return;
        }
        let gpu = GpuLabels::from_attributes(point.attributes);
        if let Some(id) = gpu.id.filter(|_| self.given.len() < MAX_OWNERS)
            && !self.given.contains(id)
        {
            self.given.insert(id.into());
        }
        let place = gpu.precision.and_then(peak_flops::place_of);
        if let Some(place) = place.filter(|_| point.value.is_finite() && point.value > 0.0) {
            let mut peaks = Peaks::default();
            peaks[place] = Some(point.value);
            self.record(&origin, &peaks);
        }
    }

    fn on_event(&mut self, event: &EventFacts<'_>, out: &mut Signals) {
        let at = (event.resource, event.time);
        self.record_gpu(event.origin, at, event.record.attributes, out);
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let Some(mfu) = self.value(step) else { return };
        let rank = out.resource(&step.rank.resource);
        rank.record(&metric::TRAIN_MFU, step.end, mfu, &[]);
        let average = self.smoothed.entry(step.rank.id).or_default();
        if let Some(smoothed) = average.add(mfu) {
            rank.record(&metric::TRAIN_SMOOTHED_MFU, step.end, smoothed, &[]);
        }
    }

    fn forget(&mut self, rank: RankId) {
        self.smoothed.remove(&rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trainer::{Bench, Trainer, at};

    /// Two devices, 1000 tokens of 0.9894 TFLOP each in one second: 494.7 TFLOP/s a device, half the peak of an H100.
    fn trainer() -> Trainer {
        let mut rank = Trainer::new("r", 0, 2);
        let part = [(&attribute::TRAIN_FLOPS_PART, AttributeValue::Text("blocks"))];
        rank.record_with(&metric::TRAIN_FLOPS_PER_TOKEN, at(0.0), 0.9894e12, &part);
        for number in 1..=2 {
            let end = at(number as f64);
            rank.step(number, end, 1.0)
                .record(&metric::TRAIN_TOKENS, end, 1000.0);
        }
        rank
    }

    #[test]
    fn peak_is_derived_from_the_name_of_the_gpu() {
        let mut bench = Bench::new(vec![Box::new(Mfu::default())]);
        let mut rank = trainer();
        let gpu = [
            (&attribute::GPU_ID, AttributeValue::Text("GPU-1")),
            (
                &attribute::GPU_NAME,
                AttributeValue::Text("NVIDIA H100 80GB HBM3"),
            ),
            (&attribute::TRAIN_RUN_ID, AttributeValue::Text("r")),
        ];
        rank.record_with(&metric::GPU_INFO, at(0.5), 1.0, &gpu);
        bench.pass(&mut rank).finish();
        assert_eq!(bench.values(&metric::TRAIN_MFU), [0.5, 0.5]);
        assert_eq!(bench.values(&metric::TRAIN_SMOOTHED_MFU), [0.5, 0.5]);
        let peaks = bench.points(&metric::GPU_PEAK_FLOPS);
        let bf16 = peaks
            .iter()
            .find(|point| point.attributes[0] == "gpu.precision=bf16");
        assert_eq!(bf16.unwrap().value, 989.4e12);
        assert_eq!(bf16.unwrap().attributes[1], "gpu.id=GPU-1");
        assert_eq!(peaks.len(), 4, "tf32, bf16, fp16 and fp8: an H100 has no fp4");
    }

    #[test]
    fn peak_from_a_source_overrides_the_table() {
        let mut bench = Bench::new(vec![Box::new(Mfu::default())]);
        let mut rank = trainer();
        let precision = [(&attribute::GPU_PRECISION, AttributeValue::Text("bf16"))];
        rank.record_with(&metric::GPU_PEAK_FLOPS, at(0.5), 1978.8e12, &precision);
        bench.pass(&mut rank).finish();
        assert_eq!(bench.values(&metric::TRAIN_MFU), [0.25, 0.25]);
        assert_eq!(bench.values(&metric::GPU_PEAK_FLOPS), [0.0; 0]);
    }

    #[test]
    fn peak_of_a_gpu_is_sent_once_for_several_resources() {
        let mut bench = Bench::new(vec![Box::new(Mfu::default())]);
        let (mut rank, mut host) = (trainer(), Trainer::new("other", 0, 1));
        let id = (&attribute::GPU_ID, AttributeValue::Text("GPU-1"));
        let precision = [id, (&attribute::GPU_PRECISION, AttributeValue::Text("bf16"))];
        rank.record_with(&metric::GPU_PEAK_FLOPS, at(0.5), 989.4e12, &precision);
        let name = [
            id,
            (
                &attribute::GPU_NAME,
                AttributeValue::Text("NVIDIA H100 80GB HBM3"),
            ),
        ];
        host.record_with(&metric::GPU_INFO, at(1.0), 1.0, &name);
        bench.pass(&mut rank).pass(&mut host).finish();
        assert_eq!(bench.values(&metric::GPU_PEAK_FLOPS), [0.0; 0]);
    }

    #[test]
    fn unknown_peak_yields_no_mfu() {
        let mut bench = Bench::new(vec![Box::new(Mfu::default())]);
        bench.pass(&mut trainer()).finish();
        assert_eq!(bench.values(&metric::TRAIN_MFU), [0.0; 0]);
    }
}
