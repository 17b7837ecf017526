//! The running parts: sources, sinks and their servers, each under its name.
//!
//! `parts` starts and ends each of them as a `task`, `change` applies a new configuration, `derived` counts the derived
//! signals.

mod change;
mod derived;
mod disk_queues;
mod draining;
mod parts;
mod task;

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_gpu::DriverRelease;
use pulsetrain_pipeline::{Ingress, Ledger, MemoryUse, Pipeline, Problem, SinkReport, clock};
use pulsetrain_sinks::FileControl;
use pulsetrain_tail::{Checkpointer, Claims};

use tokio::task::JoinHandle;

pub(crate) use self::disk_queues::{open_disk_queue, queue_folder_name};
use self::{derived::Derived, disk_queues::DiskQueues, draining::DrainingSinks, task::Task};
use super::{
    clock_watch::ClockWatch,
    health::{Readiness, Status},
    recorders::Recorders,
    sink_watch::SinkWatch,
    telemetry::Telemetry,
};
use crate::{
    config::Config,
    failure::Failure,
    import::resource::{self, Resource},
    log::{self, Subject},
    losses,
    topology::{self, RetainedStores, state_folder},
};

/// The interval at which the state of the sinks is read.
const SINK_CHECK: Duration = Duration::from_millis(200);

/// A running agent.
pub(super) struct Running {
    config: Config,
    /// The resource of the agent, from the environment.
    resource: Resource,
    pipeline: Pipeline,
    ingress: Ingress,
    checkpointer: Checkpointer,
    disk_queues: DiskQueues,
    /// The log that records each rank, over all sources.
    claims: Claims,
    telemetry: Option<Telemetry>,
    sources: BTreeMap<String, Task>,
    servers: BTreeMap<String, Task>,
    /// The stores of every page, which its successor continues in a reload.
    pages: BTreeMap<String, RetainedStores>,
    /// The files of the sinks; some may be closed.
    files: BTreeMap<String, FileControl>,
    health: Option<Task>,
    /// The sinks that are not open yet, each with its error if an attempt failed. Their queues hold the batches in the
    /// meantime.
    unopened: BTreeMap<String, Option<Problem>>,
    /// The sources that are not open yet, each with its error if an attempt failed.
    unopened_sources: BTreeMap<String, Option<Problem>>,
    /// The sinks that a reload removed, until they are drained.
    leaving: DrainingSinks,
    watching_sinks: JoinHandle<()>,
    ready: Readiness,
    status: Status,
    recorders: Recorders,
    gpu_release: DriverRelease,
    /// The memory of derived signals, if there are any.
    derive_memory: Option<MemoryUse>,
}

impl Running {
    /// Starts all parts of the configuration.
    ///
    /// # Errors
    /// Returns an error if a part cannot be opened or cannot listen.
    pub(super) async fn start(config: Config) -> Result<Self, Failure> {
        state_folder::check(&config)?;
        let checkpointer = state_folder::checkpointer(&config)?;
        if let Some(notice) = checkpointer.notice() {
            log::warn(Subject::Program, notice);
        }
        let resource = resource::from_env_or_without(
            |name| std::env::var(name).ok(),
            |message| {
                log::warn(Subject::Program, message);
            },
        );
        let derived = Derived::default();
        let builder = Pipeline::builder().config(config.limits.task_config());
        let (builder, derive_memory) =
            topology::derived(builder, &config.derive, &checkpointer, derived.watch())?;
        let (pipeline, ingress) = builder.start();
        let telemetry = config
            .telemetry
            .enabled
            .then(|| Telemetry::start(&config.telemetry, &resource, pipeline.ledger().clone(), &ingress));
        if let Some(telemetry) = &telemetry {
            derived.count_by(telemetry.watch_derived("derive"));
        }
        let ready = Readiness::starting();
        if state_folder::state_folder(&config).is_none() {
            let missing = state_folder::missing();
            log::warn(Subject::Program, &missing);
            ready.warn(missing);
        }
        let lags = telemetry.as_ref().map(Telemetry::source_lags);
        let status = Status::new(pipeline.ledger().clone(), move || {
            lags.as_ref().map(|lags| lags()).unwrap_or_default()
        });
        let mut running = Self {
            watching_sinks: tokio::spawn(watch_sinks(pipeline.ledger().clone(), ready.clone())),
            resource,
            pipeline,
            ingress,
            checkpointer,
            disk_queues: DiskQueues::default(),
            claims: Claims::default(),
            telemetry,
            sources: BTreeMap::new(),
            servers: BTreeMap::new(),
            pages: BTreeMap::new(),
            files: BTreeMap::new(),
            health: None,
            unopened: BTreeMap::new(),
            unopened_sources: BTreeMap::new(),
            leaving: DrainingSinks::default(),
            ready,
            status,
            recorders: Recorders::default(),
            gpu_release: DriverRelease::default(),
            derive_memory,
            config,
        };
        running.start_health()?;
        running.open_disk_queues().await?;
        for (name, sink) in running.config.sinks.clone().iter() {
            running.expect_sink(name, sink);
            match running.open_sink(name, sink).await {
                // The sink stays expected, and its queue holds what arrives.
                Err(error) if error.is_missing_file() => {}
                Err(error) => return Err(Failure::failed(format!("the sink {name}: {error}"))),
                Ok(()) => {}
            }
        }
        for (name, source) in running.config.sources.clone().iter() {
            running
                .start_source(name, source)
                .map_err(|error| Failure::failed(format!("the source {name}: {error}")))?;
        }
        running.start_gpus();
        // Reports the sinks whose files are missing.
        running.open_all().await;
        Ok(running)
    }

