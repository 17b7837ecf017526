//! Applies a new configuration: unchanged sources and sinks keep running.

use pulsetrain_derive::SignalsStage;
use pulsetrain_pipeline::Problem;

use super::{
    super::{
        health::{MemoryOwner, Parts},
        reload::needs_restart,
    },
    Running,
    disk_queues::FOLDER,
};
use crate::{
    config::{Config, GPUS, Named},
    failure::Failure,
    log::{self, Subject},
};

impl Running {
    /// Applies another configuration. Unchanged parts continue undisturbed; every batch that arrives during the change
    /// reaches either the old or the new instance of a changed sink. Cancel-safe.
    pub(in crate::agent) async fn change(&mut self, new: Config) {
        self.ready.unset("the configuration changes");
        let old = std::mem::replace(&mut self.config, new.clone());
        let mut ending = gone(&old.sources, &new.sources);
        if old.gpu != new.gpu {
            ending.push(GPUS.to_owned());
        }
        self.end_sources(ending).await;
        self.unopened_sources
            .retain(|name, _| new.sources.0.get(name) == old.sources.0.get(name));
        let root = self.checkpointer.state_file(FOLDER);
        for (name, error) in self.disk_queues.open(&new, root.as_deref()).await {
            log::warn(
                Subject::Sink(&name),
                format_args!(
                    "keeps its batches in memory only, until a reload finds its disk queue usable: {error}"
                ),
            );
        }
        self.change_sinks(&old, &new);
        self.open_sinks().await;
        for (name, _) in new
            .sources
            .iter()
            .filter(|(name, source)| old.sources.0.get(*name) != Some(source))
        {
            self.unopened_sources.insert(name.to_owned(), None);
        }
        self.open_sources();
        if old.gpu != new.gpu {
            self.start_gpus();
        }
        self.apply_own_sections(&old, &new).await;
        self.record_readiness();
    }

    /// Removes, replaces and adds sinks in one step: each batch of a source that moves from one sink to another reaches
    /// exactly one of them.
    fn change_sinks(&mut self, old: &Config, new: &Config) {
        let changes = self.pipeline.changes();
        let _one_change = changes.begin();
        for (name, sink) in old.sinks.iter() {
            if !new.sinks.0.contains_key(name) {
                self.remove_sink(name, sink);
            }
        }
        self.pages.retain(|name, _| new.sinks.0.contains_key(name));
        for (name, sink) in new.sinks.iter() {
            match old.sinks.0.get(name) {
                Some(before) if before == sink => {}
                Some(before) => self.replace_sink(name, before, sink),
                None => self.expect_sink(name, sink),
            }
        }
    }

    /// Returns whether there are sinks or sources that are not open yet and are retried.
    pub(in crate::agent) fn has_unopened(&self) -> bool {
        !self.unopened.is_empty() || !self.unopened_sources.is_empty()
    }

    /// Opens the sinks and sources that are not open yet.
    pub(in crate::agent) async fn open_all(&mut self) {
        self.open_sinks().await;
        self.open_sources();
    }

    /// Waits until a sink that a reload removed has ended; stays pending without one.
    pub(in crate::agent) async fn sink_left(&mut self) {
        self.leaving.next().await;
    }

    /// Opens the sinks that are not open yet. A sink that needs a port or a file waits for draining sinks that may still
    /// hold it.
    async fn open_sinks(&mut self) {
        for (name, failure) in self.unopened.clone() {
            let Some(sink) = self.config.sinks.0.get(&name).cloned() else {
                self.unopened.remove(&name);
                continue;
            };
            if sink.is_exclusive() && self.leaving.has_exclusive_sink() {
                continue;
            }
            let opened = self.open_sink(&name, &sink).await;
            let opened = opened.map_err(|error| error.problem());
            if let Some(why) = report_opening(Subject::Sink(&name), opened, failure) {
                self.unopened.insert(name, Some(why));
            }
        }
        self.record_readiness();
    }

