//! Events of one GPU: a thread waits for them, so each GPU has one. A GPU that is lost ends the waits
//! of its own set at once, and of no other.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use nvml_wrapper::{Device, EventSet, Nvml, error::NvmlError};
use nvml_wrapper_sys::bindings as c;
use pulsetrain_pipeline::clock;

use super::{ffi, row::reason};
use crate::{
    Reason,
    driver::{DriverEvent, EventSender, GpuEvent, GpuEventKind},
};

/// How long one wait is: so long a session waits for its end at most, and so seldom a quiet machine is woken.
const WAIT_MS: u32 = 500;
/// How long after a failure it is tried again.
const REST: Duration = Duration::from_secs(1);

/// The bit of an XID error.
const XID: u64 = c::nvmlEventTypeXidCriticalError as u64;
/// The other types, by their bits, as values of `gpu.driver_event.type`. What `gpu.ecc.errors` and `gpu.performance_state` have is
/// not among them.
const OTHERS: [(u64, &str); 7] = [
    (
        c::nvmlEventTypeSingleBitEccErrorStorm as u64,
        "single_bit_ecc_error_storm",
    ),
    (c::nvmlEventTypeDramRetirementEvent as u64, "dram_retirement"),
    (
        c::nvmlEventTypeDramRetirementFailure as u64,
        "dram_retirement_failure",
    ),
    (
        c::nvmlEventTypeNonFatalPoisonError as u64,
        "non_fatal_poison_error",
    ),
    (c::nvmlEventTypeFatalPoisonError as u64, "fatal_poison_error"),
    (c::nvmlEventTypeGpuUnavailableError as u64, "gpu_unavailable"),
    (
        c::nvmlEventTypeGpuRecoveryAction as u64,
        "recovery_action_changed",
    ),
];

/// What the driver reports of a GPU, and why the rest is missing.
pub(super) struct Registered<'nvml> {
    /// `None` where the driver reports no events.
    pub(super) set: Option<EventSet<'nvml>>,
    /// Why there are no XID errors.
    pub(super) no_xids: Option<Reason>,
    /// Why there are no other events.
    pub(super) no_others: Option<Reason>,
}

/// Registers for the events of a GPU.
pub(super) fn register<'nvml>(nvml: &'nvml Nvml, device: &Device<'nvml>) -> Registered<'nvml> {
    let others = OTHERS.iter().fold(0, |all, (bit, _)| all | bit);
    let registered = ffi::supported_events(device).and_then(|supported| {
        let wanted = supported & (XID | others);
        let set = nvml.create_event_set()?;
        if wanted != 0 {
            ffi::register_events(device, wanted, &set)?;
        }
        Ok((set, wanted))
    });
    let missing = |is_there: bool| (!is_there).then_some(Reason::NotSupported);
    match registered {
        Ok((set, wanted)) => Registered {
            set: (wanted != 0).then_some(set),
            no_xids: missing(wanted & XID != 0),
            no_others: missing(wanted & others != 0),
        },
        Err(error) => Registered {
            set: None,
            no_xids: Some(reason(&error)),
            no_others: Some(reason(&error)),
        },
    }
}

/// Hands over every event of the GPU until `over`.
pub(super) fn listen<'nvml>(
    nvml: &'nvml Nvml,
    set: &EventSet<'nvml>,
    uuid: &str,
    sender: &EventSender,
    over: &AtomicBool,
) {
    while !over.load(Ordering::Relaxed) && !sender.is_ending() {
        match ffi::next_event(nvml, set, WAIT_MS) {
            Ok(event) => {
                let Some(kind) = kind(&event) else {
                    continue;
                };
                sender.send(DriverEvent::Gpu(GpuEvent {
                    uuid: uuid.to_owned(),
                    kind,
                    gpu_instance_id: event.gpu_instance_id,
                    time_unix_nanos: clock::unix_nanos(),
                }));
            }
            Err(NvmlError::Timeout) => {}
            Err(_) => sender.pause(REST),
        }
    }
}

fn kind(event: &ffi::Event) -> Option<GpuEventKind> {
    if event.kind == XID {
        return Some(GpuEventKind::Xid(event.data));
    }
    let known = OTHERS.iter().find(|(bit, _)| *bit == event.kind)?;
    Some(GpuEventKind::Other(known.1))
}
