//! The third-party programs themselves, before they check our output: the output equals the input.

use std::{path::Path, process::Command};

use pulsetrain_tests::{
    Collector, Finished, Folder, Items, Judge, Process, Prometheus, free_port, http, some_or_return,
};
use serde_json::{Value, json};

#[test]
fn collector_judge_returns_the_items_it_received() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let collector = Collector::start(&program);
    let sent = one_point("0102030405060708090a0b0c0d0e0f10");
    let [_, port] = collector.ports();
    assert_eq!(post(port, "/v1/metrics", &sent), 200);
    let received = collector.stop();
    assert_eq!(
        received.points_by_metric().into_iter().collect::<Vec<_>>(),
        [("train.loss", 1)]
    );
    received.assert_same(&Items::parse(&sent));
}

#[test]
fn python_otlp_classes_round_trip_their_input() {
    let python = some_or_return!(Judge::PythonSdk.require_or_skip());
    let sent = one_point("0102030405060708090a0b0c0d0e0f10");
    let read = read_by(&python, &sent).expect_code(0);
    Items::parse(&read.stdout).assert_same(&Items::parse(&sent));
}

#[test]
fn python_otlp_classes_reject_an_unknown_field() {
    let python = some_or_return!(Judge::PythonSdk.require_or_skip());
    let odd = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"nom":"train.loss"}]}]}]}"#;
    let read = read_by(&python, odd);
    assert_ne!(read.code, Some(0), "{}", read.stdout);
    read.expect_words(&["nom"]);
}

#[test]
fn alertmanager_judge_returns_the_alert_it_received() {
    let program = some_or_return!(Judge::Alertmanager.require_or_skip());
    let folder = Folder::new();
    let config = folder.file(
        "alertmanager.yml",
        "route: {receiver: none}\nreceivers: [{name: none}]\n",
    );
    let port = free_port();
    let mut command = Command::new(program);
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.path={}", folder.path("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg("--cluster.listen-address=");
    let mut alertmanager = Process::start("alertmanager", &mut command);
    alertmanager.wait_until_ready(|| http::answers_ok(port, "/-/ready"));
    let alert = json!([{"labels": {"alertname": "TrainStalled"}}]).to_string();
    assert_eq!(post(port, "/api/v2/alerts", &alert), 200);
    let (_, alerts) = http::request(port, "GET", "/api/v2/alerts", "", &[]).expect("Alertmanager answers");
    let alerts: Value = serde_json::from_slice(&alerts).expect("the answer is JSON");
    assert_eq!(alerts[0]["labels"]["alertname"], "TrainStalled");
    assert_eq!(alerts.as_array().map(Vec::len), Some(1));
}

/// Returns a dashboard of Grafana with one panel.
fn grafana_dashboard(panel: &Value) -> String {
    json!({"uid": "a", "title": "A", "schemaVersion": 42, "panels": [panel]}).to_string()
}

#[test]
fn grafana_schema_types_reject_unknown_keys_and_values() {
    let program = some_or_return!(Judge::GrafanaSchema.require_or_skip());
    let folder = Folder::new();
    let check = |options: Value| {
        let panel = json!({"type": "stat", "id": 1, "options": options});
        let file = folder.file("dashboard.json", grafana_dashboard(&panel));
        let output = Command::new(&program)
            .arg(file)
            .output()
            .expect("node can be started");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    assert_eq!(check(json!({"graphMode": "area"})), (true, String::new()));
    for (wrong, word) in [
        (json!({"graphMode": "areas"}), "areas"),
        (json!({"grafMode": "area"}), "grafMode"),
    ] {
        let (success, errors) = check(wrong);
        assert!(!success && errors.contains(word), "{errors}");
    }
}

#[test]
fn dashboard_linter_rejects_a_panel_without_a_unit() {
    let program = some_or_return!(Judge::DashboardLinter.require_or_skip());
    let panel = json!({"type": "stat", "id": 1, "title": "A", "targets": [{"refId": "A", "expr": "up"}]});
    let folder = Folder::new();
    let file = folder.file("dashboard.json", grafana_dashboard(&panel));
    let output = Command::new(program)
        .args(["lint", "--strict"])
        .arg(file)
        .output()
        .expect("the linter can be started");
    let found = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && found.contains("unit"), "{found}");
}

