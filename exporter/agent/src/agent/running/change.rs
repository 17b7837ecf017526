//! How one configuration becomes another while everything else goes on.

use super::{
    super::{reload::needs_restart, tell},
    Running,
};
use crate::config::{Config, GPUS, Named, SinkConfig};

impl Running {
    /// Makes another configuration the one at work. What is the same in both goes on undisturbed.
    pub(in crate::agent) async fn change(&mut self, new: Config) {
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
    pub(in crate::agent) fn misses_sinks(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Tries the sinks again that could not be opened.
    pub(in crate::agent) async fn try_missing_sinks(&mut self) {
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
}

/// What is no longer there, or is there in another way.
fn gone<T: PartialEq>(old: &Named<T>, new: &Named<T>) -> Vec<String> {
    let is_gone = |(name, entry): &(&str, &T)| new.0.get(*name) != Some(entry);
    old.iter()
        .filter(is_gone)
        .map(|(name, _)| name.to_owned())
        .collect()
}
