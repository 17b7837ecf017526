//! The start and the end of each part: health checks, a sink with its server, a source, the GPUs.

use std::{fmt::Display, sync::Arc, time::Duration};

use pulsetrain_otlp::Signals;
use pulsetrain_pipeline::{
    BoxFuture, CancellationToken, Ingress, SinkReport, SinkRoute, SinkTaskConfig, Source, clock, run_sources,
};
use pulsetrain_sinks::SinkError;

use super::{
    super::{
        health::{self, GpuControl},
        telemetry::NamedSink,
    },
    Running, Task,
    task::END,
};
use crate::{
    config::{GPUS, SinkConfig, SourceConfig},
    failure::{Failure, net_problem},
    import::resource::on_this_machine,
    ledger_view::LedgerView,
    log::{self, Subject},
    topology::{self, ALL_OFF, BuiltSink, BuiltSource, RetainedStores},
};

impl Running {
    pub(super) fn start_health(&mut self) -> Result<(), Failure> {
        let health = &self.config.health;
        if health.enabled {
            let stop = CancellationToken::new();
            let served = health::serve(
                health,
                self.ready.clone(),
                self.recorders.clone(),
                (Some(self.status.clone()), Some(self.gpu_control())),
                stop.clone(),
            )
            .map_err(|error| Failure::Failed(net_problem(&error).within("health.listen")))?;
            self.health = Some(Task::spawn(stop, served));
        }
        Ok(())
    }

    fn gpu_control(&self) -> GpuControl {
        GpuControl {
            release: self.gpu_release.clone(),
            time: self.config.gpu.release_time.0,
        }
    }

    /// Starts the queue of a sink that [`open_sink`](Self::open_sink) opens.
    pub(super) fn expect_sink(&mut self, name: &str, config: &SinkConfig) {
        topology::report_notices(name, config);
        for (queue, route) in queues(name, config) {
            let task_config = self.task_config(&queue, config);
            self.pipeline
                .expect_sink(&queue, route, task_config, Duration::ZERO);
        }
        self.unopened.insert(name.to_owned(), None);
    }

    /// Returns the settings of the queue of a sink, and reports its limit from now on.
    fn task_config(&self, queue: &str, config: &SinkConfig) -> SinkTaskConfig {
        let task_config = SinkTaskConfig {
            disk: self.disk_queues.get(queue),
            ..config.task_config(&self.config.limits)
        };
        let in_memory = task_config.queue.max_bytes;
        let limit = (task_config.disk.as_ref()).map_or(in_memory, |disk| disk.config().max_bytes as usize);
        if let Some(telemetry) = &self.telemetry {
            telemetry.record_queue_limit(queue, limit);
        }
        task_config
    }

    /// Opens an expected sink.
    pub(super) async fn open_sink(&mut self, name: &str, config: &SinkConfig) -> Result<(), SinkError> {
        let stop = CancellationToken::new();
        let built = topology::build_sink(
            name,
            config,
            &self.config.perfetto,
            &self.checkpointer,
            self.pages.get(name).cloned().unwrap_or_default(),
            stop.clone(),
        )
        .await?;
        let BuiltSink {
            sinks,
            server,
            series,
            page,
            recorder,
            file,
        } = built;
        match file {
            Some(file) => self.files.insert(name.to_owned(), file),
            None => self.files.remove(name),
        };
        if let Some(recorder) = recorder {
            self.recorders.insert(name, recorder);
        }
        if let Some(page) = &page {
            page.show_telemetry(Box::new(LedgerView(self.pipeline.ledger().clone())));
        }
        let mut series = series;
        match &series {
            Some(_) => {
                let kept = RetainedStores {
                    series: series.clone(),
                    page,
                };
                self.pages.insert(name.to_owned(), kept)
            }
            None => self.pages.remove(name),
        };
        if let Some(server) = server {
            self.servers.insert(name.to_owned(), Task::spawn(stop, server));
        }
        if sinks.is_empty() {
            log::warn(Subject::Sink(name), format_args!("sends nothing: {ALL_OFF}"));
        }
        for ((queue, _), sink) in queues(name, config).iter().zip(sinks) {
            let sink = match &self.telemetry {
                // The series belong to the first sink of a section.
                Some(telemetry) => telemetry.measure(queue, sink, series.take()),
                None => Box::new(NamedSink::new(queue, sink)),
            };
            // The sink is expected: the code that removes the task also removes the sink from the unopened ones.
            let _ = self.pipeline.open_sink(sink);
        }
        self.unopened.remove(name);
        log::debug(Subject::Sink(name), "opened");
        Ok(())
    }

    /// Starts the queue of the new sink and drains the old one in the background.
    pub(super) fn replace_sink(&mut self, name: &str, old: &SinkConfig, new: &SinkConfig) {
        topology::report_notices(name, new);
        let within = self.config.limits.drain.0;
        let (section, new) = (new, queues(name, new));
        let mut drained = Vec::new();
        for (queue, route) in &new {
            let task_config = self.task_config(queue, section);
            drained.extend(
                self.pipeline
                    .expect_sink(queue, route.clone(), task_config, within),
            );
        }
        for (queue, _) in queues(name, old) {
            if !new.iter().any(|(other, _)| *other == queue) {
                drained.extend(self.pipeline.remove_sink(&queue, within));
            }
        }
        self.leave(name, old, drained);
        self.unopened.insert(name.to_owned(), None);
    }

