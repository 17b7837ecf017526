//! The GPUs as a source of the pipeline, and a single look at them.

use std::{sync::Arc, time::Duration};

use pulsetrain_pipeline::{BoxFuture, Door, Source, Stop, clock};
use tokio::sync::watch;

use super::{
    Belonging, DriverState, GpuNotice, Inventory, NvmlConfig,
    driver::{self, Heard},
};

/// How often the driver is read for a survey: as often as its performance counters allow (NVML asks for 100 ms).
const SURVEY_INTERVAL: Duration = Duration::from_millis(150);

/// Watches the GPUs of this machine.
///
/// It never fails: where there is no driver it says so once and looks again from time to time.
pub struct NvmlSource {
    config: NvmlConfig,
    belonging: Box<dyn Belonging>,
    on_notice: Box<dyn FnMut(GpuNotice) + Send>,
    inventory: watch::Sender<Arc<Inventory>>,
}

impl NvmlSource {
    /// A source whose series carry what `belonging` knows; `on_notice` is told what people should know.
    pub fn new(
        config: NvmlConfig,
        belonging: Box<dyn Belonging>,
        on_notice: impl FnMut(GpuNotice) + Send + 'static,
    ) -> Self {
        Self {
            config,
            belonging,
            on_notice: Box::new(on_notice),
            inventory: watch::Sender::new(Arc::default()),
        }
    }

    /// What GPUs there are, from now on.
    pub fn inventory(&self) -> watch::Receiver<Arc<Inventory>> {
        self.inventory.subscribe()
    }
}

impl Source for NvmlSource {
    fn name(&self) -> &str {
        "nvml"
    }

    fn run(self: Box<Self>, door: Door, stop: Stop) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(watch_gpus(*self, door, stop))
    }
}

async fn watch_gpus(mut source: NvmlSource, _door: Door, stop: Stop) -> Result<(), String> {
    let mut driver = driver::start(&source.config)?;
    loop {
        let heard = tokio::select! {
            heard = driver.heard.recv() => heard,
            () = stop.wait() => return Ok(()),
        };
        let Some(heard) = heard else {
            return Err("the thread that reads the GPUs has ended".to_owned());
        };
        let inventory = Arc::new(inventory_of(&heard));
        if source.inventory.borrow().driver != inventory.driver
            && let Some(notice) = GpuNotice::of(&inventory.driver, &inventory.gpus)
        {
            (source.on_notice)(notice);
        }
        source.belonging.observe(&inventory);
        source.inventory.send_replace(inventory);
    }
}

/// Looks once at the driver and its GPUs, and what they tell and do not tell; blocks for a moment, and for `deadline` where
/// the driver does not answer, which the answer then says.
pub fn survey(config: &NvmlConfig, deadline: Duration) -> Inventory {
    let silent = || Inventory {
        driver: DriverState::Silent,
        gpus: Vec::new(),
        time_unix_nanos: clock::unix_now().as_nanos() as u64,
    };
    let config = NvmlConfig {
        interval: SURVEY_INTERVAL,
        ..config.clone()
    };
    let Ok(mut driver) = driver::start(&config) else {
        return silent();
    };
    let end = clock::later(clock::now(), deadline);
    let mut seen: Option<Inventory> = None;
    // The performance counters need two readings: what is unavailable is known with the second.
    for _ in 0..2 {
        match driver.recv_until(end) {
            Some(heard @ Heard::Tick(_)) => seen = Some(inventory_of(&heard)),
            Some(heard) => return inventory_of(&heard),
            None => break,
        }
    }
    seen.unwrap_or_else(silent)
}

fn inventory_of(heard: &Heard) -> Inventory {
    let time_unix_nanos = clock::unix_now().as_nanos() as u64;
    match heard {
        Heard::Absent { why, advice } => Inventory {
            driver: DriverState::Absent {
                why: why.clone(),
                advice,
            },
            gpus: Vec::new(),
            time_unix_nanos,
        },
        Heard::Tick(tick) => Inventory {
            driver: DriverState::Present((*tick.driver).clone()),
            gpus: tick.gpus.iter().map(|gpu| (**gpu).clone()).collect(),
            time_unix_nanos,
        },
    }
}
