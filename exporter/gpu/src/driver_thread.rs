//! The thread that chooses the driver of a vendor, reads GPUs and sends their readings. It is never joined.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};
use tokio::sync::mpsc;

use crate::{
    DriverRelease, GpuConfig,
    amd::AmdGpus,
    driver::{DriverEvent, EventSender, StopReason},
    nvml::{
        library,
        session::{self, SessionMemory},
    },
};

/// The capacity of the event queue. The recorder drains it at once, so it never holds more than a few events.
const QUEUE: usize = 16;
/// The delay before another search for a missing driver: the first time, and at most.
const RETRY: Duration = Duration::from_secs(5);
const RETRY_AT_MOST: Duration = Duration::from_secs(60);
/// The interval at which a survey polls for events.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The handle of the threads. Dropping it ends them, but does not wait for them.
pub(crate) struct DriverThread {
    /// The receiver of the events.
    pub(crate) event: mpsc::Receiver<DriverEvent>,
    ending: Arc<AtomicBool>,
    thread: Thread,
}

/// Starts to read the driver.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(config: &GpuConfig, release: DriverRelease) -> io::Result<DriverThread> {
    let (sender, event) = mpsc::channel(QUEUE);
    let ending = Arc::<AtomicBool>::default();
    let sender = EventSender {
        event: sender,
        release,
        ending: Arc::clone(&ending),
    };
    let config = config.clone();
    let thread = thread::Builder::new()
        .name("gpus".to_owned())
        .spawn(move || read(&config, &sender))?;
    Ok(DriverThread {
        event,
        ending,
        thread: thread.thread().clone(),
    })
}

/// Reads the driver until the receiver is gone: loads it, reads it until it is gone, and starts over.
fn read(config: &GpuConfig, sender: &EventSender) {
    let (mut wait, mut memory) = (RETRY, SessionMemory::default());
    sender.release.begin();
    while !sender.is_ending() {
        if let Some(request) = sender.release.requested() {
            sender.stay_released(&request);
            wait = RETRY;
            continue;
        }
        let ended = match library::load(config.library.as_deref()) {
            Ok(nvml) => session::read(nvml, config, sender, &mut memory),
            Err(absent) => match AmdGpus::find(&config.sysfs, 0) {
                Some(gpus) => gpus.read(
                    config,
                    |tick| sender.send(DriverEvent::Tick(Box::new(tick))),
                    |due| {
                        sender.pause_until(due);
                        sender.stop_reason()
                    },
                ),
                None => {
                    sender.send(absent);
                    StopReason::DriverGone
                }
            },
        };
        wait = match ended {
            StopReason::StopRequested => break,
            StopReason::ReloadRequired | StopReason::Released => RETRY,
            StopReason::DriverGone => {
                sender.pause(wait);
                wait.saturating_mul(2).min(RETRY_AT_MOST)
            }
        };
    }
    sender.release.end();
}

impl DriverThread {
    /// Blocks until the next event. Returns `None` at `end`, or if the threads have ended.
    pub(crate) fn recv_until(&mut self, end: Instant) -> Option<DriverEvent> {
        loop {
            match self.event.try_recv() {
                Ok(event) => return Some(event),
                Err(mpsc::error::TryRecvError::Disconnected) => return None,
                Err(mpsc::error::TryRecvError::Empty) if clock::now() >= end => return None,
                Err(mpsc::error::TryRecvError::Empty) => thread::park_timeout(SHORT_POLL_INTERVAL),
            }
        }
    }
}

impl Drop for DriverThread {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}
