//! A run of recent training steps, and the command that fetches them.

use std::path::{Path, PathBuf};

use pulsetrain_otlp::{json, limits::Limits};
use pulsetrain_tests::{Finished, Folder, Items, command, unix_nanos};
use serde_json::{Value, json};

/// The number of ranks of each step, and the number of spans of each rank in it.
pub(crate) const RANKS: u64 = 2;
pub(crate) const SPANS: u64 = 3;

const SECOND: u64 = 1_000_000_000;

/// Steps of several ranks; each step is a trace.
pub(crate) struct Steps {
    pub(crate) text: String,
    pub(crate) first: u64,
}

impl Steps {
    /// Creates steps; the last one has just ended. Each has a duration of a tenth of a second, with a forward and a
    /// backward pass.
    pub(crate) fn new(service: &str, count: u64) -> Self {
        let now = unix_nanos();
        let first = now - now % SECOND - (count + 2) * SECOND;
        let resources: Vec<Value> = (0..RANKS)
            .map(|rank| {
                let spans: Vec<Value> = (0..count).flat_map(|step| spans(first, step, rank)).collect();
                json!({
                    "resource": {"attributes": [
                        {"key": "service.name", "value": {"stringValue": service}},
                        {"key": "service.instance.id", "value": {"stringValue": format!("rank-{rank}")}},
                        {"key": "train.rank", "value": {"intValue": rank.to_string()}},
                    ]},
                    "scopeSpans": [{"scope": {"name": "test"}, "spans": spans}],
                })
            })
            .collect();
        Self {
            text: json!({"resourceSpans": resources}).to_string(),
            first,
        }
    }

    pub(crate) fn otlp(&self) -> Vec<u8> {
        protobuf(&self.text)
    }

    pub(crate) fn items(&self) -> Items {
        Items::parse(&self.text)
    }
}

fn spans(first: u64, step: u64, rank: u64) -> Vec<Value> {
    let start = first + step * SECOND;
    let id = |part: u64| format!("{:016x}", 1 + (step * RANKS + rank) * SPANS + part);
    let span = |part: u64, name: &str, from: u64, to: u64| {
        let mut span = json!({
            "traceId": trace_id(step),
            "spanId": id(part),
            "name": name,
            "kind": 1,
            "startTimeUnixNano": (start + from).to_string(),
            "endTimeUnixNano": (start + to).to_string(),
            "attributes": [{"key": "train.step", "value": {"intValue": step.to_string()}}],
        });
        if part > 0 {
            span["parentSpanId"] = id(0).into();
        }
        span
    };
    vec![
        span(0, "train.step", 0, 100_000_001),
        span(1, "perf.forward", 1_000, 40_000_000),
        span(2, "perf.backward", 40_000_000, 99_000_003),
    ]
}

/// Returns the trace id of a step. The first one begins with zeros, which stores tend to omit.
pub(crate) fn trace_id(step: u64) -> String {
    if step == 0 {
        format!("{:032x}", 0xfeed)
    } else {
        format!("5e{step:030x}")
    }
}

pub(crate) fn protobuf(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    json::decode(text.as_bytes(), &Limits::default(), &mut bytes).expect("the text is OTLP/JSON");
    bytes
}

/// A conversion, with a folder for its output.
pub(crate) struct Conversion {
    folder: Folder,
    arguments: Vec<String>,
}

impl Conversion {
    pub(crate) fn new(arguments: &[&str]) -> Self {
        Self {
            folder: Folder::new(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Converts into a file of this name.
    pub(crate) fn run(&self, name: &str) -> Finished {
        self.run_with(name, &[])
    }

    /// As [`run`](Self::run), with variables.
    pub(crate) fn run_with(&self, name: &str, variables: &[(&str, &str)]) -> Finished {
        let mut command = command(["convert", "--json", "-o"]);
        command.arg(self.path(name)).args(&self.arguments);
        command.env_remove("PULSETRAIN_HEADERS");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        command.envs(variables.iter().copied());
        Finished::run(&mut command)
    }

    /// Returns the items of a conversion to OTLP, which must succeed.
    #[track_caller]
    pub(crate) fn items(&self) -> Items {
        self.run("out.jsonl").expect_code(0);
        Items::read(&self.path("out.jsonl"))
    }
}

/// Returns the problems of the only input.
pub(crate) fn problems(finished: &Finished) -> String {
    finished.summary()["inputs"][0]["problems"].to_string()
}

pub(crate) fn exists(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() > 0)
}
