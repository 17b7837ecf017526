//! Events of a GPU: XID errors by code and others by type. Each is counted from zero, so that the first one is an increase, and
//! logged with its meaning.
//!
//! Codes and meanings: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors).

use pulsetrain_otlp::{
    UnixNanos,
    write::{AttributeValue, LogRecordParts, LogsWriter, Severity},
};
use pulsetrain_semconv::{Metric, attribute, event as events, metric};

use super::{
    hw_semconv::HwMetric,
    known::{GpuState, ObservedSeries, Recorder, SubjectKind},
    store::{Key, Observation},
    subject::{attributes_of, written},
};
use crate::{
    GpuSemconv,
    driver::{GpuEvent, GpuEventKind},
    reading::{Cadence, Entity, Labels},
};

/// A code, its `error.type`, and its meaning.
type Code = (u32, &'static str, &'static str);

/// The codes that occur on training machines. Each has a series from the start; other codes get one with their first error.
const CODES: [Code; 28] = [
    (8, "xid_8", "GPU stopped processing"),
    (13, "xid_13", "graphics engine exception, usually by the program"),
    (31, "xid_31", "memory page fault, usually by the program"),
    (32, "xid_32", "invalid or corrupted push buffer"),
    (38, "xid_38", "driver firmware error"),
    (43, "xid_43", "GPU stopped processing a program's work"),
    (
        45,
        "xid_45",
        "preemptive cleanup after earlier errors or an ended program",
    ),
    (46, "xid_46", "GPU stopped processing"),
    (48, "xid_48", "double bit ECC error"),
    (61, "xid_61", "internal microcontroller breakpoint or warning"),
    (62, "xid_62", "internal microcontroller halt"),
    (63, "xid_63", "row remapped or page retired"),
    (64, "xid_64", "row could not be remapped or page not retired"),
    (66, "xid_66", "illegal access by the driver"),
    (68, "xid_68", "video processor exception"),
    (69, "xid_69", "graphics engine class error"),
    (74, "xid_74", "NVLink error"),
    (78, "xid_78", "vGPU start error"),
    (79, "xid_79", "GPU has fallen off the bus"),
    (92, "xid_92", "high rate of single bit ECC errors"),
    (94, "xid_94", "contained memory error: one program is hit"),
    (95, "xid_95", "uncontained memory error: every program is hit"),
    (109, "xid_109", "context switch timeout"),
    (119, "xid_119", "GSP does not answer"),
    (120, "xid_120", "GSP error"),
    (140, "xid_140", "unrecovered ECC error"),
    (145, "xid_145", "NVLink read or write error"),
    (154, "xid_154", "GPU recovery action changed"),
];

/// Rare codes, which have a series from their first error on (NVIDIA, "Xid Catalog").
const RARE: [Code; 15] = [
    (93, "xid_93", "wear limit of the InfoROM exceeded"),
    (121, "xid_121", "error of the link between GPU and CPU (C2C)"),
    (144, "xid_144", "NVLink error (SAW)"),
    (146, "xid_146", "NVLink error (TLW)"),
    (147, "xid_147", "NVLink error (TREX)"),
    (148, "xid_148", "NVLink error (NVLPW)"),
    (149, "xid_149", "NVLink error (NETIR)"),
    (150, "xid_150", "NVLink error (MSE)"),
    (151, "xid_151", "key rotation error"),
    (
        155,
        "xid_155",
        "an NVLink was disabled on purpose, for example to sleep",
    ),
    (156, "xid_156", "a part of the memory was retired"),
    (157, "xid_157", "a part of the memory could not be retired"),
    (158, "xid_158", "fatal timeout of the GPU"),
    (
        171,
        "xid_171",
        "uncorrectable ECC error of the DRAM, in addition to XID 48",
    ),
    (
        172,
        "xid_172",
        "uncorrectable ECC error of the SRAM, in addition to XID 48",
    ),
];

