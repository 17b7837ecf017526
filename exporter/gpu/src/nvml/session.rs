//! A session: NVML is loaded, each GPU has a worker, and passes are made over all of them until NVML has to be loaded again.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use nvml_wrapper::Nvml;
use pulsetrain_pipeline::clock::{self, Instant};
use pulsetrain_semconv::attribute::GPU_RECOVERY_ACTION;

use super::worker::{Reply, Worker};
use crate::{
    Driver, Gpu, GpuConfig, GpuTrouble,
    companion::Companion,
    driver::{DriverEvent, EventSender, GpuTick, StopReason, Tick},
    reading::{INFREQUENT_INTERVAL, Sample},
};

/// The folder in which the kernel lists the GPUs of the driver, including those that appeared after NVML was loaded.
const LISTED: &str = "/proc/driver/nvidia/gpus";

/// The time without an answer of a GPU after which NVML is loaded again: the first time, and at most. There is no other way to
/// see a GPU that was reset or rescanned. The other GPUs miss a point.
const MIN_RELOAD_WAIT: Duration = Duration::from_secs(60);
const MAX_RELOAD_WAIT: Duration = Duration::from_secs(900);

/// The longest time that a pass waits for a GPU that was in time before.
const PASS: Duration = Duration::from_secs(1);
/// The interval at which the end of the source is checked while no GPU answers.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The state that is kept from one session to the next.
#[derive(Debug, Default)]
pub(crate) struct SessionMemory {
    /// The GPUs, as they were seen last.
    gpus: Vec<Arc<Gpu>>,
    /// The time without an answer after which NVML was last loaded again; zero while no GPU is lost.
    patience: Duration,
    /// The UUIDs of GPUs for whose reset the driver was released.
    released_for: BTreeSet<String>,
}

/// Reads the driver until it has gone or has to be loaded again.
pub(crate) fn read(
    nvml: Nvml,
    config: &GpuConfig,
    sender: &EventSender,
    memory: &mut SessionMemory,
) -> StopReason {
    let nvml = Arc::new(nvml);
    let Ok(count) = nvml.device_count() else {
        return StopReason::DriverGone;
    };
    let (reply_sender, replies) = sync_channel(count as usize);
    let known = memory.known(count);
    let lanes = known
        .into_iter()
        .map(|gpu| Lane::start(&nvml, gpu, config, sender, &reply_sender));
    let Ok(lanes) = lanes.collect::<Result<Vec<_>, _>>() else {
        return StopReason::DriverGone;
    };
    drop(reply_sender);
    let mut session = Session {
        nvml,
        config,
        sender,
        lanes,
        companion: Companion::start(config, count),
        replies,
    };
    let ended = session.read_passes(memory);
    session.finish();
    ended
}

struct Session<'a> {
    nvml: Arc<Nvml>,
    config: &'a GpuConfig,
    sender: &'a EventSender,
    lanes: Vec<Lane>,
    /// The AMD GPUs of this machine.
    companion: Option<Companion>,
    replies: Receiver<Reply>,
}

/// A worker as the session sees it.
struct Lane {
    go: SyncSender<()>,
    /// The GPU as it was seen last.
    gpu: Arc<Gpu>,
    /// The time of the unanswered request; `None` without one.
    asked: Option<Instant>,
    /// Whether it missed the end of a pass: the next ones do not wait for it.
    late: bool,
    /// The readings of this pass.
    read: Option<GpuTick>,
    /// The time since which the GPU has not been readable.
    lost: Option<Instant>,
}

