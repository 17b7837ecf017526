//! What is at work: sources, sinks and what serves them, each under its name, and how one configuration becomes another.

use std::{
    collections::BTreeMap,
    fmt::Display,
    sync::{Arc, OnceLock},
    time::Duration,
};

use pulsetrain_pipeline::{Batch, Door, Pipeline, SinkReport, Source, StopRaiser, run_sources};
use pulsetrain_sinks::{PrometheusStore, SinkError};
use pulsetrain_sources::{SourceError, logs::Positions};
use tokio::task::JoinHandle;

use super::{
    health::{self, Ready},
    recorders::Recorders,
    reload::needs_restart,
    telemetry::{NamedSink, Telemetry},
    tell,
};
use crate::{
    config::{Config, GPUS, Named, SinkConfig, SourceConfig},
    failure::Failure,
    import::resource::{self, Resource},
    topology::{self, BuiltSink},
};

/// How long something has to end that is told to.
const END: Duration = Duration::from_secs(5);

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

/// Counts what is computed on the way, as soon as there is something to count with: telemetry goes through the pipeline
/// that it counts.
#[derive(Clone, Default)]
struct Derived(Arc<OnceLock<Counting>>);

type Counting = Box<dyn Fn(&Batch) + Send + Sync>;

impl Derived {
    fn watch(&self) -> impl Fn(&Batch) + Send + 'static {
        let counter = Arc::clone(&self.0);
        move |batch| {
            if let Some(count) = counter.get() {
                count(batch);
            }
        }
    }

    fn count_by(&self, count: impl Fn(&Batch) + Send + Sync + 'static) {
        // Said once, at the start.
        let _ = self.0.set(Box::new(count));
    }
}

/// Something that runs until it is told to end.
struct Task {
    stop: StopRaiser,
    done: JoinHandle<()>,
}

impl Task {
    fn spawn(stop: StopRaiser, work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self {
            stop,
            done: tokio::spawn(work),
        }
    }

    /// Ends it; what does not end in time is left behind.
    async fn end(mut self) {
        self.stop.raise();
        if tokio::time::timeout(END, &mut self.done).await.is_err() {
            self.done.abort();
        }
    }
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

    /// Makes another configuration the one at work. What is the same in both goes on undisturbed.
    pub(super) async fn change(&mut self, new: Config) {
        self.ready.unset("the configuration changes");
        let old = std::mem::replace(&mut self.config, new.clone());
        let missing = std::mem::take(&mut self.missing);
        for name in gone(&old.sources, &new.sources) {
            self.end_source(&name).await;
        }
        // What the sources that go on bring meanwhile waits, so that no sink misses it.
        let held = self.positions.hold();
        if old.gpu != new.gpu {
            self.end_source(GPUS).await;
        }
        for name in gone(&old.sinks, &new.sinks) {
            self.end_sink(&name).await;
        }
        self.pages.retain(|name, _| new.sinks.0.contains_key(name));
        for (name, sink) in new.sinks.iter() {
            if missing.contains_key(name) || old.sinks.0.get(name) != Some(sink) {
                self.try_sink(name, sink).await;
            }
        }
        drop(held);
        for (name, source) in new
            .sources
            .iter()
            .filter(|(name, source)| old.sources.0.get(*name) != Some(source))
        {
            if let Err(error) = self.start_source(name, source) {
                tell(&format!(
                    "goes on without the source {name} until the next reload: {error}"
                ));
            }
        }
        if old.gpu != new.gpu {
            self.start_gpus();
        }
        self.change_ourselves(&old, &new).await;
        self.tell_readiness();
    }

