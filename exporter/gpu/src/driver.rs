//! The threads that read GPUs and hand over what they read. Nobody waits for them.
//!
//! [`DriverEvent`] is what a driver hands over, whatever the vendor: [`nvml`](crate::nvml) or [`amd`](crate::amd).

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

/// How much may wait for whoever records: it is taken at once, so more than a few is never there.
const QUEUE: usize = 16;
/// How long until a driver that is not there is looked for again, the first time and at most.
const RETRY: Duration = Duration::from_secs(5);
const RETRY_AT_MOST: Duration = Duration::from_secs(60);
/// How often a survey looks whether there is something to see.
const GLANCE: Duration = Duration::from_millis(5);

/// What was heard of the driver.
#[derive(Debug)]
pub(crate) enum DriverEvent {
    /// It is not there.
    Absent {
        /// What is missing.
        why: String,
        /// What to do about it.
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
    /// When it began.
    pub(crate) time_unix_nanos: UnixNanos,
    /// How long it took.
    pub(crate) took: Duration,
}

/// What one pass read of a GPU.
#[derive(Debug)]
pub(crate) struct GpuTick {
    /// The GPU; the same one for as long as nothing about it changes.
    pub(crate) gpu: Arc<Gpu>,
    /// What was read; `None` while a call about the GPU has not returned, and what was read last still holds.
    pub(crate) readings: Option<Vec<Reading>>,
    /// When that began, in nanoseconds since 1970: much later than the pass where the driver hung before.
    pub(crate) time_unix_nanos: UnixNanos,
    /// The driver of this GPU, where it is another than that of the pass.
    pub(crate) driver: Option<Arc<Driver>>,
}

/// An event of a GPU.
#[derive(Debug)]
pub(crate) struct GpuEvent {
    /// The GPU.
    pub(crate) uuid: String,
    /// What happened.
    pub(crate) kind: GpuEventKind,
    /// The GPU instance.
    pub(crate) gpu_instance_id: Option<u32>,
    /// When it came.
    pub(crate) time_unix_nanos: UnixNanos,
}

/// What happened to a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GpuEventKind {
    /// An XID error, by its code.
    Xid(u64),
    /// Another event, as a value of `gpu.driver_event.type`.
    Other(&'static str),
}

/// Why a driver is read no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Nobody listens any more.
    Told,
    /// The driver has gone.
    Gone,
    /// It has to be loaded again to see the GPUs as they are now.
    LoadAgain,
    /// A release of the driver was requested.
    Released,
}

/// The threads, seen from outside. Dropping it lets them end; they are not waited for.
pub(crate) struct DriverThread {
    /// What they read.
    pub(crate) event: mpsc::Receiver<DriverEvent>,
    ending: Arc<AtomicBool>,
    thread: Thread,
}

/// What the threads hold of the other side.
#[derive(Clone)]
pub(crate) struct EventSender {
    event: mpsc::Sender<DriverEvent>,
    pub(crate) release: DriverRelease,
    ending: Arc<AtomicBool>,
}

/// Starts to read the driver.
///
/// # Errors
/// The system has no thread to give.
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

/// Reads the driver for as long as anybody listens: loads it, reads it until it has gone, and begins again.
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
                        sender.why_to_end()
                    },
                ),
                None => {
                    sender.send(absent);
                    Ended::Gone
                }
            },
        };
        wait = match ended {
            Ended::Told => break,
            Ended::LoadAgain | Ended::Released => RETRY,
            Ended::Gone => {
                sender.pause(wait);
                wait.saturating_mul(2).min(RETRY_AT_MOST)
            }
        };
    }
    sender.release.end();
}

impl EventSender {
    /// Hands something over; whether anybody listens shows at the next look.
    pub(crate) fn send(&self, event: DriverEvent) {
        if self.event.blocking_send(event).is_err() {
            self.ending.store(true, Ordering::Relaxed);
        }
    }

    /// Why reading ends now; `None` if it does not.
    pub(crate) fn why_to_end(&self) -> Option<Ended> {
        if self.is_ending() {
            return Some(Ended::Told);
        }
        self.release.requested().map(|_| Ended::Released)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// Reports that the driver is released, and waits for the end of that. NVML is shut down.
    fn stay_released(&self, request: &Request) {
        let advice = "it is read again after that time, or with POST /gpu/resume";
        let why = request.why.clone();
        self.send(DriverEvent::Absent { why, advice });
        self.release.set_use(DriverUse::Released);
        self.release.wait_for_end(request, || self.is_ending());
        self.release.set_use(DriverUse::Open);
    }

    /// Waits, but not beyond the end or until a release is requested.
    pub(crate) fn pause(&self, wait: Duration) {
        self.pause_until(clock::later(clock::now(), wait));
    }

    pub(crate) fn pause_until(&self, end: Instant) {
        while !self.is_ending() && self.release.requested().is_none() {
            let left = end.saturating_duration_since(clock::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

impl DriverThread {
    /// What is heard next, for those who may block; nothing at the end of patience.
    pub(crate) fn recv_until(&mut self, end: Instant) -> Option<DriverEvent> {
        loop {
            match self.event.try_recv() {
                Ok(event) => return Some(event),
                Err(mpsc::error::TryRecvError::Disconnected) => return None,
                Err(mpsc::error::TryRecvError::Empty) if clock::now() >= end => return None,
                Err(mpsc::error::TryRecvError::Empty) => thread::park_timeout(GLANCE),
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
