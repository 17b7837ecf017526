//! A worker: the thread of one GPU. It opens the GPU and reads it whenever the session asks.
//!
//! A call that blocks in the driver blocks the worker of that GPU only. Workers are never joined.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    thread,
    time::Duration,
};

use nvml_wrapper::{Device, Nvml};
use pulsetrain_pipeline::clock::{self, Instant};

use super::{device, energy_lane::EnergyLane, events, monitored::MonitoredGpu, probe::Outcome};
use crate::{
    Gpu, GpuConfig, GpuTrouble,
    driver::{EventSender, GpuTick},
};

/// The delay before the next attempt to open a GPU.
const REOPEN_DELAY: Duration = Duration::from_secs(2);

/// The result of one pass of a worker.
pub(super) struct Reply {
    /// The index of the GPU.
    pub(super) index: u32,
    /// The readings; an error if NVML has to be loaded again.
    pub(super) read: Result<GpuTick, Outcome>,
    /// The duration of the pass.
    pub(super) took: Duration,
}

/// The worker of one GPU, with its channels to the session.
pub(super) struct Worker {
    /// The last known description of the GPU, used until it is opened.
    pub(super) known: Arc<Gpu>,
    pub(super) config: GpuConfig,
    pub(super) sender: EventSender,
    /// A message asks for one pass; the end of the channel ends the worker.
    pub(super) go: Receiver<()>,
    pub(super) replies: SyncSender<Reply>,
}

impl Worker {
    /// Reads the GPU until the session ends.
    pub(super) fn run(mut self, nvml: &Nvml) {
        let mut due = clock::now();
        while self.go.recv().is_ok() {
            let began = clock::now();
            if began >= due {
                match device::open(nvml, self.known.index) {
                    Ok(opened) => return self.watch(nvml, opened, began),
                    Err(error) => {
                        let Some(trouble) = device::trouble_of(&error) else {
                            self.reply(Err(Outcome::Gone), began);
                            continue;
                        };
                        Gpu::set_trouble(&mut self.known, trouble);
                        due = clock::later(clock::now(), self.open_again(trouble));
                    }
                }
            }
            let tick = GpuTick::new(&self.known, Some(Vec::new()), clock::unix_nanos());
            self.reply(Ok(tick), began);
        }
    }

    fn open_again(&self, trouble: GpuTrouble) -> Duration {
        match trouble {
            GpuTrouble::NotPermitted => self.config.retry,
            _ => REOPEN_DELAY,
        }
    }

    /// Reads an open GPU; `began` is the time at which the first pass was requested.
    fn watch(&self, nvml: &Nvml, (device, gpu): (Device<'_>, Gpu), mut began: Instant) {
        let uuid = gpu.uuid.clone();
        let registered = events::register(nvml, &device);
        let mut monitored = MonitoredGpu::new(device, gpu, &self.config);
        monitored.settle_events(&registered);
        let mut lane = EnergyLane::new(&self.config);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            if let Some(set) = registered.set {
                let (over, sender) = (&over, &self.sender);
                // If the thread cannot be started, only the events are missing.
                let _ = thread::Builder::new()
                    .name("nvml-events".to_owned())
                    .spawn_scoped(scope, move || events::listen(nvml, &set, &uuid, sender, over));
            }
            loop {
                let mut read = monitored.read(nvml, &self.config);
                if let Ok(GpuTick {
                    readings: Some(readings),
                    ..
                }) = &mut read
                {
                    lane.add_to(readings);
                }
                if clock::now().saturating_duration_since(began) >= self.config.stale_after() / 2 {
                    // The driver hung, and the series may have ended in the meantime: rows that are read once are read again.
                    monitored.mark_all_rows_due();
                }
                self.reply(read, began);
                let Some(asked) = self.await_pass(&mut lane, &monitored) else {
                    break;
                };
                began = asked;
            }
            over.store(true, Ordering::Relaxed);
        });
    }

    /// Reads the energy counter until a pass is requested. Returns the time of the request, or `None` at the end of the session.
    /// The time of a call that delayed the receipt of the request is subtracted.
    fn await_pass(&self, lane: &mut EnergyLane, monitored: &MonitoredGpu<'_>) -> Option<Instant> {
        let mut delay = Duration::ZERO;
        loop {
            let asked = match lane.wait() {
                Some(wait) => self.go.recv_timeout(wait),
                None => self.go.recv().map_err(RecvTimeoutError::from),
            };
            let now = clock::now();
            match asked {
                Ok(()) => return Some(now.checked_sub(delay).unwrap_or(now)),
                Err(RecvTimeoutError::Timeout) => delay = lane.read(monitored.device()),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn reply(&self, read: Result<GpuTick, Outcome>, began: Instant) {
        let took = clock::now().saturating_duration_since(began);
        // A session that has ended no longer receives; the closed channel `go` then ends the worker.
        let _ = self.replies.send(Reply {
            index: self.known.index,
            read,
            took,
        });
    }
}
