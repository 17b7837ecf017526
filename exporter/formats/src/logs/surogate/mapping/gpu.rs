//! Records the models of GPUs and their gauges.

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue as Out},
};
use pulsetrain_semconv::{self as semconv, attribute, event, metric};

use super::{
    super::record::{self, Record, RecordValue},
    unmapped_fields::UnmappedFields,
};
use pulsetrain_record::Recorder;

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

/// Throttle reasons: the log's term and ours.
static THROTTLE: &[(&str, &str)] = &[
    ("power cap", "power_cap"),
    ("thermal cap", "thermal_cap"),
    ("idle", "idle"),
    ("other cap", "other_cap"),
    ("no cap", "none"),
    ("", "none"),
    ("not supported", "not_supported"),
];

/// The UUIDs of the GPUs, so that their gauges have the id that other sources use.
#[derive(Debug, Default)]
pub(super) struct GpuNames {
    uuids: Vec<(i64, String)>,
}

impl GpuNames {
    /// Records the model of a GPU.
    pub(super) fn model(&mut self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
        let mut unmapped = UnmappedFields::new(record);
        let raw_uuid = unmapped.take_text("uuid");
        let uuid = raw_uuid.map(nvml_uuid);
        let mut attributes: Vec<Attribute<'_>> = Vec::with_capacity(MODEL.len() + 1);
        for (key, attribute) in MODEL {
            attributes.extend(
                unmapped
                    .take(key)
                    .map(|value| (*attribute, typed(attribute, value))),
            );
        }
        attributes.extend(raw_uuid.map(|uuid| (&attribute::GPU_UUID, Out::Text(uuid))));
        attributes.extend(uuid.as_deref().map(|uuid| (&attribute::GPU_ID, Out::Text(uuid))));
        recorder.record_event(&event::RUN_GPU_MODEL, record.time_unix_nanos, None, &attributes);
        unmapped.record(recorder);
        let index = record::field(&record.fields, "id").and_then(RecordValue::as_f64);
        self.uuids.extend(index.map(|index| index as i64).zip(uuid));
    }

    /// Returns the UUID of the GPU with this index.
    pub(super) fn uuid(&self, index: i64) -> Option<&str> {
        self.uuids
            .iter()
            .rev()
            .find(|(known, _)| *known == index)
            .map(|(_, uuid)| uuid.as_str())
    }
}

/// Returns the attributes of the points of a GPU.
pub(in crate::logs::surogate) fn attributes(id: &str, index: i64) -> [Attribute<'_>; 2] {
    [
        (&attribute::GPU_ID, Out::Text(id)),
        (&attribute::GPU_INDEX, Out::Int(index)),
    ]
}

/// Records the throttle reason of a GPU, converted to our term.
pub(in crate::logs::surogate) fn record_throttle(
    reason: &str,
    time_unix_nanos: UnixNanos,
    gpu: &[Attribute<'_>],
    recorder: &mut Recorder<'_>,
) {
    let known = THROTTLE.iter().find(|(upstream, _)| *upstream == reason);
    let reason = known.map_or(reason, |(_, term)| term);
    let (metric, attribute) = (&metric::GPU_THROTTLE_ACTIVE, &attribute::GPU_THROTTLE_REASON);
    recorder.record_state(metric, attribute, time_unix_nanos, reason, gpu);
}

/// Converts a value to the type of the attribute in the registry.
fn typed<'v>(attribute: &semconv::Attribute, value: &'v RecordValue<'_>) -> Out<'v> {
    match (attribute.kind, value) {
        (semconv::AttributeKind::Boolean, RecordValue::Int(number)) => Out::Bool(*number != 0),
        (_, value) => value.as_out(None),
    }
}

/// Formats 32 hexadecimal digits as NVML formats the UUID of a GPU.
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
    fn gpu_uuid_is_converted_to_the_nvml_format() {
        assert_eq!(
            nvml_uuid("00112233445566778899aabbccddeeff"),
            "GPU-00112233-4455-6677-8899-aabbccddeeff"
        );
        assert_eq!(nvml_uuid("unknown"), "unknown");
    }
}