/// Codes that are not errors of the GPU and are left out of `hw.errors`: faults of programs, and changes of the recovery action
/// and of links.
const NO_HARDWARE_ERRORS: [u64; 6] = [13, 31, 43, 45, 154, 155];

/// Events other than XID errors, by `gpu.driver_event.type`, with their meaning and severity.
const OTHERS: [(&str, &str, Severity); 7] = [
    (
        "single_bit_ecc_error_storm",
        "single bit ECC errors at a high rate",
        Severity::Warn,
    ),
    (
        "dram_retirement",
        "a part of the memory was retired",
        Severity::Warn,
    ),
    (
        "dram_retirement_failure",
        "a part of the memory could not be retired",
        Severity::Error,
    ),
    (
        "non_fatal_poison_error",
        "poisoned data: the work that uses it ends",
        Severity::Error,
    ),
    (
        "fatal_poison_error",
        "poisoned data: the GPU needs a reset",
        Severity::Error,
    ),
    ("gpu_unavailable", "the GPU cannot be used", Severity::Error),
    (
        "recovery_action_changed",
        "the recovery action changed: see gpu.recovery_action",
        Severity::Warn,
    ),
];

/// The prefix of the `error.type` of every code.
const KIND_PREFIX: &str = "xid_";
/// The `error.type` of an unlisted code.
const OTHER: &str = "xid_other";

/// Returns whether a series is counted by this program and not by the driver, so that it stays valid while the driver does not
/// answer.
pub(super) fn is_event_counter(key: &Key, metric: &Metric) -> bool {
    let is_twin = || key.last_text().is_some_and(|kind| kind.starts_with(KIND_PREFIX));
    metric.ordinal == metric::GPU_XID_ERRORS.ordinal
        || metric.ordinal == metric::GPU_DRIVER_EVENTS.ordinal
        || metric.ordinal == metric::HW_ERRORS.ordinal && is_twin()
}

/// Starts the counters of the events that the driver reports at zero; a counter that has started keeps its count.
pub(super) fn record_zeroes(known: &mut GpuState, recorder: &mut Recorder<'_>) {
    if !known.lacks(&metric::GPU_XID_ERRORS) {
        for (code, kind, _) in CODES {
            grow(known, Entity::Gpu, (u64::from(code), kind), 0, recorder);
        }
    }
    if !known.lacks(&metric::GPU_DRIVER_EVENTS) {
        for (kind, ..) in OTHERS {
            count(known, Entity::Gpu, kind, 0, recorder);
        }
    }
}

/// Counts an event and logs it; `before_unix_nanos` is a time before it.
pub(super) fn record(
    known: &mut GpuState,
    event: &GpuEvent,
    before_unix_nanos: UnixNanos,
    recorder: &mut Recorder<'_>,
    logs: &mut LogsWriter,
) {
    let entity = instance(known, event).map_or(Entity::Gpu, Entity::Instance);
    let time_unix_nanos = recorder.time_unix_nanos;
    let grow_by = |by, known: &mut GpuState, recorder: &mut Recorder<'_>| match event.kind {
        GpuEventKind::Xid(code) => grow(known, entity, (code, meaning_of(code).0), by, recorder),
        GpuEventKind::Other(kind) => count(known, entity, kind, by, recorder),
    };
    // A series that begins with its first event would hide that event from a query for increases.
    recorder.time_unix_nanos = before_unix_nanos.min(time_unix_nanos);
    grow_by(0, known, recorder);
    recorder.time_unix_nanos = time_unix_nanos;
    grow_by(1, known, recorder);
    send(known, entity, event, recorder, logs);
}

/// Returns the `error.type` and the meaning of an XID code.
fn meaning_of(code: u64) -> (&'static str, &'static str) {
    let listed = CODES
        .iter()
        .chain(&RARE)
        .find(|(listed, ..)| u64::from(*listed) == code);
    listed.map_or(
        (OTHER, "see NVIDIA's list of XID errors"),
        |(_, kind, meaning)| (*kind, *meaning),
    )
}

