//! The driver events of one GPU. Each GPU has its own event set and a thread that waits for it: a lost GPU ends the waits for its
//! own set at once, and does not affect other sets.

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

/// The timeout of one wait. It limits the delay at the end of a session and the wake-ups of an idle machine.
const WAIT_MS: u32 = 500;
/// The pause after a failed wait.
const REST: Duration = Duration::from_secs(1);

/// The bit of an XID error.
const XID: u64 = c::nvmlEventTypeXidCriticalError as u64;
/// The other event types by their bits, as values of `gpu.driver_event.type`. Events that `gpu.ecc.errors` and
/// `gpu.performance_state` cover are left out.
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

/// The registration for the events of a GPU, with the reasons for missing events.
pub(super) struct Registered<'nvml> {
    /// The event set; `None` if the driver reports no events.
    pub(super) set: Option<EventSet<'nvml>>,
    /// The reason that XID errors are not reported; `None` if they are.
    pub(super) xids_unavailable: Option<Reason>,
    /// The reason that other events are not reported; `None` if they are.
    pub(super) other_events_unavailable: Option<Reason>,
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
            xids_unavailable: missing(wanted & XID != 0),
            other_events_unavailable: missing(wanted & others != 0),
        },
        Err(error) => Registered {
            set: None,
            xids_unavailable: Some(reason(&error)),
            other_events_unavailable: Some(reason(&error)),
        },
    }
}

/// Sends every known event of the GPU until `over` is set or the receiver is gone.
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
