//! Faults of a real agent, with the names that the key `agent` of an alert's definition uses. A new fault is a type that
//! implements [`Fault`] and a row of [`start`].

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use pulsetrain_tests::{
    Answer, FakeEndpoint, FakeNvml, Folder, Process, SurogateWriter, command, corpus, free_port, record_at,
    surogate_records, unix_nanos,
};

/// A healthy agent whose environment fails and recovers.
pub(crate) trait Fault {
    /// Starts the fault.
    fn begin(&mut self);

    /// Called repeatedly while the fault lasts.
    fn keep_up(&mut self) {}

    /// Ends the fault.
    fn end(&mut self);

    /// Called repeatedly after the end, until the alerts have resolved.
    fn keep_changed(&mut self) {}

    /// Returns whether Prometheus scrapes the page of the agent.
    fn is_scraped(&self) -> bool {
        true
    }
}

/// A fault with its name and the address of the agent's page.
pub(crate) struct Running {
    pub(crate) name: &'static str,
    pub(crate) page: String,
    pub(crate) fault: Box<dyn Fault>,
}

/// Starts an agent for every fault; `otlp` is the OTLP endpoint of a Prometheus.
pub(crate) fn start(otlp: &str) -> Vec<Running> {
    type Start = fn(Agent, &str) -> Box<dyn Fault>;
    let rows: [(&'static str, Start); 13] = [
        ("dead-sink", |agent, _| {
            Box::new(DeadSink::start(agent, "disk_queue: off"))
        }),
        ("long-outage", |agent, _| {
            Box::new(DeadSink::start(agent, "disk_queue: {bytes: 64MiB}"))
        }),
        ("slow-receiver", |agent, _| Box::new(SlowReceiver::start(agent))),
        // A log that arrives ten minutes after it was written, for example a copy from another host.
        ("late-log", |agent, _| Box::new(ShiftedLog::start(agent, -600))),
        ("unreadable-log", |agent, _| Box::new(UnreadableLog::start(agent))),
        ("unknown-records", |agent, _| {
            Box::new(UnknownRecords::start(agent))
        }),
        ("hanging-driver", |agent, _| Box::new(HangingDriver::start(agent))),
        ("many-series", |agent, _| {
            Box::new(ManySeries::start(
                agent,
                ["series_limit: 150", "series_limit: 2000"],
            ))
        }),
        ("small-budget", |agent, _| {
            Box::new(ManySeries::start(agent, ["max_bytes: 96KiB", "max_bytes: 1MiB"]))
        }),
        ("broken-reload", |agent, _| Box::new(BrokenReload::start(agent))),
        // A trainer whose clock is half a minute ahead until it is corrected.
        ("clock-ahead", |agent, _| Box::new(ShiftedLog::start(agent, 30))),
        ("killed-agent", |agent, _| Box::new(Killed::scraped(agent))),
        ("silent-agent", |agent, otlp| {
            Box::new(Killed::pushing(agent, otlp))
        }),
    ];
    let start = |(name, start): (&'static str, Start)| {
        let page = format!("127.0.0.1:{}", free_port());
        let agent = Agent::new(name, &page);
        Running {
            name,
            page,
            fault: start(agent, otlp),
        }
    };
    rows.into_iter().map(start).collect()
}

/// An agent with a page and a folder of its own. Its telemetry has the name of the fault as `service.instance.id` and
/// `host.name`.
struct Agent {
    folder: Folder,
    instance: &'static str,
    page: String,
    process: Option<Process>,
}

/// The parts of the configuration that differ between agents.
#[derive(Clone, Default)]
struct Sections {
    /// Additional keys of the page.
    page: String,
    /// Additional sinks.
    sinks: String,
    /// The section `gpu`.
    gpu: Option<String>,
    /// Additional sections.
    rest: String,
}

impl Agent {
    fn new(instance: &'static str, page: &str) -> Self {
        Self {
            folder: Folder::new(),
            instance,
            page: page.to_owned(),
            process: None,
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.path("training.json")
    }

    fn configure(&self, sections: &Sections) {
        let text = format!(
            "state_folder: {state}
sources: {{trainer: {{logs: {{paths: [{log}], poll_interval: 100ms, timezone: UTC}}}}}}
gpu: {gpu}
sinks:
  page: {{prometheus: {{listen: '{page}', page: false{more}}}}}
{sinks}
{rest}
telemetry: {{interval: 500ms}}
health: {{enabled: false}}
",
            state = self.folder.path("state").display(),
            log = self.log().display(),
            gpu = sections.gpu.as_deref().unwrap_or("{enabled: false}"),
            page = self.page,
            more = sections.page,
            sinks = sections.sinks,
            rest = sections.rest,
        );
        self.folder.file("agent.yaml", text);
    }

    fn start(&mut self) {
        let mut agent = command(["agent", "--config"]);
        let instance = self.instance;
        agent.arg(self.folder.path("agent.yaml")).env(
            "OTEL_RESOURCE_ATTRIBUTES",
            format!("service.instance.id={instance},host.name={instance}"),
        );
        self.process = Some(Process::start(instance, &mut agent));
    }

    fn configured(mut self, sections: &Sections) -> Self {
        self.configure(sections);
        self.start();
        self
    }

    fn reload(&self) {
        self.process.as_ref().expect("it runs").reload();
    }
}

/// Returns a sink that sends OTLP to a URL and is not required, with a small queue in memory and frequent retries.
fn receiver(url: &str, keys: &str) -> Sections {
    Sections {
        sinks: format!("  archive: {{otlp: {{endpoint: '{url}', required: false, {keys}}}}}"),
        rest: "limits: {queue_bytes: 256KiB, retry_after: 100ms, retry_at_most: 500ms}".to_owned(),
        ..Sections::default()
    }
}

/// A receiver that stops and restarts; the agent queues in memory or on disk.
struct DeadSink {
    port: u16,
    receiver: Option<FakeEndpoint>,
    _agent: Agent,
}

impl DeadSink {
    fn start(agent: Agent, queue: &str) -> Self {
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        Self {
            port,
            receiver: Some(FakeEndpoint::start_at(port, [], Answer::Accept)),
            _agent: agent.configured(&receiver(&url, queue)),
        }
    }
}

impl Fault for DeadSink {
    fn begin(&mut self) {
        self.receiver = None;
    }

    fn end(&mut self) {
        self.receiver = Some(FakeEndpoint::start_at(self.port, [], Answer::Accept));
    }
}

/// A receiver with a latency of three tenths of a second per request.
struct SlowReceiver {
    receiver: FakeEndpoint,
    _agent: Agent,
}

impl SlowReceiver {
    fn start(agent: Agent) -> Self {
        let endpoint = FakeEndpoint::start([], Answer::Accept);
        Self {
            _agent: agent.configured(&receiver(&endpoint.url(), "disk_queue: off")),
            receiver: endpoint,
        }
    }
}

impl Fault for SlowReceiver {
    fn begin(&mut self) {
        self.receiver
            .answer_with(Answer::Late(Duration::from_millis(300)));
    }

    fn end(&mut self) {
        self.receiver.answer_with(Answer::Accept);
    }
}

/// A log whose times are at an offset from the current time, until it has the current time.
struct ShiftedLog {
    seconds_from_now: i64,
    log: Option<TrainingLog>,
    agent: Agent,
}

impl ShiftedLog {
    fn start(agent: Agent, seconds_from_now: i64) -> Self {
        Self {
            seconds_from_now,
            log: None,
            agent: agent.configured(&Sections::default()),
        }
    }

    fn step(&mut self, seconds_from_now: i64) {
        let log = self.log.as_mut().expect("the fault has begun");
        log.step(seconds_from_now);
    }
}

impl Fault for ShiftedLog {
    fn begin(&mut self) {
        self.log = Some(TrainingLog::begin(&self.agent.log(), self.seconds_from_now));
    }

    /// Without new steps, real time would catch up with a step of the future.
    fn keep_up(&mut self) {
        self.step(self.seconds_from_now);
    }

    fn end(&mut self) {}

    /// The lag is that of the newest step, and a busy machine may read one late.
    fn keep_changed(&mut self) {
        self.step(0);
    }
}

/// A log that cannot be read: a pipe has its path.
struct UnreadableLog {
    agent: Agent,
}

impl UnreadableLog {
    fn start(agent: Agent) -> Self {
        Self {
            agent: agent.configured(&Sections::default()),
        }
    }
}

impl Fault for UnreadableLog {
    fn begin(&mut self) {
        let made = Command::new("mkfifo").arg(self.agent.log()).status();
        assert!(made.expect("mkfifo can be started").success());
    }

    fn end(&mut self) {
        fs::remove_file(self.agent.log()).expect("the pipe can be removed");
        TrainingLog::begin(&self.agent.log(), 0);
    }
}

/// A log with records of unknown types.
struct UnknownRecords {
    log: TrainingLog,
    _agent: Agent,
}

impl UnknownRecords {
    fn start(agent: Agent) -> Self {
        let log = TrainingLog::begin(&agent.log(), 0);
        Self {
            log,
            _agent: agent.configured(&Sections::default()),
        }
    }
}

impl Fault for UnknownRecords {
    fn begin(&mut self) {}

    fn keep_up(&mut self) {
        self.log.writer.append(r#"{"log": "step", "step": "none"}"#);
    }

    fn end(&mut self) {}
}

/// A GPU driver whose calls do not return.
struct HangingDriver {
    driver: FakeNvml,
    _agent: Agent,
}

impl HangingDriver {
    fn start(agent: Agent) -> Self {
        let hang = "gpus: {count: 1}\nfaults: [{what: hangs, from: 1000, until: 2000}]";
        let driver = FakeNvml::with("h100x8", hang);
        driver.run_from(0.0);
        let library = driver.library();
        let gpu = format!("{{library: {}, interval: 200ms}}", library.display());
        let sections = Sections {
            gpu: Some(gpu),
            ..Sections::default()
        };
        Self {
            driver,
            _agent: agent.configured(&sections),
        }
    }
}

impl Fault for HangingDriver {
    fn begin(&mut self) {
        self.driver.run_from(1000.0);
    }

    fn end(&mut self) {
        self.driver.run_from(2000.0);
    }
}

/// A run with more series than the limit of the page; the operator raises the limit.
struct ManySeries {
    log: Option<TrainingLog>,
    agent: Agent,
    /// The key of the page that limits the series, with its value after the fault.
    raised: &'static str,
}

impl ManySeries {
    fn start(agent: Agent, [limit, raised]: [&'static str; 2]) -> Self {
        Self {
            log: None,
            agent: agent.configured(&Self::page(limit)),
            raised,
        }
    }

    fn page(limit: &str) -> Sections {
        Sections {
            page: format!(", {limit}"),
            ..Sections::default()
        }
    }
}

impl Fault for ManySeries {
    fn begin(&mut self) {
        self.log = Some(TrainingLog::begin(&self.agent.log(), 0));
    }

    fn end(&mut self) {
        self.agent.configure(&Self::page(self.raised));
        self.agent.reload();
    }
}

/// An invalid configuration, and a reload.
struct BrokenReload {
    agent: Agent,
}

impl BrokenReload {
    fn start(agent: Agent) -> Self {
        Self {
            agent: agent.configured(&Sections::default()),
        }
    }
}

impl Fault for BrokenReload {
    fn begin(&mut self) {
        self.agent.configure(&Sections {
            rest: "limit: {}".to_owned(),
            ..Sections::default()
        });
        self.agent.reload();
    }

    fn end(&mut self) {
        self.agent.configure(&Sections::default());
        self.agent.reload();
    }
}

/// An agent that is killed and restarted.
struct Killed {
    agent: Agent,
    is_scraped: bool,
}

impl Killed {
    /// Creates an agent that is scraped at the address of its host, 127.0.0.1.
    fn scraped(agent: Agent) -> Self {
        let of_host = Agent {
            instance: "127.0.0.1",
            ..agent
        };
        Self {
            agent: of_host.configured(&Sections::default()),
            is_scraped: true,
        }
    }

    /// Creates an agent that sends to Prometheus by OTLP.
    fn pushing(agent: Agent, endpoint: &str) -> Self {
        let sections = Sections {
            sinks: format!("  metrics: {{otlp: {{endpoint: '{endpoint}', signals: [metrics]}}}}"),
            ..Sections::default()
        };
        Self {
            agent: agent.configured(&sections),
            is_scraped: false,
        }
    }
}

impl Fault for Killed {
    fn begin(&mut self) {
        self.agent.process.take().expect("it runs").kill();
    }

    fn end(&mut self) {
        self.agent.start();
    }

    fn is_scraped(&self) -> bool {
        self.is_scraped
    }
}

/// A Surogate log with times at an offset from the current time.
struct TrainingLog {
    writer: SurogateWriter,
    /// The last step of the sample.
    last: String,
}

impl TrainingLog {
    /// Writes all records of a sample.
    fn begin(path: &Path, seconds_from_now: i64) -> Self {
        let records = surogate_records(&corpus("surogate/training_dense.json"));
        let is_step = |record: &&String| record.contains(r#""log": "step""#);
        let last = records.iter().rfind(is_step).expect("the sample has steps");
        let mut log = Self {
            writer: SurogateWriter::create(path),
            last: last.clone(),
        };
        for record in &records {
            log.writer.append(&at(record, seconds_from_now));
        }
        log
    }

    /// Writes one step.
    fn step(&mut self, seconds_from_now: i64) {
        self.writer.append(&at(&self.last, seconds_from_now));
    }
}

/// Returns the record with a time at an offset from the current time.
fn at(record: &str, seconds_from_now: i64) -> String {
    record_at(
        record,
        unix_nanos().saturating_add_signed(seconds_from_now * 1_000_000_000),
    )
}
