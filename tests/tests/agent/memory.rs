//! Texts of clients do not fill the memory, although every text of a message can be long and new in each message.

use pulsetrain_tests::{
    Folder, Process, command, free_port,
    http::{is_open, request},
    wait_until,
};
use serde_json::{Value, json};

/// The length of a text. A text that is kept for each message would be found by its growth.
const LENGTH: usize = 64 << 10;

/// The messages of each text before the first measurement. They fill the stores that have a limit.
const FIRST: usize = 20;

/// The growth that the allocator and buffers in flight explain.
const MARGIN_KIB: u64 = 16 << 10;

/// Returns messages with every text that is stored somewhere, each with its path.
fn messages() -> [(&'static str, Value); 3] {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let integer = |key: &str, value: i64| json!({"key": key, "value": {"intValue": value}});
    let resource = json!({"attributes": [
        text("service.name", "trainer"), text("service.instance.id", "i"), text("train.run.id", "r"), text("train.run.name", "n"),
        text("train.framework", "f"), text("host.name", "h"), text("k8s.pod.name", "p"), integer("train.rank", 0),
        integer("train.world_size", 2), text("own", "o"),
    ]});
    let scope = json!({"name": "scope", "version": "1", "attributes": [text("scope.own", "s")]});
    let time = "1700000000000000000";
    let point = |value: f64| {
        json!({"timeUnixNano": time, "asDouble": value, "attributes": [
            integer("train.step", 1), text("hw.id", "GPU-1"), text("hw.name", "gpu"), text("own", "o"),
        ], "exemplars": [{"timeUnixNano": time, "asDouble": 1.0, "filteredAttributes": [text("own", "o")]}]})
    };
    let gauge = |name: &str| json!({"name": name, "description": "d", "unit": "1", "gauge": {"dataPoints": [point(2.5)]}});
    let histogram = json!({"name": "own.histogram", "unit": "s", "histogram": {"aggregationTemporality": 2, "dataPoints": [
        {"timeUnixNano": time, "count": "1", "sum": 0.5, "explicitBounds": [1.0], "bucketCounts": ["1", "0"],
         "attributes": [text("own", "o")]},
    ]}});
    let metrics = ["train.loss", "gpu.throttle.time", "own.gauge"];
    let metrics: Vec<Value> = metrics
        .iter()
        .map(|name| gauge(name))
        .chain([histogram])
        .collect();
    let span = |name: &str, id: &str| {
        json!({"traceId": "00000000000000000000000000000001", "spanId": id, "name": name, "traceState": "a=b",
            "startTimeUnixNano": time, "endTimeUnixNano": "1700000001000000000",
            "attributes": [integer("train.step", 1), text("train.phase", "forward"), text("own", "o")],
            "events": [{"timeUnixNano": time, "name": "exception", "attributes": [text("exception.message", "m")]}],
            "links": [{"traceId": "00000000000000000000000000000001", "spanId": id, "traceState": "c=d",
                       "attributes": [text("own", "o")]}],
            "status": {"code": 2, "message": "failed"}})
    };
    let spans = [
        span("train.step", "0000000000000001"),
        span("perf.forward", "0000000000000002"),
    ];
    let record = |name: &str| {
        json!({"timeUnixNano": time, "eventName": name, "severityText": "INFO", "body": {"stringValue": "b"},
            "attributes": [text("train.verdict.subject", "GPU-1"), text("train.verdict.kind", "stall"), text("own", "o")]})
    };
    let records = [record("train.verdict"), record("own.event")];
    let whole = |resources: &str, scopes: &str, items: &str, list: Value| json!({resources: [{"resource": resource, "schemaUrl": "u", scopes: [{"scope": scope, "schemaUrl": "v", items: list}]}]});
    [
        (
            "/v1/metrics",
            whole("resourceMetrics", "scopeMetrics", "metrics", json!(metrics)),
        ),
        (
            "/v1/traces",
            whole("resourceSpans", "scopeSpans", "spans", json!(spans)),
        ),
        (
            "/v1/logs",
            whole("resourceLogs", "scopeLogs", "logRecords", json!(records)),
        ),
    ]
}

/// Appends the path of every text that may have any content.
fn text_paths(value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_fixed = key.ends_with("Nano")
                    || key.ends_with("Id")
                    || matches!(key.as_str(), "count" | "bucketCounts");
                if !is_fixed {
                    text_paths(value, &format!("{path}/{key}"), paths);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                text_paths(item, &format!("{path}/{at}"), paths);
            }
        }
        Value::String(_) => paths.push(path.to_owned()),
        _ => {}
    }
}

