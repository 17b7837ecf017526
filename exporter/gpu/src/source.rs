//! The GPUs as a source of the pipeline, and a one-time survey of them.

use std::{io, sync::Arc, time::Duration};

use pulsetrain_pipeline::{Batch, BoxFuture, CancellationToken, Ingress, Problem, Source, clock};
use tokio::sync::watch;

use crate::{
    DriverRelease, DriverState, Gpu, GpuAttribution, GpuConfig, GpuNotice, GpuTrouble, Inventory,
    driver::{DriverEvent, GpuTick},
    driver_thread::{self, DriverThread},
    imex::{ImexReading, ImexThread},
    record::{self, EventRecorder},
};

/// The interval of the passes of a survey: as short as the performance counters allow (NVML asks for 100 ms).
const SURVEY_INTERVAL: Duration = Duration::from_millis(150);

/// Observes the GPUs of this machine.
///
/// A missing driver is not an error: it is reported once and searched for again from time to time.
pub struct GpuSource {
    config: GpuConfig,
    attribution: Box<dyn GpuAttribution>,
    on_notice: Box<dyn FnMut(GpuNotice) + Send>,
    inventory: watch::Sender<Arc<Inventory>>,
    release: DriverRelease,
}

impl GpuSource {
    /// Creates a source whose series carry the attributes of `attribution`; `on_notice` receives the notices for the operator.
    pub fn new(
        config: GpuConfig,
        attribution: Box<dyn GpuAttribution>,
        on_notice: impl FnMut(GpuNotice) + Send + 'static,
    ) -> Self {
        Self {
            config,
            attribution,
            on_notice: Box::new(on_notice),
            inventory: watch::Sender::new(Arc::default()),
            release: DriverRelease::default(),
        }
    }

    /// Releases the driver when `release` requests it.
    #[must_use]
    pub fn released_by(self, release: DriverRelease) -> Self {
        Self { release, ..self }
    }

    /// Returns a receiver of the current inventory of GPUs.
    pub fn inventory(&self) -> watch::Receiver<Arc<Inventory>> {
        self.inventory.subscribe()
    }
}

impl Source for GpuSource {
    fn name(&self) -> &str {
        record::SOURCE
    }

    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        Box::pin(watch_gpus(*self, ingress, stop))
    }
}

async fn watch_gpus(source: GpuSource, ingress: Ingress, stop: CancellationToken) -> Result<(), Problem> {
    let cannot =
        |what| move |error: io::Error| Problem::new(format!("cannot start a thread to read {what}: {error}"));
    let driver = driver_thread::start(&source.config, source.release.clone());
    let mut driver = driver.map_err(cannot("the GPUs"))?;
    let mut imex = ImexThread::start(&source.config.imex).map_err(cannot("the state of IMEX"))?;
    let mut watching = Watching {
        recording: EventRecorder::new(&source.config, source.attribution),
        stale_after: source.config.stale_after(),
        on_notice: source.on_notice,
        inventory: source.inventory,
        ingress,
    };
    let mut last_event = clock::now();
    let mut expects = true;
    loop {
        let stale = clock::later(last_event, watching.stale_after);
        let event = tokio::select! {
            event = driver.event.recv() => event,
            () = tokio::time::sleep_until(stale), if expects => {
                watching.mark_stale(clock::now().saturating_duration_since(last_event));
                expects = false;
                continue;
            }
            reading = ImexThread::next(&mut imex) => {
                watching.on_imex(reading);
                continue;
            }
            () = stop.cancelled() => break,
        };
        let Some(event) = event else {
            return Err("the thread that reads the GPUs has ended".into());
        };
        if let Some(answers) = watching.on_event(event, &mut driver) {
            last_event = clock::now();
            expects = answers;
        }
    }
    watching.end();
    Ok(())
}

/// The state of the running source: the recorder and its outputs.
struct Watching {
    recording: EventRecorder,
    stale_after: Duration,
    on_notice: Box<dyn FnMut(GpuNotice) + Send>,
    inventory: watch::Sender<Arc<Inventory>>,
    ingress: Ingress,
}

