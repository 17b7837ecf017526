//! A session: NVML is loaded, and read in passes until it has gone or has to be loaded anew.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use nvml_wrapper::Nvml;
use pulsetrain_pipeline::clock::{self, Instant};

use super::{Heard, Telling, Tick, device, ffi, probe::SELDOM, watched::Watched, xid};
use crate::nvml::{Driver, Gpu, NvmlConfig};

/// Where the kernel lists the GPUs of the driver, also those that came after NVML was loaded.
const LISTED: &str = "/proc/driver/nvidia/gpus";

/// How long a GPU may not answer until NVML is loaded anew to look whether it does then: the first time, and at most.
const PATIENCE: Duration = Duration::from_secs(15);
const PATIENCE_AT_MOST: Duration = Duration::from_secs(300);

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nobody listens any more.
    Told,
    /// The driver has gone.
    Gone,
    /// The driver has to be loaded anew to be seen as it is now.
    LoadAgain,
}

/// What is remembered from one session to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The GPUs, as they were seen last.
    gpus: Vec<Arc<Gpu>>,
    /// How long a lost GPU was last waited for.
    patience: Duration,
}

/// Reads the driver until it has gone.
pub(super) fn read(nvml: &Nvml, config: &NvmlConfig, telling: &Telling, memory: &mut Memory) -> Ended {
    let Ok(found) = device::find(nvml) else {
        return Ended::Gone;
    };
    let mut watched: Vec<Watched<'_>> = found
        .into_iter()
        .enumerate()
        .map(|(index, device)| match device {
            Some(device) => Watched::new(device, index as u32, config),
            None => Watched::without_handle(index as u32, memory.gpus.get(index)),
        })
        .collect();
    let handles: Vec<_> = watched.iter().map(Watched::device).collect();
    let (events, refused) = xid::register(nvml, &handles);
    for (gpu, refused) in watched.iter_mut().zip(refused) {
        gpu.settle_events(refused);
    }
    let known: Vec<_> = watched
        .iter()
        .filter_map(|gpu| Some((ffi::address(gpu.device()?), gpu.gpu().uuid.clone())))
        .collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        if let Some(events) = events {
            let (over, known) = (&over, &known);
            // Without the thread the codes are missing; all else is there.
            let _ = thread::Builder::new()
                .name("nvml-xid".to_owned())
                .spawn_scoped(scope, move || xid::listen(nvml, &events, known, telling, over));
        }
        let ended = read_passes(nvml, config, telling, &mut watched, memory);
        over.store(true, Ordering::Relaxed);
        ended
    })
}

fn read_passes<'nvml>(
    nvml: &'nvml Nvml,
    config: &NvmlConfig,
    telling: &Telling,
    watched: &mut [Watched<'nvml>],
    memory: &mut Memory,
) -> Ended {
    let driver = Arc::new(driver(nvml));
    let listed = listed();
    let (mut due, mut counted) = (clock::now(), clock::now());
    loop {
        let (time_unix_nanos, began) = (clock::unix_now().as_nanos() as u64, clock::now());
        let passes = watched.iter_mut().map(|gpu| gpu.read(nvml, config));
        let Ok(gpus) = passes.collect::<Result<Vec<_>, _>>() else {
            return Ended::Gone;
        };
        let took = clock::now().saturating_duration_since(began);
        if took >= config.stale_after() / 2 {
            // It hung, and all that it had said may have been ended meanwhile: patience is counted from the pass before.
            watched.iter_mut().for_each(Watched::ask_all_again);
        }
        telling.tell(Heard::Tick(Box::new(Tick {
            driver: Arc::clone(&driver),
            gpus,
            time_unix_nanos,
            took,
        })));
        memory.gpus = watched.iter().map(|gpu| Arc::clone(gpu.gpu())).collect();
        let now = clock::now();
        if memory.is_impatient(watched, now) {
            return Ended::LoadAgain;
        }
        if now.saturating_duration_since(counted) >= SELDOM {
            counted = now;
            if nvml
                .device_count()
                .is_ok_and(|count| count as usize != watched.len())
                || self::listed() != listed
            {
                return Ended::LoadAgain;
            }
        }
        // A pass that took too long makes the next one late, not many.
        due = clock::later(due, config.interval).max(now);
        telling.pause_until(due);
        if telling.is_ending() {
            return Ended::Told;
        }
    }
}

impl Memory {
    /// Whether a GPU has not answered for so long that a new look is worth its price.
    fn is_impatient(&mut self, watched: &[Watched<'_>], now: Instant) -> bool {
        let Some(since) = watched.iter().filter_map(Watched::lost).min() else {
            self.patience = Duration::ZERO;
            return false;
        };
        let patience = self.patience.saturating_mul(2).clamp(PATIENCE, PATIENCE_AT_MOST);
        if now.saturating_duration_since(since) < patience {
            return false;
        }
        self.patience = patience;
        true
    }
}

/// How many GPUs the kernel lists; nothing where it does not.
fn listed() -> Option<usize> {
    fs::read_dir(LISTED).ok().map(Iterator::count)
}

fn driver(nvml: &Nvml) -> Driver {
    Driver {
        version: nvml.sys_driver_version().unwrap_or_default(),
        nvml_version: nvml.sys_nvml_version().unwrap_or_default(),
        cuda_version: nvml.sys_cuda_driver_version().unwrap_or_default(),
    }
}