fn instance(known: &GpuState, event: &GpuEvent) -> Option<u32> {
    let id = event.gpu_instance_id?;
    let of_id = known
        .gpu()
        .instances
        .iter()
        .find(|instance| instance.gpu_instance_id == id);
    of_id.map(|instance| instance.index)
}

fn grow(
    known: &mut GpuState,
    entity: Entity,
    (code, kind): (u64, &'static str),
    by: u64,
    recorder: &mut Recorder<'_>,
) {
    let own = ObservedSeries {
        subject: SubjectKind::Own(entity),
        labels: Labels {
            fixed: &[],
            number: Some((&attribute::GPU_XID_CODE, i64::try_from(code).unwrap_or(i64::MAX))),
        },
        cadence: Cadence::Once,
        ..ObservedSeries::of_gpu(&metric::GPU_XID_ERRORS)
    };
    known.observe(own, [None; 2], Observation::Grows(by), recorder);
    if recorder.semconv != GpuSemconv::Gpu && !NO_HARDWARE_ERRORS.contains(&code) {
        known.record_twin(
            &HwMetric::xid(kind, by),
            Cadence::Once,
            UnixNanos::UNKNOWN,
            recorder,
        );
    }
}

fn count(known: &mut GpuState, entity: Entity, kind: &'static str, by: u64, recorder: &mut Recorder<'_>) {
    let own = ObservedSeries {
        subject: SubjectKind::Own(entity),
        cadence: Cadence::Once,
        ..ObservedSeries::of_gpu(&metric::GPU_DRIVER_EVENTS)
    };
    let texts = [Some((&attribute::GPU_DRIVER_EVENT_TYPE, kind)), None];
    known.observe(own, texts, Observation::Grows(by), recorder);
}

fn send(
    known: &GpuState,
    entity: Entity,
    event: &GpuEvent,
    recorder: &mut Recorder<'_>,
    logs: &mut LogsWriter,
) {
    let carried = attributes_of(known.gpu(), entity, recorder.attribution);
    let mut attributes: Vec<_> = written(&carried).collect();
    let (name, severity, body) = match event.kind {
        GpuEventKind::Xid(code) => {
            attributes.push((&attribute::GPU_XID_CODE, AttributeValue::Int(code as i64)));
            let body = format!("XID {code}: {}", meaning_of(code).1);
            (events::GPU_XID.name, Severity::Error, body)
        }
        GpuEventKind::Other(kind) => {
            attributes.push((&attribute::GPU_DRIVER_EVENT_TYPE, AttributeValue::Text(kind)));
            let listed = OTHERS.iter().find(|(listed, ..)| *listed == kind);
            let (meaning, severity) = listed.map_or((kind, Severity::Error), |(_, meaning, severity)| {
                (*meaning, *severity)
            });
            (events::GPU_DRIVER_EVENT.name, severity, meaning.to_owned())
        }
    };
    logs.record(&LogRecordParts {
        event_name: name,
        time_unix_nanos: event.time_unix_nanos,
        observed_unix_nanos: event.time_unix_nanos,
        severity,
        body: Some(AttributeValue::Text(&body)),
        attributes: &attributes,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_codes_are_unique_and_named_after_their_number() {
        let mut codes: Vec<_> = CODES.iter().chain(&RARE).collect();
        codes.sort_unstable();
        for pair in codes.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{pair:?}");
        }
        for (code, kind, meaning) in codes {
            assert_eq!(*kind, format!("{KIND_PREFIX}{code}"));
            assert_eq!(meaning_of(u64::from(*code)), (*kind, *meaning));
        }
        assert_eq!(meaning_of(171).0, "xid_171");
        assert_eq!(meaning_of(170).0, OTHER);
    }
}
