//! Records of GPUs: what each is, once, and how it is doing, from time to time.

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{self as semconv, attribute, event, metric};

use super::{
    super::record::{Record, Value},
    leftover::Leftovers,
    record_rows, scalar,
};
use crate::{
    Recorder,
    logs::row::{Row, row},
};

/// Numeric fields of a `gpu` record; -1 where the driver does not say.
pub(in crate::logs::surogate) static GPU: &[Row] = &[
    row("clock", &metric::GPU_CLOCK_FREQUENCY)
        .times(1e6)
        .with(&[domain("sm")]),
    row("max_clock", &metric::GPU_CLOCK_LIMIT)
        .times(1e6)
        .with(&[domain("sm"), (&attribute::GPU_CLOCK_LIMIT_KIND, Out::Text("max"))]),
    row("fan", &metric::GPU_FAN_SPEED_RATIO).divided_by(100.0),
    row("power", &metric::GPU_POWER)
        .divided_by(1e3)
        .with(&[(&attribute::GPU_POWER_READING, Out::Text("derived"))]),
    row("power_limit", &metric::GPU_POWER_LIMIT)
        .divided_by(1e3)
        .with(&[(&attribute::GPU_POWER_LIMIT_KIND, Out::Text("enforced"))]),
    row("temperature", &metric::GPU_TEMPERATURE),
    row("temp_slowdown", &metric::GPU_TEMPERATURE_LIMIT)
        .with(&[(&attribute::GPU_TEMPERATURE_LIMIT_KIND, Out::Text("slowdown"))]),
    row("gpu_util", &metric::GPU_UTILIZATION)
        .with(&[(&attribute::GPU_TASK, Out::Text("general"))])
        .divided_by(100.0)
        .unless(-1.0),
    row("mem_util", &metric::GPU_MEMORY_ACTIVITY)
        .divided_by(100.0)
        .unless(-1.0),
    row("dram_free", &metric::GPU_MEMORY_FREE),
    row("pcie_rx", &metric::GPU_PCIE_THROUGHPUT).with(&[direction("receive")]),
    row("pcie_tx", &metric::GPU_PCIE_THROUGHPUT).with(&[direction("transmit")]),
];

const fn domain(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_CLOCK_DOMAIN, Out::Text(name))
}

const fn direction(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_IO_DIRECTION, Out::Text(name))
}

/// Fields of a `gpu-model` record, as attributes of its event.
static MODEL: &[(&str, &semconv::Attribute)] = &[
    ("rank", &attribute::TRAIN_RANK),
    ("id", &attribute::GPU_INDEX),
    ("name", &attribute::GPU_NAME),
    ("l2_size", &attribute::GPU_L2_CACHE_SIZE),
    ("sm_count", &attribute::GPU_SM_COUNT),
    ("major", &attribute::GPU_COMPUTE_CAPABILITY_MAJOR),
    ("minor", &attribute::GPU_COMPUTE_CAPABILITY_MINOR),
    ("memory", &attribute::GPU_MEMORY_SIZE),
    ("free", &attribute::GPU_MEMORY_FREE),
    ("reserved", &attribute::GPU_MEMORY_RESERVED),
    ("ecc", &attribute::GPU_ECC_ENABLED),
    ("shared_mem", &attribute::GPU_SHARED_MEMORY_SIZE),
    ("cuda_driver", &attribute::GPU_CUDA_DRIVER_VERSION),
    ("cuda_runtime", &attribute::GPU_CUDA_RUNTIME_VERSION),
];

/// What holds the clocks down, in the log's words and in ours.
pub(in crate::logs::surogate) static THROTTLE: &[(&str, &str)] = &[
    ("power cap", "power_cap"),
    ("thermal cap", "thermal_cap"),
    ("idle", "idle"),
    ("other cap", "other_cap"),
    ("no cap", "none"),
    ("", "none"),
    ("not supported", "not_supported"),
];

/// The GPUs that were introduced, so that their gauges carry the id under which other sources know them.
#[derive(Debug, Default)]
pub(super) struct GpuNames {
    uuids: Vec<(i64, String)>,
}

impl GpuNames {
    /// Records how a GPU is doing.
    pub(super) fn gauges(&self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
        let index = field(record, "id").and_then(Value::as_f64).unwrap_or_default() as i64;
        let index_text = index.to_string();
        // Runs that do not introduce their GPUs know them by their index only.
        let id = self.uuid(index).unwrap_or(&index_text);
        let gpu: [Attribute<'_>; 2] = [
            (&attribute::GPU_ID, Out::Text(id)),
            (&attribute::GPU_INDEX, Out::Int(index)),
        ];
        let mut seen = record_rows(record, GPU, &gpu, recorder);
        seen.leftovers.take("id");
        if let Some(reason) = seen.leftovers.take_text("throttle") {
            let reason = THROTTLE
                .iter()
                .find(|(theirs, _)| *theirs == reason)
                .map_or(reason, |(_, ours)| ours);
            let (metric, attribute) = (&metric::GPU_THROTTLE_ACTIVE, &attribute::GPU_THROTTLE_REASON);
            recorder.record_state(metric, attribute, record.time_unix_nanos, reason, &gpu);
        }
        seen.leftovers.record(record, recorder);
    }

    /// Records what a GPU is.
    pub(super) fn model(&mut self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
        let mut leftovers = Leftovers::of(record);
        let raw_uuid = leftovers.take_text("uuid");
        let uuid = raw_uuid.map(nvml_uuid);
        let mut attributes: Vec<Attribute<'_>> = Vec::with_capacity(MODEL.len() + 1);
        for (key, attribute) in MODEL {
            attributes.extend(
                leftovers
                    .take(key)
                    .map(|value| (*attribute, typed(attribute, value))),
            );
        }
        attributes.extend(raw_uuid.map(|uuid| (&attribute::GPU_UUID, Out::Text(uuid))));
        attributes.extend(uuid.as_deref().map(|uuid| (&attribute::GPU_ID, Out::Text(uuid))));
        recorder.record_event(&event::RUN_GPU_MODEL, record.time_unix_nanos, None, &attributes);
        leftovers.record(record, recorder);
        let index = field(record, "id").and_then(Value::as_f64);
        self.uuids.extend(index.map(|index| index as i64).zip(uuid));
    }

    fn uuid(&self, index: i64) -> Option<&str> {
        self.uuids
            .iter()
            .rev()
            .find(|(known, _)| *known == index)
            .map(|(_, uuid)| uuid.as_str())
    }
}

fn field<'r, 'a>(record: &'r Record<'a>, key: &str) -> Option<&'r Value<'a>> {
    record
        .fields
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

/// A value in the type that the registry gives the attribute.
fn typed<'a>(attribute: &semconv::Attribute, value: &Value<'a>) -> Out<'a> {
    match (attribute.kind, value) {
        (semconv::AttributeKind::Boolean, Value::Int(number)) => Out::Bool(*number != 0),
        (_, value) => scalar(value),
    }
}

/// 32 hexadecimal digits in the form in which NVML gives the UUID of a GPU.
fn nvml_uuid(digits: &str) -> String {
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return digits.to_owned();
    }
    let part = |range: std::ops::Range<usize>| &digits[range];
    format!(
        "GPU-{}-{}-{}-{}-{}",
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_takes_the_form_that_nvml_gives_it() {
        assert_eq!(
            nvml_uuid("00112233445566778899aabbccddeeff"),
            "GPU-00112233-4455-6677-8899-aabbccddeeff"
        );
        assert_eq!(nvml_uuid("unknown"), "unknown");
    }
}