    /// Opens the disk queues of all sinks.
    async fn open_disk_queues(&mut self) -> Result<(), Failure> {
        let root = self.checkpointer.state_file(disk_queues::FOLDER);
        let failed = self.disk_queues.open(&self.config, root.as_deref()).await;
        self.disk_queues.report_orphans(root.as_deref());
        match failed.first() {
            Some((name, error)) => Err(Failure::failed(format!("the sink {name}: {error}"))),
            None => Ok(()),
        }
    }

    /// Returns the active configuration.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Records whether the last configuration that was read is active.
    pub(super) fn record_reload(&self, has_succeeded: bool) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.record_reload(has_succeeded);
        }
    }

    /// Reopens the files that another program moved, and reports them.
    pub(super) async fn reopen_files(&self) {
        for (name, file) in &self.files {
            let file = file.clone();
            let reopened = tokio::task::spawn_blocking(move || file.reopen()).await;
            match reopened {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => log::info(
                    Subject::Sink(name),
                    "opened the file again: another program moved it",
                ),
                Ok(Err(error)) => log::error(Subject::Sink(name), error),
                Err(panic) => log::error(Subject::Sink(name), panic),
            }
        }
    }

    /// Saves the flight recorders, and logs the paths or the errors.
    pub(super) async fn record(&self) {
        self.recorders.save().await;
    }

    /// Ends all parts: the sources first, then the queues are drained. Reports the losses, and returns whether there were
    /// any.
    pub(super) async fn end(mut self) -> bool {
        self.ready.unset("it ends");
        // From here on, the reports at the end list every loss.
        self.watching_sinks.abort();
        self.end_sources(self.sources.keys().cloned().collect()).await;
        if let Some(telemetry) = self.telemetry.take() {
            telemetry.end().await;
        }
        drop(self.ingress);
        let (reports, left) = tokio::join!(
            self.pipeline.drain(self.config.limits.drain.0),
            self.leaving.finish()
        );
        if let Err(error) = self.checkpointer.save() {
            log::error(Subject::Program, error);
        }
        for server in self.servers.into_values().chain(self.health) {
            server.end().await;
        }
        reports.iter().map(report).fold(left, |lost, one| lost | one)
    }
}

/// Logs the failing sinks, and publishes them for `/readyz`.
async fn watch_sinks(ledger: Ledger, ready: Readiness) {
    let (mut watch, mut clock_watch) = (SinkWatch::default(), ClockWatch::default());
    loop {
        tokio::time::sleep(SINK_CHECK).await;
        if let Some(step) = clock_watch.observe(clock::unix_now(), clock::now()) {
            log::warn(Subject::Program, step);
            ready.record_clock_step();
        }
        let sinks = ledger.snapshot();
        for change in watch.observe(&sinks, clock::now()) {
            log::write(change.level, Subject::Sink(&change.sink), change.message);
        }
        let failing = sinks.iter().filter_map(|counts| {
            let failure = counts.any_failure()?;
            Some((counts.name.clone(), failure.problem.clone()))
        });
        ready.set_failing(failing.collect());
    }
}

/// Reports the losses of a sink at its end, and returns whether there were any.
fn report(ended: &SinkReport) -> bool {
    let sink = Subject::Sink(&ended.counts.name);
    losses::lost_by_cause(&ended.counts).for_each(|message| log::error(sink, message));
    losses::unsupported_signals(&ended.counts).for_each(|message| log::warn(sink, message));
    if let Some(message) = losses::left_on_disk(&ended.counts) {
        log::info(sink, message);
    }
    if let Err(error) = &ended.finished {
        log::error(sink, error);
    }
    ended.counts.lost_items() > 0 || ended.finished.is_err()
}
