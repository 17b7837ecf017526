//! Tunix's own metrics, sent by OpenTelemetry's SDK to a real agent: the output equals that of an import of the same exports.

use std::process::Command;

use pulsetrain_tests::{
    Finished, Folder, Import, Items, Judge, Process, command, corpus, free_port, http::answers_ok,
    otlp::attribute, some_or_return, wait_until,
};
use serde_json::json;

const SAMPLE: &str = "written/tunix_otel.jsonl";

#[test]
fn tunix_metrics_over_grpc_are_renamed_to_registry_names() {
    sent_is_as_imported("grpc", "");
}

#[test]
fn tunix_metrics_over_http_are_renamed_to_registry_names() {
    sent_is_as_imported("http", "");
}

#[test]
fn tunix_metrics_keep_their_names_with_rename_disabled() {
    let sent = some_or_return!(Sent::through("grpc", ", rename_tunix: false"));
    let points = sent.items.points_by_metric();
    assert!(points.contains_key("tunix.training.loss") && points.contains_key("tunix.sum.rollout_time"));
    assert!(!points.contains_key("train.loss"), "{points:?}");
}

fn sent_is_as_imported(protocol: &str, more: &str) {
    let sent = some_or_return!(Sent::through(protocol, more));
    let imported = Import::new(corpus(SAMPLE)).items();
    let names = |items: &Items| -> Vec<String> {
        let names = items.points_by_metric().into_keys();
        names
            .filter(|name| *name != "app.requests")
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(names(&sent.items), names(&imported));
    for name in names(&imported) {
        assert_eq!(series(&sent.items, &name), series(&imported, &name), "{name}");
    }
    the_rest_is_as_it_was(&sent.items);
}

/// Returns the values of a metric with their attributes, without their times, which are those of the exports.
fn series(items: &Items, name: &str) -> Vec<String> {
    let of_name = items.points_of(name).into_iter();
    let mut series: Vec<String> = of_name
        .map(|item| {
            let mut point = item["point"].clone();
            for time in ["timeUnixNano", "startTimeUnixNano"] {
                point.as_object_mut().expect("a point is an object").remove(time);
            }
            point.to_string()
        })
        .collect();
    series.sort();
    series
}

/// Asserts that the program's other telemetry is unchanged, and that all items have its resource.
fn the_rest_is_as_it_was(items: &Items) {
    let counted = items.values("app.requests");
    assert_eq!(counted.last().map(|(_, value)| *value), Some(15.0), "{counted:?}");
    let [span] = items.of_kind("span")[..] else {
        panic!("there is one span");
    };
    assert_eq!(span["span"]["name"], "load weights");
    let [log] = items.of_kind("log")[..] else {
        panic!("there is one log record");
    };
    assert_eq!(log["log"]["body"]["stringValue"], "weights are loaded");
    for item in items.of_kind("point") {
        let is_ours = item["metric"]["name"] != "app.requests";
        let expected = [
            ("service.name", Some(json!({"stringValue": "post-training"}))),
            ("host.cpus", Some(json!({"intValue": "96"}))),
            ("train.run.id", Some(json!({"stringValue": "grpo-1"}))),
            (
                "train.framework",
                is_ours.then(|| json!({"stringValue": "tunix"})),
            ),
        ];
        for (key, value) in expected {
            assert_eq!(attribute(&item["resource"], key), value.as_ref(), "{key}");
        }
    }
}

/// The output of an agent for the telemetry of the SDK.
struct Sent {
    items: Items,
    _folder: Folder,
}

impl Sent {
    /// Starts an agent, lets the SDK send the sample, and stops the agent; returns `None` without an SDK.
    fn through(protocol: &str, more: &str) -> Option<Self> {
        let python = Judge::PythonSdk.require_or_skip()?;
        let folder = Folder::new();
        let [port, health] = [free_port(), free_port()];
        let mut agent = agent(&folder, port, health, more);
        agent.wait_until_ready(|| answers_ok(health, "/readyz"));
        let mut send = Command::new(python);
        send.arg(Judge::PythonSdk.folder().join("send_tunix.py"))
            .args([protocol, &format!("http://127.0.0.1:{port}")]);
        Finished::run(send.arg(corpus(SAMPLE))).expect_code(0);
        let received = folder.path("received.jsonl");
        wait_until("the log record, which is the last, is written", || {
            !Items::read_complete_lines(&received).of_kind("log").is_empty()
        });
        agent.stop_well();
        let (_, items) = Items::read(&received).divide_by_service("pulsetrain");
        Some(Self {
            items,
            _folder: folder,
        })
    }
}

fn agent(folder: &Folder, port: u16, health: u16, more: &str) -> Process {
    let text = format!(
        "state_folder: {folder}/state
sources: {{sdk: {{otlp: {{listen: [127.0.0.1:{port}]{more}}}}}}}
sinks: {{file: {{file: {{path: {folder}/received.jsonl}}}}}}
gpu: {{enabled: false}}
derive: {{energy: {{enabled: false}}, signals: {{enabled: false}}}}
telemetry: {{enabled: false}}
health: {{listen: 127.0.0.1:{health}}}
",
        folder = folder.root().display()
    );
    let config = folder.file("agent.yaml", text);
    Process::start("pulsetrain agent", command(["agent", "--config"]).arg(config))
}