struct Sender {
    receiver: u16,
    /// The path of the receiver, the path of the text, and the message with a mark at the text.
    forms: Vec<(&'static str, String, String)>,
    sent: usize,
}

impl Sender {
    fn new(receiver: u16) -> Self {
        let mut forms = Vec::new();
        for (target, message) in messages() {
            let mut paths = Vec::new();
            text_paths(&message, "", &mut paths);
            for path in paths {
                let mut marked = message.clone();
                *marked.pointer_mut(&path).expect("the path is of this value") = json!("@");
                forms.push((target, path, marked.to_string()));
            }
        }
        assert!(forms.len() > 60, "{}", forms.len());
        Self {
            receiver,
            forms,
            sent: 0,
        }
    }

    /// Sends messages of each form.
    fn send(&mut self, messages: usize, mut after_form: impl FnMut(&str)) {
        let filler = "x".repeat(LENGTH);
        for (target, path, marked) in &self.forms {
            for _ in 0..messages {
                self.sent += 1;
                let text = marked.replacen("\"@\"", &format!("\"{}{filler}\"", self.sent), 1);
                wait_until("the receiver accepts a message", || {
                    let answer = request(
                        self.receiver,
                        "POST",
                        target,
                        "Content-Type: application/json\r\n",
                        text.as_bytes(),
                    );
                    let (status, body) = answer.expect("the receiver answers");
                    assert!(
                        matches!(status, 200 | 429 | 503),
                        "{status} {path}: {}",
                        String::from_utf8_lossy(&body)
                    );
                    status == 200
                });
            }
            after_form(path);
        }
    }
}

/// Returns the memory by owner that the status names.
fn memory_by_owner(health: u16) -> Value {
    let (code, body) = request(health, "GET", "/status", "", &[]).expect("the agent answers");
    assert_eq!(code, 200);
    let mut status: Value = serde_json::from_slice(&body).expect("the status is JSON");
    status["memory"].take()
}

#[test]
fn distinct_texts_in_any_field_leave_the_memory_as_it_is() {
    let folder = Folder::new();
    let [receiver, page, health] = [free_port(), free_port(), free_port()];
    let path = |name: &str| folder.path(name).display().to_string();
    let config = format!(
        "state_folder: {}
gpu: {{enabled: false}}
telemetry: {{interval: 1s}}
limits: {{queue_bytes: 4MiB}}
sources: {{sdk: {{otlp: {{listen: ['127.0.0.1:{receiver}'], max_message: 1MiB}}}}}}
sinks:
  page: {{prometheus: {{listen: 127.0.0.1:{page}, max_bytes: 8MiB}}}}
  recorder: {{flight_recorder: {{bytes: 8MiB, path: {}}}}}
health: {{listen: 127.0.0.1:{health}}}
",
        path("state"),
        path("recorded.pftrace"),
    );
    let config = folder.file("agent.yaml", config);
    let mut agent = Process::start("pulsetrain agent", command(["agent", "--config"]).arg(config));
    agent.wait_until_ready(|| is_open(receiver) && is_open(page));
    let mut sender = Sender::new(receiver);
    let mut last = agent.memory_kib();
    let mut growth = Vec::new();
    let mut measure = |path: &str| {
        let now = agent.memory_kib();
        growth.push(format!("{path}: {:+} KiB, {now}", now as i64 - last as i64));
        last = now;
    };
    sender.send(FIRST, &mut measure);
    let before = agent.peak_memory_kib();
    sender.send(9 * FIRST, &mut measure);
    let after = agent.peak_memory_kib();
    let status = memory_by_owner(health);
    for owner in status.as_array().expect("it is a list") {
        let figure = |name: &str| owner[name].as_u64().expect("it is a number");
        assert!(figure("bytes") <= figure("max_bytes"), "{status:#}");
    }
    let owners: Vec<&str> = status
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["owner"].as_str())
        .collect();
    assert_eq!(
        owners,
        ["derive", "sinks.page.series", "sinks.page.page", "sinks.recorder"]
    );
    assert!(
        after <= before + MARGIN_KIB,
        "the memory grew from {before} to {after} KiB: {growth:#?}"
    );
}
