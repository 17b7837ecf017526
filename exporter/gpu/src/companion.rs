//! AMD GPUs in a machine with NVIDIA GPUs: a separate thread reads them, and each pass over the NVIDIA GPUs carries its last
//! readings.
//!
//! An AMD file that blocks does not delay the NVIDIA GPUs. The indexes of the AMD GPUs follow those of the NVIDIA GPUs.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::sync_channel,
    },
    thread::{self, Thread},
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};

use crate::{
    Driver, Gpu, GpuConfig, GpuTrouble,
    amd::AmdGpus,
    driver::{GpuTick, StopReason, Tick, park_until},
};

/// The longest wait for the first pass: its GPUs are observed from the first pass on.
const FIRST_PASS: Duration = Duration::from_millis(500);
/// The delay before a new search for GPUs that are gone.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The handle of the thread that reads AMD GPUs. Dropping it ends the thread, but does not wait for it.
pub(crate) struct Companion {
    latest: Arc<Mutex<Latest>>,
    over: Arc<AtomicBool>,
    thread: Thread,
    stale_after: Duration,
}

/// The last pass.
struct Latest {
    driver: Arc<Driver>,
    gpus: Vec<GpuTick>,
    at: Instant,
}

impl Companion {
    /// Starts to read the AMD GPUs; `None` if there are none. `first_index` is the index of the first one.
    pub(crate) fn start(config: &GpuConfig, first_index: u32) -> Option<Self> {
        let gpus = AmdGpus::find(&config.sysfs, first_index)?;
        let latest = Arc::new(Mutex::new(Latest {
            driver: Arc::default(),
            gpus: Vec::new(),
            at: clock::now(),
        }));
        let over = Arc::<AtomicBool>::default();
        let (first_pass, passed) = sync_channel(1);
        let reader = Reader {
            config: config.clone(),
            first_index,
            latest: Arc::clone(&latest),
            over: Arc::clone(&over),
        };
        let thread = thread::Builder::new()
            .name("amd-gpus".to_owned())
            .spawn(move || {
                reader.read(gpus, || {
                    // Only the first pass is waited for.
                    let _ = first_pass.try_send(());
                });
            })
            .ok()?;
        let _ = passed.recv_timeout(FIRST_PASS);
        Some(Self {
            latest,
            over,
            thread: thread.thread().clone(),
            stale_after: config.stale_after(),
        })
    }

    /// Returns the readings since the last call; GPUs without a new pass have no readings. GPUs whose thread has not made a pass
    /// for too long hang.
    pub(crate) fn take(&self) -> Vec<GpuTick> {
        let mut latest = lock(&self.latest);
        let is_silent = clock::now().saturating_duration_since(latest.at) >= self.stale_after;
        let driver = Arc::clone(&latest.driver);
        let taken = latest.gpus.iter_mut().map(|tick| {
            if is_silent {
                Gpu::set_trouble(&mut tick.gpu, GpuTrouble::Hangs);
            }
            let readings = tick.readings.take().or_else(|| is_silent.then(Vec::new));
            GpuTick {
                driver: Some(Arc::clone(&driver)),
                ..GpuTick::new(&tick.gpu, readings, tick.time_unix_nanos)
            }
        });
        taken.collect()
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// The state of the thread.
struct Reader {
    config: GpuConfig,
    first_index: u32,
    latest: Arc<Mutex<Latest>>,
    over: Arc<AtomicBool>,
}

impl Reader {
    fn read(&self, gpus: AmdGpus, mut on_pass: impl FnMut()) {
        let mut found = Some(gpus);
        while !self.is_over() {
            match found.take() {
                Some(gpus) => {
                    gpus.read(
                        &self.config,
                        |tick| {
                            self.keep(tick);
                            on_pass();
                        },
                        |due| self.wait(due).then_some(StopReason::StopRequested),
                    );
                }
                None => {
                    lock(&self.latest).gpus.clear();
                    self.wait(clock::later(clock::now(), LOOK_AGAIN));
                }
            }
            found = AmdGpus::find(&self.config.sysfs, self.first_index);
        }
    }

    fn keep(&self, tick: Tick) {
        *lock(&self.latest) = Latest {
            driver: tick.driver,
            gpus: tick.gpus,
            at: clock::now(),
        };
    }

    /// Waits until `due` or the end. Returns whether the end was requested.
    fn wait(&self, due: Instant) -> bool {
        park_until(due, || self.is_over());
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

fn lock(latest: &Mutex<Latest>) -> MutexGuard<'_, Latest> {
    latest.lock().unwrap_or_else(PoisonError::into_inner)
}