impl Session<'_> {
    fn read_passes(&mut self, memory: &mut SessionMemory) -> StopReason {
        let driver = Arc::new(driver(&self.nvml));
        let listed = listed();
        let (mut due, mut counted) = (clock::now(), clock::now());
        // The first pass opens the GPUs, which takes longer.
        let mut patience = self.config.stale_after() / 2;
        loop {
            let (time_unix_nanos, began) = (clock::unix_nanos(), clock::now());
            self.lanes.iter_mut().for_each(|lane| lane.ask(began));
            let took = match self.collect(patience) {
                Ok(took) => took,
                Err(ended) => return ended,
            };
            patience = self.config.interval.min(PASS);
            let now = clock::now();
            let silent_after = self.config.stale_after();
            let mut gpus: Vec<_> = self
                .lanes
                .iter_mut()
                .map(|lane| lane.tick(now, silent_after))
                .collect();
            if let Some(time) = self.config.release_for_reset {
                gpus.iter()
                    .for_each(|gpu| self.release_for_reset(gpu, time, memory));
            }
            gpus.extend(self.companion.iter().flat_map(Companion::take));
            self.sender.send(DriverEvent::Tick(Box::new(Tick {
                driver: Arc::clone(&driver),
                gpus,
                time_unix_nanos,
                took,
            })));
            memory.gpus = self.lanes.iter().map(|lane| Arc::clone(&lane.gpu)).collect();
            if memory.should_reload_nvml(&self.lanes, now) {
                return StopReason::ReloadRequired;
            }
            // While a call hangs, the count may hang, too, and the driver cannot be loaded again.
            let hangs = self.lanes.iter().any(|lane| lane.asked.is_some());
            if !hangs && now.saturating_duration_since(counted) >= INFREQUENT_INTERVAL {
                counted = now;
                let count = self.nvml.device_count();
                if count.is_ok_and(|count| count as usize != self.lanes.len()) || self::listed() != listed {
                    return StopReason::ReloadRequired;
                }
            }
            // A pass that took too long delays only the next one.
            due = clock::later(due, self.config.interval).max(now);
            self.sender.pause_until(due);
            if let Some(ended) = self.sender.stop_reason() {
                return ended;
            }
        }
    }

    /// Releases the driver once if a GPU needs a reset and no process uses it: the kernel refuses the reset of a GPU in use.
    fn release_for_reset(&self, tick: &GpuTick, time: Duration, memory: &mut SessionMemory) {
        let Some(needs_reset) = needs_reset(tick) else {
            return;
        };
        let gpu = &tick.gpu;
        if !needs_reset {
            memory.released_for.remove(&gpu.uuid);
        } else if gpu.processes.is_empty() && memory.released_for.insert(gpu.uuid.clone()) {
            let cause = format!(
                "GPU {} ({}) needs a reset and no process uses it",
                gpu.index, gpu.uuid
            );
            self.sender.release.request(time, &cause);
        }
    }

    /// Waits up to `patience` for the workers that were in time before, and for at least one answer, unless AMD GPUs have points
    /// of their own. Returns the duration of the slowest answer.
    fn collect(&mut self, patience: Duration) -> Result<Duration, StopReason> {
        if self.lanes.is_empty() {
            return Ok(Duration::ZERO);
        }
        let began = clock::now();
        let has_companion = self.companion.is_some();
        let mut took: Option<Duration> = None;
        let mut deadline = clock::later(began, patience);
        loop {
            let now = clock::now();
            if now >= deadline && (took.is_some() || has_companion) {
                let unanswered = self.lanes.iter_mut().filter(|lane| lane.asked.is_some());
                unanswered.for_each(|lane| lane.late = true);
            }
            let is_awaited = self.lanes.iter().any(|lane| lane.asked.is_some() && !lane.late);
            let wait = match took {
                None if is_awaited || !has_companion => SHORT_POLL_INTERVAL,
                Some(_) if is_awaited => deadline.saturating_duration_since(now),
                // Answers that late workers have sent in the meantime belong to this pass.
                _ => Duration::ZERO,
            };
            match self.replies.recv_timeout(wait) {
                Ok(reply) => {
                    if took.is_none() {
                        // The driver itself may have hung: the others are about to answer as well.
                        deadline = deadline.max(clock::later(clock::now(), patience));
                    }
                    took = took.max(Some(reply.took));
                    self.take(reply)?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(StopReason::DriverGone),
                Err(RecvTimeoutError::Timeout) if self.sender.is_ending() => {
                    return Err(StopReason::StopRequested);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if !is_awaited && (took.is_some() || has_companion) {
                        return Ok(took.unwrap_or_else(|| now.saturating_duration_since(began)));
                    }
                }
            }
        }
    }

    fn take(&mut self, reply: Reply) -> Result<(), StopReason> {
        let Some(lane) = self.lanes.get_mut(reply.index as usize) else {
            return Ok(());
        };
        (lane.asked, lane.late) = (None, false);
        lane.read = Some(reply.read.map_err(|_| StopReason::DriverGone)?);
        Ok(())
    }

    /// Waits until every worker has released NVML: only then is it shut down and can be loaded again. There is no deadline: NVML
    /// is not shut down during a call that hangs, and loading it again would show nothing new.
    fn finish(self) {
        drop(self.lanes);
        drop(self.nvml);
        while !self.sender.is_ending() {
            if let Err(RecvTimeoutError::Disconnected) = self.replies.recv_timeout(SHORT_POLL_INTERVAL) {
                return;
            }
        }
    }
}

impl Lane {
    fn start(
        nvml: &Arc<Nvml>,
        gpu: Arc<Gpu>,
        config: &GpuConfig,
        sender: &EventSender,
        replies: &SyncSender<Reply>,
    ) -> std::io::Result<Self> {
        let (go, asked) = sync_channel(1);
        let worker = Worker {
            known: Arc::clone(&gpu),
            config: config.clone(),
            sender: sender.clone(),
            go: asked,
            replies: replies.clone(),
        };
        let nvml = Arc::clone(nvml);
        thread::Builder::new()
            .name(format!("nvml-gpu-{}", gpu.index))
            .spawn(move || {
                let replies = worker.replies.clone();
                worker.run(&nvml);
                // The end of the last sender shows the session that NVML is no longer in use.
                drop(nvml);
                drop(replies);
            })?;
        Ok(Self {
            go,
            gpu,
            asked: None,
            late: false,
            read: None,
            lost: None,
        })
    }

