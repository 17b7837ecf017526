//! Stores that limit or refuse their clients: 2,000 messages are acknowledged while the store is down, and 2,000 arrive once it
//! relents, with at most 1.5 times the needed requests.
//!
//! `PULSETRAIN_STORES=exporter/DELIVERY.md` writes the measurements into that file; with `PULSETRAIN_BEFORE=PROGRAM` also those of
//! an earlier version.

mod store;

use std::{env, fs, path::PathBuf, process::Command, thread, time::Duration};

use pulsetrain_tests::{
    Folder, Items, Judge, Process, command, free_port,
    http::{answers_ok, request},
    some_or_return, wait_at_most, wait_until, workspace_path, write_table,
};
use serde_json::Value;
use tonic::Code;

use self::store::{Behaviour, Protocol, Store};
use crate::outages::load::send;

const MESSAGES: usize = 2000;

/// The maximum size of a merged request in bytes.
const REQUEST_BYTES: usize = 8 << 10;

/// The limit on the size that the store accepts.
const STORE_BYTES: usize = 6000;

/// The longest time for all messages to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// The stores, by their description.
const STORES: [(&str, Behaviour); 8] = [
    (
        "limits its clients: 429, `RESOURCE_EXHAUSTED`",
        Behaviour::Refuses(429, Code::ResourceExhausted, "no room"),
    ),
    ("limits its rate to 80 kB/s", Behaviour::LimitsRate(80_000.0)),
    (
        "limits requests to 6,000 bytes",
        Behaviour::LimitsSize(STORE_BYTES),
    ),
    (
        "refuses the token: 401, `UNAUTHENTICATED`",
        Behaviour::Refuses(401, Code::Unauthenticated, "no token"),
    ),
    (
        "refuses: 403, `PERMISSION_DENIED`",
        Behaviour::Refuses(403, Code::PermissionDenied, "no tenant"),
    ),
    (
        "is not there: 404, `UNIMPLEMENTED`",
        Behaviour::Refuses(404, Code::Unimplemented, "no such path"),
    ),
    (
        "gives up: 408, `FAILED_PRECONDITION`",
        Behaviour::Refuses(408, Code::FailedPrecondition, "not ready"),
    ),
    (
        "fails: 500, `INTERNAL`",
        Behaviour::Refuses(500, Code::Internal, "disk full"),
    ),
];

/// The measurements of one store.
struct Row {
    acknowledged: usize,
    delivered: usize,
    requests: usize,
    needed: usize,
}

/// Measures a program with a store.
fn measure(program: Option<&PathBuf>, protocol: Protocol, behaviour: Behaviour) -> Row {
    let store = Store::start(protocol, behaviour);
    let mut agent = Agent::start(program, &store.url());
    let acknowledged = send(agent.receiver, 0..MESSAGES, 1000).len();
    store.open();
    wait_at_most(PATIENCE, || {
        agent.has_sent_all() || agent.process.exit_status().is_some()
    });
    let (requests, bytes) = store.requests();
    let limit = match behaviour {
        Behaviour::LimitsSize(limit) => limit.min(REQUEST_BYTES),
        Behaviour::LimitsRate(_) | Behaviour::Refuses(..) => REQUEST_BYTES,
    };
    let delivered = store.arrived();
    drop(agent);
    Row {
        acknowledged,
        delivered,
        requests,
        needed: bytes.div_ceil(limit),
    }
}

impl Row {
    fn check(&self, name: &str) {
        let text = self.text();
        assert_eq!(
            (self.acknowledged, self.delivered),
            (MESSAGES, MESSAGES),
            "{name}: {text}"
        );
        assert!(2 * self.requests <= 3 * self.needed, "{name}: {text}");
    }

    fn text(&self) -> String {
        let Self {
            acknowledged,
            delivered,
            requests,
            needed,
        } = self;
        format!("{acknowledged} | {delivered} | {requests} of {needed}")
    }
}

#[test]
fn stores_that_limit_or_refuse_lose_nothing_and_get_few_requests() {
    for stores in STORES.chunks(2) {
        thread::scope(|scope| {
            for (name, behaviour) in stores {
                for protocol in [Protocol::Http, Protocol::Grpc] {
                    scope.spawn(move || measure(None, protocol, *behaviour).check(name));
                }
            }
        });
    }
}

#[test]
fn table_of_the_stores() {
    let Some(document) = env::var_os("PULSETRAIN_STORES") else {
        return;
    };
    let before = env::var_os("PULSETRAIN_BEFORE").map(workspace_path);
    let mut text = "| store | over | acknowledged | delivered | requests | before: acknowledged | delivered | requests |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (name, behaviour) in STORES {
        for protocol in [Protocol::Http, Protocol::Grpc] {
            let row = measure(None, protocol, behaviour);
            let earlier = before
                .as_ref()
                .map(|program| measure(Some(program), protocol, behaviour).text());
            let earlier = earlier.unwrap_or_else(|| " | | ".to_owned());
            text += &format!("| {name} | {protocol:?} | {} | {earlier} |\n", row.text());
            write_table(&document, "stores", &text);
            row.check(name);
        }
    }
}

