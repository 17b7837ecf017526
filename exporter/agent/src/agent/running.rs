//! What is at work: sources, sinks and what serves them, each under its name.
//!
//! `parts` starts and ends each of them as a `task`, `change` makes another configuration the one at work, `derived` counts
//! what is computed on the way.

mod change;
mod derived;
mod parts;
mod task;

use std::collections::BTreeMap;

use pulsetrain_pipeline::{Door, Pipeline, SinkReport};
use pulsetrain_sinks::PrometheusStore;
use pulsetrain_sources::logs::Positions;

use self::{derived::Derived, task::Task};
use super::{health::Ready, recorders::Recorders, telemetry::Telemetry, tell};
use crate::{
    config::Config,
    failure::Failure,
    import::resource::{self, Resource},
    topology,
};

/// An agent at work.
pub(super) struct Running {
    config: Config,
    /// What the environment says that all of it is of.
    resource: Resource,
    pipeline: Pipeline,
    door: Door,
    positions: Positions,
    telemetry: Option<Telemetry>,
    sources: BTreeMap<String, Task>,
    servers: BTreeMap<String, Task>,
    /// The series of every page, for the one that takes its place in a reload.
    pages: BTreeMap<String, PrometheusStore>,
    health: Option<Task>,
    /// Sinks that could not be opened, and why.
    missing: BTreeMap<String, String>,
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
        let mut running = Self {
            resource,
            pipeline,
            door,
            positions,
            telemetry,
            sources: BTreeMap::new(),
            servers: BTreeMap::new(),
            pages: BTreeMap::new(),
            health: None,
            missing: BTreeMap::new(),
            ready: Ready::starting(),
            recorders: Recorders::default(),
            config,
        };
        running.start_health().await?;
        for (name, sink) in running.config.sinks.clone().iter() {
            running
                .start_sink(name, sink)
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

    /// Writes what the flight recorders hold; says where, or why not.
    pub(super) async fn record(&self) -> Vec<String> {
        self.recorders.save().await
    }

    /// Ends everything: sources first, then what is queued has its time. Says what was lost, and whether anything was.
    pub(super) async fn end(mut self) -> bool {
        self.ready.unset("it ends");
        for name in self.sources.keys().cloned().collect::<Vec<_>>() {
            self.end_source(&name).await;
        }
        if let Some(telemetry) = self.telemetry.take() {
            telemetry.end().await;
        }
        drop(self.door);
        let reports = self.pipeline.drain(self.config.limits.drain.0).await;
        if let Err(error) = self.positions.save() {
            tell(&error.to_string());
        }
        for server in self.servers.into_values().chain(self.health) {
            server.end().await;
        }
        reports.iter().map(report).fold(false, |lost, one| lost | one)
    }
}

/// Says what a sink lost at its end, and whether it did.
fn report(ended: &SinkReport) -> bool {
    let name = &ended.counts.name;
    for dropped in &ended.counts.dropped {
        let message = dropped.message.as_deref().unwrap_or_default();
        let reason = dropped.reason.as_str().replace('_', " ");
        tell(&format!(
            "{name} lost {} items ({reason}) {message}",
            dropped.items
        ));
    }
    if let Err(error) = &ended.finished {
        tell(&format!("{name}: {error}"));
    }
    ended.counts.dropped_items() > 0 || ended.finished.is_err()
}