    /// Starts the sources that are not started yet, such as a receiver whose port was not free.
    fn open_sources(&mut self) {
        for (name, failure) in std::mem::take(&mut self.unopened_sources) {
            let Some(source) = self.config.sources.0.get(&name).cloned() else {
                continue;
            };
            let started = self.start_source(&name, &source).map_err(Failure::into_problem);
            if let Some(why) = report_opening(Subject::Source(&name), started, failure) {
                self.unopened_sources.insert(name, Some(why));
            }
        }
        self.record_readiness();
    }

    /// Applies changes of the agent's own sections, as far as that is possible without a restart.
    async fn apply_own_sections(&mut self, old: &Config, new: &Config) {
        if old.health != new.health {
            if let Some(health) = self.health.take() {
                health.end().await;
            }
            if let Err(error) = self.start_health() {
                log::error(
                    Subject::Program,
                    format_args!("continues without health checks until the next reload: {error}"),
                );
            }
        }
        if let Some(telemetry) = self.telemetry.as_mut().filter(|_| old.telemetry != new.telemetry) {
            telemetry.change_interval(new.telemetry.interval.0);
        }
        let keys = needs_restart(old, new);
        if !keys.is_empty() {
            log::warn(
                Subject::Program,
                format_args!("restart the agent to change {}", keys.join(", ")),
            );
        }
    }

    /// Returns the parts that remember what clients send.
    fn memory_owners(&self) -> Vec<MemoryOwner> {
        let derive = self.derive_memory.clone();
        let derive = derive.map(|memory| MemoryOwner::limited("derive", memory, SignalsStage::MAX_BYTES));
        let stores = self.pages.iter().flat_map(|(sink, stores)| {
            let series = stores
                .series
                .clone()
                .map(|store| MemoryOwner::series(sink, store));
            series
                .into_iter()
                .chain(stores.page.clone().map(|page| MemoryOwner::page(sink, page)))
        });
        let recorders = self.recorders.all().into_iter().map(|(sink, recorder)| {
            let most = recorder.config().bytes;
            MemoryOwner::limited(format!("sinks.{sink}"), recorder.memory(), most)
        });
        derive.into_iter().chain(stores).chain(recorders).collect()
    }

    /// Updates the state of the parts for `/readyz` and `/status`.
    pub(super) fn record_readiness(&self) {
        let open = self.sources.keys().map(|name| (name.clone(), None));
        let unopened = self.unopened_sources.iter();
        let waiting = |why: &Option<Problem>| match why {
            Some(why) => why.to_string(),
            None => "it is opened soon".to_owned(),
        };
        self.status.set_parts(Parts {
            sources: open
                .chain(unopened.map(|(name, why)| (name.clone(), Some(waiting(why)))))
                .collect(),
            unopened_sinks: self
                .unopened
                .iter()
                .map(|(name, why)| (name.clone(), waiting(why)))
                .collect(),
        });
        self.status.set_memory(self.memory_owners());
        match self.unopened.iter().chain(&self.unopened_sources).next() {
            None => self.ready.set(),
            Some((_, Some(why))) => self.ready.unset(why),
            Some((name, None)) => self
                .ready
                .unset(format!("the sink {name} waits for the one before it to end")),
        }
    }
}

/// Logs the parts that could not be opened, once, and those that were opened after a failure. Returns the remaining
/// failure.
fn report_opening(
    what: Subject<'_>,
    opened: Result<(), Problem>,
    failure: Option<Problem>,
) -> Option<Problem> {
    match (opened, failure) {
        (Ok(()), None) => None,
        (Ok(()), Some(_)) => {
            log::info(what, "is open now");
            None
        }
        (Err(_), Some(why)) => Some(why),
        (Err(error), None) => {
            log::error(
                what,
                format_args!("cannot be opened: {error}; it is tried again every second"),
            );
            Some(match what {
                Subject::Sink(name) => error.about(format!("the sink {name}")),
                Subject::Source(name) => error.about(format!("the source {name}")),
                Subject::Program | Subject::Place => error,
            })
        }
    }
}

/// Returns the names of the entries that were removed or changed.
fn gone<T: PartialEq>(old: &Named<T>, new: &Named<T>) -> Vec<String> {
    let is_gone = |(name, entry): &(&str, &T)| new.0.get(*name) != Some(entry);
    old.iter()
        .filter(is_gone)
        .map(|(name, _)| name.to_owned())
        .collect()
}
