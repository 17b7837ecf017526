//! XID errors: a counter by code that is zero from the start, so that the first one is seen as an increase, and an event
//! with what the code means.
//!
//! Codes and meanings: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors).

use pulsetrain_otlp::write::{LogRecordParts, LogsWriter, Severity, Value};
use pulsetrain_semconv::{Metric, attribute, event, metric};

use super::{
    hw_semconv::HwMetric,
    known::{Known, Own, Recorder},
    store::{Key, Observation},
    subject::{attributes_of, written},
};
use crate::{
    GpuSemconv,
    driver::XidError,
    reading::{Cadence, Entity, Labels},
};

/// A code, what it is as an `error.type`, and what it means.
type Code = (u32, &'static str, &'static str);

/// The codes that a training machine sees, each a series from the start; others become one when they come.
const CODES: [Code; 28] = [
    (8, "xid_8", "GPU stopped processing"),
    (13, "xid_13", "graphics engine exception, mostly of the program"),
    (31, "xid_31", "memory page fault, mostly of the program"),
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

/// What every `error.type` of a code begins with.
const KIND_PREFIX: &str = "xid_";
/// The kind of an unlisted code.
const OTHER: &str = "xid_other";

/// Whether a series is counted by us and not by the driver: it stays true whatever becomes of the driver.
pub(super) fn is_counted_here(key: &Key, metric: &Metric) -> bool {
    let is_twin = || key.last_text().is_some_and(|kind| kind.starts_with(KIND_PREFIX));
    metric.ordinal == metric::GPU_XID_ERRORS.ordinal
        || metric.ordinal == metric::HW_ERRORS.ordinal && is_twin()
}

/// Begins the counters of all listed codes at zero, where they have not begun.
pub(super) fn record_zeroes(known: &mut Known, recorder: &mut Recorder<'_>) {
    for (code, kind, _) in CODES {
        grow(known, Entity::Gpu, (u64::from(code), kind), 0, recorder);
    }
}

/// Counts an XID error and logs it; `before_unix_nanos` is a time before it.
pub(super) fn record(
    known: &mut Known,
    xid: &XidError,
    before_unix_nanos: u64,
    recorder: &mut Recorder<'_>,
    logs: &mut LogsWriter,
) {
    let listed = CODES.iter().find(|(code, ..)| u64::from(*code) == xid.code);
    let (kind, meaning) = listed.map_or(
        (OTHER, "see NVIDIA's list of XID errors"),
        |(_, kind, meaning)| (*kind, *meaning),
    );
    let entity = instance(known, xid).map_or(Entity::Gpu, Entity::Instance);
    let time_unix_nanos = recorder.time_unix_nanos;
    // A series that begins with its first error would hide it from whoever looks for an increase.
    recorder.time_unix_nanos = before_unix_nanos.min(time_unix_nanos);
    grow(known, entity, (xid.code, kind), 0, recorder);
    recorder.time_unix_nanos = time_unix_nanos;
    grow(known, entity, (xid.code, kind), 1, recorder);
    send(known, entity, xid, meaning, recorder, logs);
}

fn instance(known: &Known, xid: &XidError) -> Option<u32> {
    let id = xid.gpu_instance_id?;
    let of_id = known
        .gpu()
        .instances
        .iter()
        .find(|instance| instance.gpu_instance_id == id);
    of_id.map(|instance| instance.index)
}

fn grow(
    known: &mut Known,
    entity: Entity,
    (code, kind): (u64, &'static str),
    by: u64,
    recorder: &mut Recorder<'_>,
) {
    let own = Own {
        entity,
        labels: Labels {
            fixed: &[],
            number: Some((&attribute::GPU_XID_CODE, i64::try_from(code).unwrap_or(i64::MAX))),
        },
        cadence: Cadence::Once,
        ..Own::of_gpu(&metric::GPU_XID_ERRORS)
    };
    known.enter(own, [None; 2], Observation::Grows(by), recorder);
    if recorder.semconv != GpuSemconv::Gpu {
        known.record_twin(&HwMetric::xid(kind, by), Cadence::Once, 0, recorder);
    }
}

fn send(
    known: &Known,
    entity: Entity,
    xid: &XidError,
    meaning: &str,
    recorder: &mut Recorder<'_>,
    logs: &mut LogsWriter,
) {
    let carried = attributes_of(known.gpu(), entity, recorder.attribution);
    let mut attributes: Vec<_> = written(&carried).collect();
    attributes.push((&attribute::GPU_XID_CODE, Value::Int(xid.code as i64)));
    let body = format!("XID {}: {meaning}", xid.code);
    logs.record(&LogRecordParts {
        event_name: event::GPU_XID.name,
        time_unix_nanos: xid.time_unix_nanos,
        observed_unix_nanos: xid.time_unix_nanos,
        severity: Severity::Error,
        body: Some(Value::Text(&body)),
        attributes: &attributes,
    });
}