    /// Requests a pass, unless the worker has not finished an earlier one.
    fn ask(&mut self, now: Instant) {
        if self.asked.is_none() && self.go.try_send(()).is_ok() {
            self.asked = Some(now);
        }
    }

    /// Returns the readings of this pass; without an answer, the last state of the GPU, which hangs after `silent_after`.
    fn tick(&mut self, now: Instant, silent_after: Duration) -> GpuTick {
        if let Some(read) = self.read.take() {
            self.gpu = Arc::clone(&read.gpu);
            let is_lost = self.gpu.trouble.is_some_and(GpuTrouble::may_require_nvml_reload);
            self.lost = is_lost.then(|| self.lost.unwrap_or(now));
            return read;
        }
        let silence = self
            .asked
            .map_or(Duration::ZERO, |asked| now.saturating_duration_since(asked));
        let is_silent = silence >= silent_after;
        if is_silent {
            Gpu::set_trouble(&mut self.gpu, GpuTrouble::Hangs);
        }
        GpuTick::new(&self.gpu, is_silent.then(Vec::new), clock::unix_nanos())
    }
}

impl SessionMemory {
    /// Returns the description of each GPU before it is opened: that of the last session, or else its PCI address.
    fn known(&self, count: u32) -> Vec<Arc<Gpu>> {
        if self.gpus.len() == count as usize {
            return self.gpus.clone();
        }
        let addresses = pci_addresses(Path::new(LISTED));
        let address = |index: u32| {
            let address = addresses.get(index as usize);
            address.filter(|_| addresses.len() == count as usize).cloned()
        };
        let gpu = |index| Gpu::unopened(index, address(index));
        (0..count).map(|index| Arc::new(gpu(index))).collect()
    }

    /// Returns whether a GPU has been lost for so long that NVML is to be loaded again. That is not possible while a call
    /// hangs.
    fn should_reload_nvml(&mut self, lanes: &[Lane], now: Instant) -> bool {
        let Some(since) = lanes.iter().filter_map(|lane| lane.lost).min() else {
            self.patience = Duration::ZERO;
            return false;
        };
        let patience = self
            .patience
            .saturating_mul(2)
            .clamp(MIN_RELOAD_WAIT, MAX_RELOAD_WAIT);
        let hangs = lanes.iter().any(|lane| lane.asked.is_some());
        if hangs || now.saturating_duration_since(since) < patience {
            return false;
        }
        self.patience = patience;
        true
    }
}

/// Returns whether the recovery action of a GPU is a reset, or `None` if this pass did not read it.
fn needs_reset(tick: &GpuTick) -> Option<bool> {
    let readings = tick.readings.as_deref().unwrap_or_default();
    readings.iter().find_map(|reading| match reading.value {
        Sample::State(attribute, action) if attribute.name == GPU_RECOVERY_ACTION.name => {
            Some(matches!(action, "gpu_reset" | "drain_and_reset" | "bus_reset"))
        }
        _ => None,
    })
}

/// Returns the number of GPUs that the kernel lists, or `None` if it has no list.
fn listed() -> Option<usize> {
    fs::read_dir(LISTED).ok().map(Iterator::count)
}

/// Returns the PCI addresses of the GPUs that the kernel lists, as NVML writes and orders them: `00000000:19:00.0`.
fn pci_addresses(listed: &Path) -> Vec<String> {
    let entries = fs::read_dir(listed).into_iter().flatten().flatten();
    // The kernel writes a domain of four digits: 0000:19:00.0.
    let mut addresses: Vec<String> = entries
        .filter_map(|entry| Some(format!("{:0>16}", entry.file_name().to_str()?.to_uppercase())))
        .collect();
    addresses.sort_unstable();
    addresses
}

fn driver(nvml: &Nvml) -> Driver {
    Driver {
        version: nvml.sys_driver_version().unwrap_or_default(),
        nvml_version: nvml.sys_nvml_version().unwrap_or_default(),
        cuda_version: nvml.sys_cuda_driver_version().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::pci_addresses;

    #[test]
    fn unopenable_gpus_get_the_pci_addresses_listed_by_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["0000:db:00.0", "0000:1b:00.0"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert_eq!(
            pci_addresses(folder.path()),
            ["00000000:1B:00.0", "00000000:DB:00.0"]
        );
        assert!(pci_addresses(&folder.path().join("nowhere")).is_empty());
    }
}
