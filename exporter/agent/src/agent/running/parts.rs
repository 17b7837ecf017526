//! Each part by itself: health checks, a sink with what serves it, a source, the GPUs.

use std::fmt::Display;

use pulsetrain_pipeline::{Door, Source, StopRaiser, run_sources};
use pulsetrain_sinks::SinkError;
use pulsetrain_sources::SourceError;

use super::{
    super::{health, telemetry::NamedSink, tell},
    Running, Task, report,
};
use crate::{
    config::{GPUS, SinkConfig, SourceConfig},
    failure::Failure,
    topology::{self, BuiltSink},
};

impl Running {
    pub(super) async fn start_health(&mut self) -> Result<(), Failure> {
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

    pub(super) async fn start_sink(&mut self, name: &str, config: &SinkConfig) -> Result<(), SinkError> {
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

    pub(super) async fn end_sink(&mut self, name: &str) {
        self.recorders.remove(name);
        if let Some(ended) = self.pipeline.remove_sink(name, self.config.limits.drain.0) {
            report(&ended.await);
        }
        if let Some(server) = self.servers.remove(name) {
            server.end().await;
        }
    }

    pub(super) fn start_source(&mut self, name: &str, config: &SourceConfig) -> Result<(), SourceError> {
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
    pub(super) fn start_gpus(&mut self) {
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

    pub(super) async fn end_source(&mut self, name: &str) {
        if let Some(source) = self.sources.remove(name) {
            source.end().await;
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.forget_source(name);
        }
    }
}
