//! XID errors of one GPU: a thread waits for them, so each GPU has one. A GPU that is lost ends the waits
//! of its own set at once, and of no other.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use nvml_wrapper::{Device, EventSet, Nvml, bitmasks::event::EventTypes, error::NvmlError};
use pulsetrain_pipeline::clock;

use super::{ffi, row::reason};
use crate::{
    Reason,
    driver::{DriverEvent, EventSender, XidError},
};

/// How long one wait is: so long a session waits for its end at most, and so seldom a quiet machine is woken.
const WAIT_MS: u32 = 500;
/// How long after a failure it is tried again.
const REST: Duration = Duration::from_secs(1);

/// Registers for the XID errors of a GPU; the reason where the driver refuses.
pub(super) fn register<'nvml>(
    nvml: &'nvml Nvml,
    device: &Device<'nvml>,
) -> (Option<EventSet<'nvml>>, Option<Reason>) {
    let registered = match device.supported_event_types() {
        Ok(types) if types.contains(EventTypes::CRITICAL_XID_ERROR) => nvml
            .create_event_set()
            .and_then(|set| {
                let registered = device.register_events(EventTypes::CRITICAL_XID_ERROR, set);
                registered.map_err(|error| error.error)
            })
            .map_err(|error| reason(&error)),
        Ok(_) => Err(Reason::NotSupported),
        Err(error) => Err(reason(&error)),
    };
    match registered {
        Ok(set) => (Some(set), None),
        Err(reason) => (None, Some(reason)),
    }
}

/// Hands over every XID error of the GPU until `over`.
pub(super) fn listen<'nvml>(
    nvml: &'nvml Nvml,
    set: &EventSet<'nvml>,
    uuid: &str,
    sender: &EventSender,
    over: &AtomicBool,
) {
    while !over.load(Ordering::Relaxed) && !sender.is_ending() {
        match ffi::next_xid(nvml, set, WAIT_MS) {
            Ok(xid) => sender.send(DriverEvent::Xid(XidError {
                uuid: uuid.to_owned(),
                code: xid.code,
                gpu_instance_id: xid.gpu_instance_id,
                time_unix_nanos: clock::unix_now().as_nanos() as u64,
            })),
            Err(NvmlError::Timeout) => {}
            Err(_) => sender.pause(REST),
        }
    }
}
