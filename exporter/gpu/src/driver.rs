//! The threads that read GPUs and send their readings. They are never joined.
//!
//! A [`DriverEvent`] is the output of every driver, whatever the vendor: [`nvml`](crate::nvml) or [`amd`](crate::amd).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::clock::{self, Instant};
use tokio::sync::mpsc;

use crate::{
    Driver, DriverRelease, DriverUse, Gpu, GpuConfig,
    amd::AmdGpus,
    nvml::{
        library,
        session::{self, SessionMemory},
    },
    reading::Reading,
    release::Request,
};

/// The capacity of the event queue. The recorder drains it at once, so it never holds more than a few events.
const QUEUE: usize = 16;
/// The delay before another search for a missing driver: the first time, and at most.
const RETRY: Duration = Duration::from_secs(5);
const RETRY_AT_MOST: Duration = Duration::from_secs(60);
/// The interval at which a survey polls for events.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An event of the driver.
#[derive(Debug)]
pub(crate) enum DriverEvent {
    /// The driver is missing or released.
    Absent {
        /// The reason.
        why: String,
        /// The recommended action.
        advice: &'static str,
    },
    /// One pass over all GPUs.
    Tick(Box<Tick>),
    /// An event of a GPU.
    Gpu(GpuEvent),
}

/// One pass over all GPUs.
#[derive(Debug)]
pub(crate) struct Tick {
    /// The driver.
    pub(crate) driver: Arc<Driver>,
    /// The GPUs.
    pub(crate) gpus: Vec<GpuTick>,
    /// The time at which the pass began.
    pub(crate) time_unix_nanos: UnixNanos,
    /// The duration of the pass.
    pub(crate) took: Duration,
}

/// The readings of a GPU in one pass.
#[derive(Debug)]
pub(crate) struct GpuTick {
    /// The GPU; the same allocation as long as the GPU does not change.
    pub(crate) gpu: Arc<Gpu>,
    /// The readings; `None` while a call about the GPU has not returned, and the last readings still hold.
    pub(crate) readings: Option<Vec<Reading>>,
    /// The time at which reading began, in nanoseconds since 1970. It is much later than the start of the pass if the driver hung
    /// before.
    pub(crate) time_unix_nanos: UnixNanos,
    /// The driver of this GPU, if it differs from that of the pass.
    pub(crate) driver: Option<Arc<Driver>>,
}

impl GpuTick {
    /// Returns the readings of a GPU of the driver of the pass.
    pub(crate) fn new(gpu: &Arc<Gpu>, readings: Option<Vec<Reading>>, time_unix_nanos: UnixNanos) -> Self {
        Self {
            gpu: Arc::clone(gpu),
            readings,
            time_unix_nanos,
            driver: None,
        }
    }
}

/// An event of a GPU.
#[derive(Debug)]
pub(crate) struct GpuEvent {
    /// The GPU.
    pub(crate) uuid: String,
    /// The kind of the event.
    pub(crate) kind: GpuEventKind,
    /// The GPU instance.
    pub(crate) gpu_instance_id: Option<u32>,
    /// The time at which it was received.
    pub(crate) time_unix_nanos: UnixNanos,
}

/// The kind of an event of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GpuEventKind {
    /// An XID error, by its code.
    Xid(u64),
    /// Another event, as a value of `gpu.driver_event.type`.
    Other(&'static str),
}

/// The reason that reading has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The receiver of the events is gone.
    StopRequested,
    /// The driver has gone.
    DriverGone,
    /// It has to be loaded again to see the GPUs as they are now.
    ReloadRequired,
    /// A release of the driver was requested.
    Released,
}

/// The handle of the threads. Dropping it ends them, but does not wait for them.
pub(crate) struct DriverThread {
    /// The receiver of the events.
    pub(crate) event: mpsc::Receiver<DriverEvent>,
    ending: Arc<AtomicBool>,
    thread: Thread,
}

/// The sender of the events, with the state that the threads share with their handle.
#[derive(Clone)]
pub(crate) struct EventSender {
    event: mpsc::Sender<DriverEvent>,
    pub(crate) release: DriverRelease,
    ending: Arc<AtomicBool>,
}

/// Starts to read the driver.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(config: &GpuConfig, release: DriverRelease) -> Result<DriverThread, String> {
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
        .spawn(move || read(&config, &sender))
        .map_err(|error| format!("cannot start a thread to read the GPUs: {error}"))?;
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

impl EventSender {
    /// Sends an event, and waits while the queue is full. If the receiver is gone, [`EventSender::is_ending`] returns true from
    /// then on.
    pub(crate) fn send(&self, event: DriverEvent) {
        if self.event.blocking_send(event).is_err() {
            self.ending.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the reason to end reading now, or `None`.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        if self.is_ending() {
            return Some(StopReason::StopRequested);
        }
        self.release.requested().map(|_| StopReason::Released)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Reports that the driver is released, and waits for the end of the release. NVML is shut down.
    fn stay_released(&self, request: &Request) {
        let advice = "it is read again after that time, or with POST /gpu/resume";
        let why = request.why.clone();
        self.send(DriverEvent::Absent { why, advice });
        self.release.set_use(DriverUse::Released);
        self.release.wait_for_end(request, || self.is_ending());
        self.release.set_use(DriverUse::Open);
    }

    /// Waits for `wait`, or until the threads end or a release is requested.
    pub(crate) fn pause(&self, wait: Duration) {
        self.pause_until(clock::later(clock::now(), wait));
    }

    pub(crate) fn pause_until(&self, end: Instant) {
        park_until(end, || self.stop_reason().is_some());
    }
}

/// Parks the thread until `end`, or until it is unparked and `is_over` returns true.
pub(crate) fn park_until(end: Instant, is_over: impl Fn() -> bool) {
    while !is_over() {
        let left = end.saturating_duration_since(clock::now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
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