/// An agent with a receiver and one OTLP sink with a disk queue.
struct Agent {
    receiver: u16,
    health: u16,
    process: Process,
    _folder: Folder,
}

impl Agent {
    fn start(program: Option<&PathBuf>, endpoint: &str) -> Self {
        let folder = Folder::new();
        let [receiver, health] = [free_port(), free_port()];
        let yaml = format!(
            "state_folder: {}
gpu: {{enabled: false}}
telemetry: {{enabled: false}}
derive: {{signals: {{enabled: false}}, energy: {{enabled: false}}}}
sources: {{clients: {{otlp: {{listen: ['127.0.0.1:{receiver}']}}}}}}
sinks: {{o: {{otlp: {{endpoint: '{endpoint}', signals: [logs], compression: none, batch: {{max_bytes: {REQUEST_BYTES}B}}}}}}}}
limits: {{retry_after: 200ms, retry_at_most: 1s, drain: 1s}}
health: {{listen: '127.0.0.1:{health}'}}
",
            folder.path("state").display(),
        );
        let config = folder.file("agent.yaml", yaml);
        let mut command = match program {
            None => command(["agent"]),
            Some(program) => {
                let mut command = Command::new(program);
                command.arg("agent");
                command
            }
        };
        let mut process = Process::start("pulsetrain agent", command.arg("--config").arg(config));
        process.wait_until_ready(|| answers_ok(health, "/readyz"));
        Self {
            receiver,
            health,
            process,
            _folder: folder,
        }
    }

    fn sink(&self) -> Value {
        let (_, body) = request(self.health, "GET", "/status", "", &[]).expect("the agent answers");
        let status: Value = serde_json::from_slice(&body).expect("the status is JSON");
        status["sinks"][0].clone()
    }

    fn has_sent_all(&self) -> bool {
        let sink = self.sink();
        sink["queue"]["items"] == 0 && sink["disk"]["items"] == 0
    }
}

#[test]
fn refusing_store_is_named_once_with_the_data_that_is_held() {
    let behaviour = Behaviour::Refuses(403, Code::PermissionDenied, "no tenant");
    let store = Store::start(Protocol::Http, behaviour);
    let agent = Agent::start(None, &store.url());
    store.open();
    assert_eq!(send(agent.receiver, 0..50, 1000).len(), 50);
    wait_until("the status has the refusal", || {
        let error = agent.sink()["error"].to_string();
        error.contains("403") && error.contains("the data is held while there is room")
    });
    assert_eq!(agent.sink()["dropped_items"], 0);
    wait_until("everything has arrived", || store.arrived() == 50);
    wait_until("the recovery is in the log", || {
        agent.process.log().contains("delivers again")
    });
    let log = agent.process.stop_well();
    assert_eq!(log.matches("o: fails").count(), 1, "{log}");
    assert!(log.contains("0 items were dropped meanwhile"), "{log}");
}

#[test]
fn memory_limiter_of_a_real_collector_gets_everything_once_it_has_memory() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    for protocol in ["grpc", "http"] {
        let folder = Folder::new();
        let [grpc, http, health] = [free_port(), free_port(), free_port()];
        let output = folder.path("received.jsonl");
        let configure = |limit_mib: u32| {
            let output = output.display();
            folder.file(
                "collector.yaml",
                format!(
                    "extensions: {{health_check: {{endpoint: 127.0.0.1:{health}}}}}
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: 127.0.0.1:{grpc}}}, http: {{endpoint: 127.0.0.1:{http}}}}}}}}}
processors: {{memory_limiter: {{check_interval: 100ms, limit_mib: {limit_mib}, spike_limit_mib: 1}}}}
exporters: {{file: {{path: {output}, append: true}}}}
service:
  extensions: [health_check]
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{logs: {{receivers: [otlp], processors: [memory_limiter], exporters: [file]}}}}
"
                ),
            )
        };
        let config = configure(2);
        let mut collector = Process::start("collector", Command::new(&program).arg("--config").arg(&config));
        collector.wait_until_ready(|| answers_ok(health, "/"));
        let port = if protocol == "grpc" { grpc } else { http };
        let agent = Agent::start(None, &format!("{protocol}://127.0.0.1:{port}"));
        assert_eq!(send(agent.receiver, 0..MESSAGES, 1000).len(), MESSAGES);
        wait_until("the limiter refuses", || {
            agent.sink()["retries"].as_u64() > Some(2)
        });
        configure(4000);
        collector.reload();
        wait_until("everything is delivered", || {
            agent.sink()["delivered_items"] == MESSAGES
        });
        let sink = agent.sink();
        assert_eq!(sink["dropped_items"], 0);
        assert!(sink["retries"].as_u64() < Some(30), "{sink}");
        drop(agent);
        assert!(collector.stop().success());
        let text = fs::read_to_string(&output).expect("the Collector writes its file");
        assert_eq!(Items::parse(&text).of_kind("log").len(), MESSAGES);
    }
}
