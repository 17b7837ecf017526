//! XID errors: the driver tells of them while somebody waits, so somebody does, on a thread of its own. That also keeps
//! repeats apart: of several that come unheard, NVML repeats the last code.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use nvml_wrapper::{Device, EventSet, Nvml, bitmasks::event::EventTypes, error::NvmlError};
use pulsetrain_pipeline::clock;

use super::{Heard, Telling, XidError, ffi, row::reason};
use crate::nvml::Reason;

/// How long one wait is: so long an end is waited for, at most, and so seldom a quiet machine is woken.
const WAIT_MS: u32 = 2000;
/// How long after a failure it is tried again.
const REST: Duration = Duration::from_secs(1);

/// Asks the driver to tell of the XID errors of each device; says which it refused, and why.
pub(super) fn register<'nvml>(
    nvml: &'nvml Nvml,
    devices: &[Option<&Device<'nvml>>],
) -> (Option<EventSet<'nvml>>, Vec<Option<Reason>>) {
    let mut refused = Vec::with_capacity(devices.len());
    let mut set = None;
    for device in devices {
        let Some(device) = device else {
            refused.push(Some(Reason::GpuLost));
            continue;
        };
        let registered = match set.take() {
            Some(set) => Ok(set),
            None => nvml.create_event_set(),
        }
        .map_err(|error| (reason(&error), None))
        .and_then(|into| register_one(device, into));
        match registered {
            Ok(filled) => {
                set = Some(filled);
                refused.push(None);
            }
            Err((why, kept)) => {
                set = kept;
                refused.push(Some(why));
            }
        }
    }
    (set, refused)
}

/// Asks for the events of one device. The wrapper takes the set away where that fails, so it is asked first what can be
/// had.
fn register_one<'nvml>(
    device: &Device<'nvml>,
    set: EventSet<'nvml>,
) -> Result<EventSet<'nvml>, (Reason, Option<EventSet<'nvml>>)> {
    match device.supported_event_types() {
        Ok(types) if types.contains(EventTypes::CRITICAL_XID_ERROR) => device
            .register_events(EventTypes::CRITICAL_XID_ERROR, set)
            .map_err(|error| (reason(&error.error), None)),
        Ok(_) => Err((Reason::NotSupported, Some(set))),
        Err(error) => Err((reason(&error), Some(set))),
    }
}

/// Hands over every XID error until `over`. `known` are the GPUs by their handles: one that has fallen off the bus, which is
/// an XID error itself, cannot be asked who it is.
pub(super) fn listen<'nvml>(
    nvml: &'nvml Nvml,
    set: &EventSet<'nvml>,
    known: &[(usize, String)],
    telling: &Telling,
    over: &AtomicBool,
) {
    while !over.load(Ordering::Relaxed) && !telling.is_ending() {
        match ffi::next_xid(nvml, set, WAIT_MS) {
            Ok(xid) => {
                let address = ffi::address(&xid.device);
                let Some((_, uuid)) = known.iter().find(|(known, _)| *known == address) else {
                    continue;
                };
                telling.tell(Heard::Xid(XidError {
                    uuid: uuid.clone(),
                    code: xid.code,
                    gpu_instance_id: xid.gpu_instance_id,
                    time_unix_nanos: clock::unix_now().as_nanos() as u64,
                }));
            }
            Err(NvmlError::Timeout) => {}
            Err(_) => telling.pause(REST),
        }
    }
}