    /// Whether there are sinks that could not be opened, and are tried again.
    pub(super) fn misses_sinks(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Tries the sinks again that could not be opened.
    pub(super) async fn try_missing_sinks(&mut self) {
        let held = self.positions.hold();
        for (name, told) in std::mem::take(&mut self.missing) {
            let Some(sink) = self.config.sinks.0.get(&name).cloned() else {
                continue;
            };
            match self.start_sink(&name, &sink).await {
                Ok(()) => tell(&format!("the sink {name} is there now")),
                Err(_) => drop(self.missing.insert(name, told)),
            }
        }
        drop(held);
        self.tell_readiness();
    }

    async fn try_sink(&mut self, name: &str, sink: &SinkConfig) {
        if let Err(error) = self.start_sink(name, sink).await {
            let why = format!("the sink {name}: {error}");
            tell(&format!("goes on without {why}; it is tried again every second"));
            self.missing.insert(name.to_owned(), why);
        }
    }

    /// Changes what is about the agent itself, as far as that goes without a restart.
    async fn change_ourselves(&mut self, old: &Config, new: &Config) {
        if old.health != new.health {
            if let Some(health) = self.health.take() {
                health.end().await;
            }
            if let Err(error) = self.start_health().await {
                tell(&format!(
                    "goes on without health checks until the next reload: {error}"
                ));
            }
        }
        if let Some(telemetry) = self.telemetry.as_mut().filter(|_| old.telemetry != new.telemetry) {
            telemetry.change_interval(new.telemetry.interval.0);
        }
        let keys = needs_restart(old, new);
        if !keys.is_empty() {
            tell(&format!("restart the agent to change {}", keys.join(", ")));
        }
    }

    fn tell_readiness(&self) {
        match self.missing.values().next() {
            None => self.ready.set(),
            Some(why) => self.ready.unset(why.as_str()),
        }
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

    async fn start_health(&mut self) -> Result<(), Failure> {
        let health = &self.config.health;
        if health.enabled {
            let stop = StopRaiser::new();
            let served = health::serve(
                *health.listen,
                self.ready.clone(),
                self.recorders.clone(),
                stop.stop(),
            )
            .await
            .map_err(|error| {
                Failure::failed(format!(
                    "cannot listen on {}: {error}; choose another port with health.listen",
                    health.listen.value
                ))
            })?;
            self.health = Some(Task::spawn(stop, served));
        }
        Ok(())
    }

    async fn start_sink(&mut self, name: &str, config: &SinkConfig) -> Result<(), SinkError> {
        let stop = StopRaiser::new();
        let built = topology::build_sink(
            config,
            &self.config.perfetto,
            &self.positions,
            self.pages.get(name).cloned(),
            stop.stop(),
        )
        .await?;
        let BuiltSink {
            sink,
            server,
            series,
            recorder,
        } = built;
        if let Some(recorder) = recorder {
            self.recorders.insert(name, recorder);
        }
        match &series {
            Some(series) => self.pages.insert(name.to_owned(), series.clone()),
            None => self.pages.remove(name),
        };
        if let Some(server) = server {
            self.servers.insert(name.to_owned(), Task::spawn(stop, server));
        }
        let sink = match &self.telemetry {
            Some(telemetry) => telemetry.measure(name, sink, series),
            None => Box::new(NamedSink::new(name, sink)),
        };
        self.pipeline.add_sink(sink);
        Ok(())
    }

    async fn end_sink(&mut self, name: &str) {
        self.recorders.remove(name);
        if let Some(ended) = self.pipeline.remove_sink(name, self.config.limits.drain.0) {
            report(&ended.await);
        }
        if let Some(server) = self.servers.remove(name) {
            server.end().await;
        }
    }

    fn start_source(&mut self, name: &str, config: &SourceConfig) -> Result<(), SourceError> {
        let said = name.to_owned();
        let on_event = move |event: &dyn Display| tell(&format!("{said}: {event}"));
        let mut measure = self
            .telemetry
            .as_ref()
            .map(|telemetry| telemetry.measure_source(name));
        let on_reading = move |reading| {
            if let Some(measure) = &mut measure {
                measure(reading);
            }
        };
        let source = topology::build_source(
            config,
            self.resource.clone(),
            &self.positions,
            on_event,
            on_reading,
        )?;
        self.run_source(name, source);
        Ok(())
    }

    /// Watches the GPUs, where they are to be watched.
    fn start_gpus(&mut self) {
        if self.config.gpu.enabled {
            let say = |notice: &dyn Display| tell(&notice.to_string());
            let source = topology::gpus(&self.config.gpu, self.resource.1.clone(), None, say);
            self.run_source(GPUS, source);
        }
    }

    fn run_source(&mut self, name: &str, source: Box<dyn Source>) {
        let stop = StopRaiser::new();
        let (door, stopped, said) = (self.door_of(name), stop.stop(), name.to_owned());
        let task = Task::spawn(stop, async move {
            for report in run_sources(vec![source], &door, &stopped).await {
                if let Err(error) = report.ended {
                    tell(&format!("{said}: {error}"));
                }
            }
        });
        self.sources.insert(name.to_owned(), task);
    }

    fn door_of(&self, source: &str) -> Door {
        match &self.telemetry {
            Some(telemetry) => telemetry.watch(source, &self.door),
            None => self.door.clone(),
        }
    }

    async fn end_source(&mut self, name: &str) {
        if let Some(source) = self.sources.remove(name) {
            source.end().await;
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.forget_source(name);
        }
    }
}

/// What is no longer there, or is there in another way.
fn gone<T: PartialEq>(old: &Named<T>, new: &Named<T>) -> Vec<String> {
    let is_gone = |(name, entry): &(&str, &T)| new.0.get(*name) != Some(entry);
    old.iter()
        .filter(is_gone)
        .map(|(name, _)| name.to_owned())
        .collect()
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
