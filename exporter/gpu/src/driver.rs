//! The contract between a driver and the recorder: the events of a driver, and their sender.
//!
//! A [`DriverEvent`] is the output of every driver, whatever the vendor: [`nvml`](crate::nvml) or [`amd`](crate::amd).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::{
    Problem,
    clock::{self, Instant},
};
use tokio::sync::mpsc;

use crate::{Driver, DriverRelease, DriverUse, Gpu, reading::Reading, release::Request};

/// An event of the driver.
#[derive(Debug)]
pub(crate) enum DriverEvent {
    /// The driver is missing or released.
    Absent(Problem),
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

/// The sender of the events, with the state that the threads share with their handle.
#[derive(Clone)]
pub(crate) struct EventSender {
    pub(crate) event: mpsc::Sender<DriverEvent>,
    pub(crate) release: DriverRelease,
    pub(crate) ending: Arc<AtomicBool>,
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
    pub(crate) fn stay_released(&self, request: &Request) {
        let problem = Problem::new(request.why.clone());
        let remedy = "it is read again after that time, or with POST /gpu/resume";
        self.send(DriverEvent::Absent(problem.with_remedy(remedy)));
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
