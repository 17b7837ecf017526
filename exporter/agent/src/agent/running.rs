//! What is at work: sources, sinks and what serves them, each under its name.
//!
//! `parts` starts and ends each of them as a `task`, `change` makes another configuration the one at work, `derived` counts
//! what is computed on the way.

mod change;
mod derived;
mod leaving;
mod parts;
mod task;

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_pipeline::{Door, Ledger, Pipeline, SinkReport, clock};
use pulsetrain_sinks::PrometheusStore;
use pulsetrain_sources::logs::{Claims, Positions};

use tokio::task::JoinHandle;

use self::{derived::Derived, leaving::Leaving, task::Task};
use super::{health::Ready, recorders::Recorders, sink_watch::SinkWatch, telemetry::Telemetry, tell};
use crate::{
    config::Config,
    failure::Failure,
    import::resource::{self, Resource},
    losses, topology,
};

/// How often the state of the sinks is read.
const SINK_CHECK: Duration = Duration::from_millis(200);

/// An agent at work.
pub(super) struct Running {
    config: Config,
    /// What the environment says that all of it is of.
    resource: Resource,
    pipeline: Pipeline,
    door: Door,
    positions: Positions,
    /// Which log has recorded which rank, of all sources.
    claims: Claims,
    telemetry: Option<Telemetry>,
    sources: BTreeMap<String, Task>,
    servers: BTreeMap<String, Task>,
    /// The series of every page, for the one that takes its place in a reload.
    pages: BTreeMap<String, PrometheusStore>,
    health: Option<Task>,
    /// Sinks that are not open yet, and why where that failed. Their queues hold what arrives meanwhile.
    unopened: BTreeMap<String, Option<String>>,
    /// Sources that are not open yet, and why where that failed.
    unopened_sources: BTreeMap<String, Option<String>>,
    /// Sinks that a reload removed, while they are drained.
    leaving: Leaving,
    watching_sinks: JoinHandle<()>,
    ready: Ready,
    recorders: Recorders,
}

impl Running {
    /// Starts everything that the configuration names.
    ///
    /// # Errors
    /// What cannot be opened or listened on.
    pub(super) async fn start(config: Config) -> Result<Self, Failure> {
        let positions = topology::positions(&config).map_err(Failure::failed)?;
        if let Some(notice) = positions.notice() {
            tell(&notice.to_string());
        }
        let resource = resource::from_env_or_without(|name| std::env::var(name).ok(), tell);
        let derived = Derived::default();
        let builder = Pipeline::builder().config(config.limits.pipeline());
        let builder = topology::derived(builder, &config.derive, &positions, derived.watch())?;
        let (pipeline, door) = builder.start();
        let telemetry = config.telemetry.enabled.then(|| {
            Telemetry::start(
                &config.telemetry,
                &config.limits,
                &resource,
                pipeline.ledger().clone(),
                &door,
            )
        });
        if let Some(telemetry) = &telemetry {
            derived.count_by(telemetry.watch_derived("derive"));
        }
        let ready = Ready::starting();
        let mut running = Self {
            watching_sinks: tokio::spawn(watch_sinks(pipeline.ledger().clone(), ready.clone())),
            resource,
            pipeline,
            door,
            positions,
            claims: Claims::default(),
            telemetry,
            sources: BTreeMap::new(),
            servers: BTreeMap::new(),
            pages: BTreeMap::new(),
            health: None,
            unopened: BTreeMap::new(),
            unopened_sources: BTreeMap::new(),
            leaving: Leaving::default(),
            ready,
            recorders: Recorders::default(),
            config,
        };
        running.start_health().await?;
        for (name, sink) in running.config.sinks.clone().iter() {
            running.expect_sink(name, sink);
            running
                .open_sink(name, sink)
                .await
                .map_err(|error| Failure::failed(format!("the sink {name}: {error}")))?;
        }
        for (name, source) in running.config.sources.clone().iter() {
            running
                .start_source(name, source)
                .map_err(|error| Failure::failed(format!("the source {name}: {error}")))?;
        }
        running.start_gpus();
        running.ready.set();
        Ok(running)
    }

    /// The configuration that is at work.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Notes whether the configuration that was read last is at work.
    pub(super) fn note_reload(&self, has_succeeded: bool) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.note_reload(has_succeeded);
        }
    }

    /// Writes what the flight recorders hold; says where, or why not.
    pub(super) async fn record(&self) -> Vec<String> {
        self.recorders.save().await
    }

    /// Ends everything: sources first, then what is queued has its time. Says what was lost, and whether anything was.
    pub(super) async fn end(mut self) -> bool {
        self.ready.unset("it ends");
        // From here on the reports at the end name every loss.
        self.watching_sinks.abort();
        self.end_sources(self.sources.keys().cloned().collect()).await;
        if let Some(telemetry) = self.telemetry.take() {
            telemetry.end().await;
        }
        drop(self.door);
        let (reports, left) = tokio::join!(
            self.pipeline.drain(self.config.limits.drain.0),
            self.leaving.finish()
        );
        if let Err(error) = self.positions.save() {
            tell(&error.to_string());
        }
        for server in self.servers.into_values().chain(self.health) {
            server.end().await;
        }
        reports.iter().map(report).fold(left, |lost, one| lost | one)
    }
}

/// Names the sinks that fail, in the log and for `/readyz`.
async fn watch_sinks(ledger: Ledger, ready: Ready) {
    let mut watch = SinkWatch::default();
    loop {
        tokio::time::sleep(SINK_CHECK).await;
        let sinks = ledger.snapshot();
        for line in watch.observe(&sinks, clock::now()) {
            tell(&line);
        }
        let failing = sinks
            .into_iter()
            .filter_map(|counts| Some((counts.name, counts.trouble?.message)));
        ready.set_failing(failing.collect());
    }
}

/// Says what a sink lost at its end, and whether it did.
fn report(ended: &SinkReport) -> bool {
    let name = &ended.counts.name;
    losses::messages(&ended.counts)
        .iter()
        .for_each(|message| tell(message));
    if let Err(error) = &ended.finished {
        tell(&format!("{name}: {error}"));
    }
    ended.counts.lost_items() > 0 || ended.finished.is_err()
}