    /// Drains a sink in the background.
    pub(super) fn remove_sink(&mut self, name: &str, old: &SinkConfig) {
        let within = self.config.limits.drain.0;
        let queues = queues(name, old);
        let drained = (queues.iter()).filter_map(|(queue, _)| self.pipeline.remove_sink(queue, within));
        let drained = drained.collect();
        self.leave(name, old, drained);
        self.unopened.remove(name);
    }

    fn leave(&mut self, name: &str, old: &SinkConfig, drained: Vec<BoxFuture<'static, SinkReport>>) {
        self.recorders.remove(name);
        let mut server = self.servers.remove(name);
        for drained in drained {
            self.leaving.add(drained, server.take(), old.is_exclusive());
        }
    }

    pub(super) fn start_source(&mut self, name: &str, config: &SourceConfig) -> Result<(), Failure> {
        let mut measure = self
            .telemetry
            .as_ref()
            .map(|telemetry| telemetry.measure_source(name));
        let on_reading = move |reading| {
            if let Some(measure) = &mut measure {
                measure(reading);
            }
        };
        let BuiltSource { source, logs } = topology::build_source(
            (name, config),
            on_this_machine(self.resource.clone()),
            (&self.checkpointer, &self.claims),
            on_reading,
        )?;
        self.run_source(name, source);
        if let (Some(telemetry), Some(logs)) = (&self.telemetry, &logs) {
            telemetry.watch_logs(name, Arc::clone(logs));
        }
        self.status.watch_logs(name, logs);
        Ok(())
    }

    /// Starts the GPU source if it is enabled.
    pub(super) fn start_gpus(&mut self) {
        if self.config.gpu.enabled {
            let report = |level, notice: &dyn Display| log::write(level, Subject::Source(GPUS), notice);
            let source = topology::gpus(&self.config.gpu, self.resource.1.clone(), None, report)
                .released_by(self.gpu_release.clone());
            let source = Box::new(source);
            self.run_source(GPUS, source);
        }
    }

    fn run_source(&mut self, name: &str, source: Box<dyn Source>) {
        let stop = CancellationToken::new();
        let (ingress, stopped, source_name) = (self.ingress_of(name), stop.clone(), name.to_owned());
        let task = Task::spawn(stop, async move {
            for report in run_sources(vec![source], &ingress, &stopped).await {
                if let Err(error) = report.ended {
                    log::error(Subject::Source(&source_name), error);
                }
            }
        });
        self.sources.insert(name.to_owned(), task);
        log::debug(Subject::Source(name), "started");
    }

    fn ingress_of(&self, source: &str) -> Ingress {
        let ingress = self.ingress.of_source(source);
        match &self.telemetry {
            Some(telemetry) => telemetry.watch(source, &ingress),
            None => ingress,
        }
    }

    /// Ends sources concurrently. Cancel-safe.
    pub(super) async fn end_sources(&mut self, names: Vec<String>) {
        let stopping = || names.iter().filter_map(|name| self.sources.get(name));
        stopping().for_each(Task::stop);
        let deadline = clock::later(clock::now(), END);
        for name in &names {
            // The source is removed only after its end, so that an agent that ends in the meantime also waits for it.
            if let Some(source) = self.sources.get_mut(name) {
                source.wait_until(deadline).await;
                self.sources.remove(name);
            }
        }
        for name in &names {
            self.status.watch_logs(name, None);
            if let Some(telemetry) = &self.telemetry {
                telemetry.forget_source(name);
            }
        }
    }
}

/// Returns the queues of a section, each with its name and its route. A section has one queue, except that OTLP has one
/// for each receiver, and a Prometheus endpoint with a live page has one for each of the two. The order is that of the
/// sinks that [`topology::build_sink`] makes.
pub(super) fn queues(section: &str, config: &SinkConfig) -> Vec<(String, SinkRoute)> {
    let sources = config.sources();
    let route = |signals| SinkRoute {
        signals,
        sources: sources.clone(),
        requirement: config.requirement(),
    };
    let receivers = match config {
        SinkConfig::Otlp(otlp) => topology::otlp_config(otlp)
            .ok()
            .map(|config| config.by_receiver()),
        _ => None,
    };
    if let SinkConfig::Prometheus(prometheus) = config
        && prometheus.has_page()
    {
        let queues = [section.to_owned(), format!("{section} (page)")];
        return queues.map(|name| (name, route(Signals::ALL))).into();
    }
    match receivers.as_deref() {
        None => {
            let signals = config.signals().map_or(Signals::ALL, |list| list.0);
            vec![(section.to_owned(), route(signals))]
        }
        Some([receiver]) => vec![(section.to_owned(), route(receiver.signals()))],
        Some(several) => (several.iter())
            .map(|receiver| {
                let name = format!("{section} ({})", receiver.name());
                (name, route(receiver.signals()))
            })
            .collect(),
    }
}
