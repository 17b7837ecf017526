//! The exporter of `run`: parses the copy of the trainer's output, watches GPUs and logs, and sends their telemetry.
//!
//! It is a process of its own, so that its end does not affect the trainer: `stream` parses the copy; `page` is the live
//! page of `--listen`; `recording` holds the flight recorders. A setting that cannot be used is reported and left out.

use std::{
    cell::Cell,
    ffi::OsString,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use pulsetrain_gpu::workload::Workload;
use pulsetrain_launcher::{Chunks, CopiedOutput};
use pulsetrain_page::PageStore;
use pulsetrain_pipeline::{
    CancellationToken, Ingress, Pipeline, PipelineBuilder, Problem, Requirement, Sink, SinkTaskConfig,
    Source, run_sources,
};
use pulsetrain_tail::{Checkpointer, ImportReport, RankSource, RunOptions, TailError, TailEvent};
use tokio::{runtime::Runtime, task::JoinHandle};

use super::{
    PROCESS_NAME,
    disk_queues::{self, Leftovers, LeftoversTask, ReceiverQueues},
    identity::{self, Identity},
    outcome::{Inputs, Outcome},
    page, recording,
    stream::StreamSource,
    variable,
};
use crate::{
    agent::Recorders,
    cli::{ExporterArguments, RunArguments},
    config::{self, Config, SinkConfig},
    failure::Failure,
    import::{mapping, resource},
    ledger_view::LedgerView,
    log::{self, Subject},
    runtime,
    topology::{self, BuiltSink, RetainedStores, TrainerSink},
};

/// Runs the exporter until its trainer has ended and its telemetry is sent.
pub(crate) fn run(arguments: &ExporterArguments) -> Result<ExitCode, Failure> {
    pulsetrain_launcher::rename_process(PROCESS_NAME);
    prefer_as_victim();
    log::start(arguments.run.log);
    let copied = CopiedOutput::receive(&arguments.pipes)
        .map_err(|error| Failure::failed(format!("cannot read the output of the trainer: {error}")))?;
    runtime::run_on(1, |runtime| {
        export(runtime, &arguments.run, &arguments.new_id, copied)
    })
}

/// Makes the kernel end this process first when memory runs out, and not the trainer.
fn prefer_as_victim() {
    // The order of the kernel is good enough without it.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

fn export(
    runtime: &Runtime,
    arguments: &RunArguments,
    new_id: &str,
    copied: CopiedOutput,
) -> Result<ExitCode, Failure> {
    let loaded = load(arguments);
    let default = Config::default();
    let config = loaded.as_ref().unwrap_or(&default);
    log::configure(config.log.level, config.log.format);
    let options = options(arguments);
    let mut identity = Identity::new(arguments.run_id.clone(), variable, || new_id.to_owned());
    identity.member = options.rank.member("", identity.member);
    for warning in identity.warnings() {
        log::warn(Subject::Program, warning);
    }
    let recorders = Recorders::default();
    let Started {
        pipeline,
        ingress,
        leftovers,
    } = runtime.block_on(start_pipeline(arguments, loaded.as_ref(), &recorders))?;
    let gpus = {
        let _inside = runtime.enter();
        gpus(arguments, config, &options, &identity)
    };
    let CopiedOutput {
        chunks,
        unparsed,
        mut end,
    } = copied;
    let reading = Reading::start(runtime, arguments, chunks, identity, options, gpus, ingress);
    let code = end.wait();
    std::thread::spawn(move || {
        if end.wait_for_abort() {
            std::process::exit(0);
        }
    });
    let (inputs, sinks) = runtime.block_on(async {
        let inputs = reading.end(arguments.drain).await;
        let drained = (pipeline.drain(arguments.drain), leftovers.drain(arguments.drain));
        let (mut sinks, left) = tokio::join!(drained.0, drained.1);
        sinks.extend(left);
        if code != Some(0) {
            recording::save(&recorders).await;
        }
        (inputs, sinks)
    });
    Outcome::new(inputs, sinks, unparsed.load(Ordering::Relaxed)).log(arguments.summary);
    Ok(ExitCode::SUCCESS)
}

/// Returns the configuration from the command line, or `None` if it cannot be used.
fn load(arguments: &RunArguments) -> Option<Config> {
    let Some(path) = &arguments.config else {
        return Some(Config::default());
    };
    let report = |error| {
        log::warn(
            Subject::Program,
            format_args!("continues without the configuration: {error}"),
        );
    };
    config::load(path, &config::environment()).map_err(report).ok()
}

/// Returns the source of the GPUs of this machine. One rank per machine watches them, and reports on the page, not on the
/// trainer's terminal.
fn gpus(
    arguments: &RunArguments,
    config: &Config,
    options: &RunOptions,
    identity: &Identity,
) -> Option<Box<dyn Source>> {
    let wanted = config.gpu.enabled && !arguments.no_gpu && identity::is_first_here(variable);
    let ours = Workload::of_run(&identity.id, variable);
    wanted.then(|| -> Box<dyn Source> {
        Box::new(topology::gpus(
            &config.gpu,
            options.resource.clone(),
            Some(ours),
            |_, _| {},
        ))
    })
}

/// The running pipeline, with the task that sends what earlier runs left.
struct Started {
    pipeline: Pipeline,
    ingress: Ingress,
    leftovers: LeftoversTask,
}

/// Starts the pipeline to the targets of `--to` or of the configuration, which is `None` if it cannot be used.
async fn start_pipeline(
    arguments: &RunArguments,
    loaded: Option<&Config>,
    recorders: &Recorders,
) -> Result<Started, Failure> {
    let default = Config::default();
    let config = loaded.unwrap_or(&default);
    let has_warned = Cell::new(loaded.is_none());
    let mut pages = Vec::new();
    let mut leftovers = Leftovers::default();
    let mut sinks = if arguments.config.is_some() && arguments.to.is_empty() {
        configured_sinks(config, recorders, &mut pages, &mut leftovers).await
    } else if page::is_only_target(arguments, variable_names()) {
        Vec::new()
    } else {
        let left_out = |why: &Problem| {
            has_warned.set(true);
            log::warn(
                Subject::Program,
                format_args!("continues without a target: {why}"),
            );
        };
        let mut sinks = Vec::new();
        for TrainerSink { sink, receiver } in topology::sinks_of_trainer(&arguments.to, left_out) {
            let queues = receiver.and_then(|receiver| disk_queues::for_target(&receiver, config));
            let task_config = config.limits.task_config();
            let task_config = with_disk(queues.as_ref(), &*sink, task_config, &mut leftovers).await;
            sinks.push((sink, Requirement::Required, task_config));
        }
        sinks
    };
    if let Some(address) = arguments.listen {
        match page::open(address, config).await {
            Ok(page) => {
                let message = format_args!("serving the page at http://{}/", page.address);
                log::info(Subject::Program, message);
                let with_task_config = |(sink, requirement)| (sink, requirement, config.limits.task_config());
                sinks.extend(page.sinks.into_iter().map(with_task_config));
                pages.extend(page.store);
            }
            Err(error) => log::warn(
                Subject::Program,
                format_args!("continues without the page: {error}"),
            ),
        }
    }
    if sinks.is_empty() && arguments.to.is_empty() && arguments.listen.is_none() && !has_warned.get() {
        let message = format_args!("sends nothing: {}", topology::ALL_OFF);
        log::warn(Subject::Program, message);
    }
    if arguments.step_line {
        let line = (
            topology::step_line(),
            Requirement::BestEffort,
            config.limits.task_config(),
        );
        sinks.push(line);
    }
    let builder = Pipeline::builder().config(config.limits.task_config());
    let (builder, _) = topology::derived(builder, &config.derive, &Checkpointer::in_memory(), |_| {})?;
    let add = |builder: PipelineBuilder, (sink, requirement, task_config)| {
        builder.sink_with(sink, requirement, task_config)
    };
    let (pipeline, ingress) = sinks.into_iter().fold(builder, add).start();
    for page in pages {
        page.show_telemetry(Box::new(LedgerView(pipeline.ledger().clone())));
    }
    Ok(Started {
        pipeline,
        ingress,
        leftovers: leftovers.start(),
    })
}

/// Adds the disk queue of a sink to its settings, if it has one, and the other queues of its receiver to the leftovers.
async fn with_disk(
    queues: Option<&ReceiverQueues>,
    sink: &dyn Sink,
    task_config: SinkTaskConfig,
    leftovers: &mut Leftovers,
) -> SinkTaskConfig {
    let Some(queues) = queues else {
        return task_config;
    };
    leftovers.add(queues, sink, &task_config);
    SinkTaskConfig {
        disk: queues.open().await,
        ..task_config
    }
}

/// Returns the sinks of the configuration. A sink that cannot be opened is reported and left out: the trainer is more
/// important, and if several ranks share a machine only one of them can bind the port.
async fn configured_sinks(
    config: &Config,
    recorders: &Recorders,
    pages: &mut Vec<PageStore>,
    leftovers: &mut Leftovers,
) -> Vec<(Box<dyn Sink>, Requirement, SinkTaskConfig)> {
    let mut sinks = Vec::new();
    for (name, section) in config.sinks.iter() {
        section.warn_sources_ignored(name);
        topology::report_notices(name, section);
        match topology::build_sink(
            name,
            section,
            &config.perfetto,
            &Checkpointer::in_memory(),
            RetainedStores::default(),
            CancellationToken::new(),
        )
        .await
        {
            Ok(BuiltSink {
                sinks: built,
                server,
                recorder,
                page,
                ..
            }) => {
                pages.extend(page);
                let mut queues = disk_queues::for_section(name, section, config).into_iter();
                for sink in built {
                    let (queues, task_config) = (queues.next(), section.task_config(&config.limits));
                    let task_config = with_disk(queues.as_ref(), &*sink, task_config, leftovers).await;
                    sinks.push((sink, section.requirement(), task_config));
                }
                server.map(tokio::spawn);
                if let Some(recorder) = recorder {
                    recorders.insert(name, recorder);
                }
            }
            Err(error) => {
                let owner = port_owner_of(section).map_or(String::new(), |who| format!("; {who} has it"));
                log::error(
                    Subject::Program,
                    format_args!("continues without the sink {name}: {error}{owner}"),
                );
            }
        }
    }
    recording::serve(config, recorders);
    sinks
}

/// Returns the program that already listens on the port of a sink.
fn port_owner_of(sink: &SinkConfig) -> Option<String> {
    match sink {
        SinkConfig::Prometheus(page) => page.listen.0.tcp().and_then(config::port_owner),
        _ => None,
    }
}

fn options(arguments: &RunArguments) -> RunOptions {
    let resource = resource::on_this_machine(resource::from_env_or_without(variable, |message| {
        log::warn(Subject::Program, message);
    }));
    let (service, resource) = resource::in_slurm_job(resource, variable);
    let mapped = mapping::read(arguments.format, arguments.mapping.as_deref());
    let (format, mapping) = mapped.unwrap_or_else(|failure| {
        let problem = failure.into_problem();
        log::warn(
            Subject::Program,
            format_args!("continues without the mapping: {problem}"),
        );
        (arguments.format.0, Arc::default())
    });
    RunOptions {
        format,
        mapping,
        run_name: arguments.run_name.clone(),
        service,
        resource,
        rank: arguments.rank.map_or(RankSource::Inferred, RankSource::Fixed),
        timezone: arguments.timezone.clone(),
        ..RunOptions::default()
    }
}

fn variable_names() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name)
}