#[test]
fn perses_panels_render_data_and_show_errors() {
    let perses = some_or_return!(Judge::Perses.require_or_skip());
    let prometheus = some_or_return!(Judge::Prometheus.require_or_skip());
    let prometheus = Prometheus::start(&prometheus, &[], &[]);
    let queries = [
        ("data", "vector(1)"),
        ("empty", "nothing_of_this_name"),
        ("broken", "sum("),
    ];
    let panel = |(name, query)| {
        let plugin = json!({"kind": "PrometheusTimeSeriesQuery", "spec": {"query": query}});
        let queries = json!([{"kind": "TimeSeriesQuery", "spec": {"plugin": plugin}}]);
        let chart = json!({"kind": "TimeSeriesChart", "spec": {}});
        let spec = json!({"display": {"name": name}, "plugin": chart, "queries": queries});
        (String::from(name), json!({"kind": "Panel", "spec": spec}))
    };
    let panels: serde_json::Map<_, _> = queries.into_iter().map(panel).collect();
    let place = |(x, (name, _)): (usize, (&str, &str))| {
        json!({"x": 8 * x, "y": 0, "width": 8, "height": 6,
            "content": {"$ref": format!("#/spec/panels/{name}")}})
    };
    let items: Vec<Value> = queries.into_iter().enumerate().map(place).collect();
    let dashboard = json!({"kind": "Dashboard", "metadata": {"name": "a", "project": "a"}, "spec": {
        "display": {"name": "A"}, "duration": "5m", "panels": panels,
        "layouts": [{"kind": "Grid", "spec": {"items": items}}]}});
    let folder = Folder::new();
    let file = folder.file("dashboard.json", dashboard.to_string());
    let shot = folder.path("shot.png");
    let looks =
        json!({"prometheus": prometheus.url(), "looks": [{"dashboard": file, "then": "dark", "shot": shot}]});
    let output = Command::new(perses)
        .arg(looks.to_string())
        .output()
        .expect("node can be started");
    assert!(output.status.success(), "{output:?}");
    let look: Value = serde_json::from_slice(&output.stdout).expect("the look is JSON");
    for theme in ["panels", "then"] {
        let drawn = |at: usize| (&look[theme][at]["title"], &look[theme][at]["drawn"]);
        assert_eq!(drawn(0), (&json!("data"), &json!(true)), "{look}");
        assert_eq!(drawn(1), (&json!("empty"), &json!(false)), "{look}");
        assert_eq!(drawn(2), (&json!("broken"), &json!(false)), "{look}");
        let error = look[theme][2]["error"].as_str().unwrap_or_default();
        assert!(error.contains("parse error"), "{look}");
    }
    assert!(shot.exists());
}

/// Parses some OTLP/JSON with the Python classes, which print the parsed content.
fn read_by(python: &Path, text: &str) -> Finished {
    let folder = Folder::new();
    let mut read = Command::new(python);
    read.arg(Judge::PythonSdk.folder().join("read_otlp.py"));
    Finished::run(read.arg(folder.file("in.jsonl", text)))
}

/// Returns one message on one line: a NaN point with an exemplar.
fn one_point(trace_id: &str) -> String {
    json!({"resourceMetrics": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "trainer"}}]},
        "scopeMetrics": [{"scope": {"name": "hand"}, "metrics": [{"name": "train.loss", "unit": "{loss}",
            "gauge": {"dataPoints": [{
                "timeUnixNano": "1795220320989663449",
                "asDouble": "NaN",
                "attributes": [{"key": "train.component", "value": {"stringValue": "lm"}}],
                "exemplars": [{"timeUnixNano": "5", "asInt": "0", "traceId": trace_id, "spanId": "0102030405060708"}],
            }]},
        }]}],
    }]})
    .to_string()
}

/// Returns the status of a plain HTTP POST of JSON.
fn post(port: u16, path: &str, body: &str) -> u16 {
    let answer = http::post_json(port, path, body);
    answer.expect("the server answers").0
}