impl Watching {
    /// Records an event and all that follow it in the queue. Returns whether the driver answers, or `None` if the events do not
    /// show it: an event of a GPU comes from another thread than the one that reads.
    fn on_event(&mut self, event: DriverEvent, driver: &mut DriverThread) -> Option<bool> {
        let (mut next, mut answers) = (Some(event), None);
        while let Some(event) = next {
            match event {
                DriverEvent::Tick(_) => answers = Some(true),
                DriverEvent::Absent { .. } => answers = Some(false),
                DriverEvent::Gpu(_) => {}
            }
            self.recording.on_event(event, clock::unix_nanos());
            next = driver.event.try_recv().ok();
        }
        self.send();
        answers
    }

    fn on_imex(&mut self, reading: ImexReading) {
        self.recording.on_imex(reading, clock::unix_nanos());
        self.send();
    }

    fn mark_stale(&mut self, silence: Duration) {
        self.recording.mark_stale(silence.as_secs(), clock::unix_nanos());
        self.send();
    }

    fn end(&mut self) {
        self.recording.end(clock::unix_nanos());
        self.send();
    }

    fn send(&mut self) {
        for notice in self.recording.take_notices() {
            (self.on_notice)(notice);
        }
        let known = self.recording.inventory();
        if !Arc::ptr_eq(&self.inventory.borrow(), known) {
            self.inventory.send_replace(Arc::clone(known));
        }
        for encoded in self.recording.flush(clock::unix_nanos()) {
            // A pipeline that accepts no more batches is about to stop this source.
            let _ = self
                .ingress
                .try_send_or_drop(Batch::new(encoded.signal, encoded.items, encoded.bytes));
        }
    }
}

/// Reads the driver, its GPUs and their unavailable metrics once. Blocks briefly, or for `deadline` if the driver does not
/// answer, which the inventory then shows.
pub fn survey(config: &GpuConfig, deadline: Duration) -> Inventory {
    let silent = || Inventory {
        driver: DriverState::Silent,
        gpus: Vec::new(),
        time_unix_nanos: clock::unix_nanos(),
    };
    let config = GpuConfig {
        interval: SURVEY_INTERVAL,
        // Readings between passes are for the energy of steps.
        energy_interval: 2 * SURVEY_INTERVAL,
        ..config.clone()
    };
    let Ok(mut driver) = driver_thread::start(&config, DriverRelease::default()) else {
        return silent();
    };
    let end = clock::later(clock::now(), deadline);
    let mut seen: Option<Inventory> = None;
    // Performance counters need two samples, so all unavailable metrics are known only after the second pass. A GPU that has not
    // answered by then is waited for.
    let (mut ticks, mut waits) = (0, false);
    while ticks < 2 || waits {
        match driver.recv_until(end) {
            Some(event @ DriverEvent::Tick(_)) => {
                ticks += 1;
                let inventory = inventory_of(&event);
                waits = inventory
                    .gpus
                    .iter()
                    .any(|gpu| gpu.trouble == Some(GpuTrouble::Hangs));
                seen = Some(inventory);
            }
            Some(event) => return inventory_of(&event),
            None => break,
        }
    }
    seen.unwrap_or_else(silent)
}

fn inventory_of(event: &DriverEvent) -> Inventory {
    let time_unix_nanos = clock::unix_nanos();
    match event {
        DriverEvent::Absent(problem) => Inventory {
            driver: DriverState::Absent(problem.clone()),
            gpus: Vec::new(),
            time_unix_nanos,
        },
        DriverEvent::Tick(tick) => Inventory {
            driver: DriverState::Present((*tick.driver).clone()),
            gpus: tick.gpus.iter().map(gpu_of).collect(),
            time_unix_nanos,
        },
        DriverEvent::Gpu(_) => Inventory::default(),
    }
}

/// Returns a GPU for a survey: one that has not answered yet hangs.
fn gpu_of(tick: &GpuTick) -> Gpu {
    let mut gpu = (*tick.gpu).clone();
    if tick.readings.is_none() {
        gpu.trouble = Some(GpuTrouble::Hangs);
    }
    gpu
}