/// The sources that read the output and the logs of the trainer.
struct Reading {
    stop: CancellationToken,
    sources: JoinHandle<()>,
    reports: Arc<Mutex<Vec<ImportReport>>>,
}

impl Reading {
    fn start(
        runtime: &Runtime,
        arguments: &RunArguments,
        chunks: Chunks,
        identity: Identity,
        options: RunOptions,
        gpus: Option<Box<dyn Source>>,
        ingress: Ingress,
    ) -> Self {
        let (stop, reports) = (
            CancellationToken::new(),
            Arc::<Mutex<Vec<ImportReport>>>::default(),
        );
        let kept = Arc::clone(&reports);
        let on_end = move |report| kept.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        let program = arguments.command[0].to_string_lossy();
        let kept = Arc::clone(&reports);
        // Events of followed files are reported at the end and not on the trainer's terminal.
        let on_event = move |event| {
            match event {
                TailEvent::Ended(report) => {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(*report);
                }
                // The trainer has ended by the time of this event.
                TailEvent::Problem(error @ TailError::Unread { .. }) => log::error(Subject::Program, error),
                _ => {}
            }
        };
        let followed_options = RunOptions {
            format: None,
            run_id: Some(identity.id.clone()),
            member: identity.member,
            ..options.clone()
        };
        let followed = topology::followed(&arguments.follow, followed_options, on_event);
        let source: Box<dyn Source> =
            Box::new(StreamSource::new(&program, chunks, identity, options, on_end));
        let sources = [source].into_iter().chain(followed).chain(gpus).collect();
        let stopped = stop.clone();
        let sources = runtime.spawn(async move {
            run_sources(sources, &ingress, &stopped).await;
        });
        Self {
            stop,
            sources,
            reports,
        }
    }

    /// Lets the sources read the remaining data within the time limit, so that a hanging file system does not delay the
    /// exit.
    async fn end(self, within: Duration) -> Inputs {
        self.stop.cancel();
        let is_whole = tokio::time::timeout(within, self.sources).await.is_ok();
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        Inputs {
            reports: std::mem::take(&mut *reports),
            is_whole,
        }
    }
}
