//! The judges themselves, before anything of ours is judged by them: what goes in comes out, and nothing else.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

use pulsetrain_tests::{Collector, Items, Judge};
use serde_json::json;

#[test]
fn the_collector_writes_what_it_is_sent() {
    let Some(program) = Judge::Collector.require_or_skip() else {
        return;
    };
    let collector = Collector::start(&program);
    let sent = one_point("0102030405060708090a0b0c0d0e0f10");
    assert_eq!(post(&collector.http(), "/v1/metrics", &sent), "200");
    let received = collector.stop();
    assert_eq!(
        received.points_by_metric().into_iter().collect::<Vec<_>>(),
        [("train.loss", 1)]
    );
    received.assert_same(&Items::parse(&sent));
}

#[test]
fn the_python_classes_read_what_they_are_given() {
    let Some(python) = Judge::PythonSdk.require_or_skip() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("in.jsonl");
    let sent = one_point("0102030405060708090a0b0c0d0e0f10");
    fs::write(&file, &sent).expect("a temporary file can be written");
    let output = Command::new(&python)
        .arg(Judge::PythonSdk.folder().join("read_otlp.py"))
        .arg(&file)
        .output();
    let output = output.expect("python can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Items::parse(&String::from_utf8_lossy(&output.stdout)).assert_same(&Items::parse(&sent));
}

#[test]
fn the_python_classes_refuse_a_field_that_otlp_does_not_have() {
    let Some(python) = Judge::PythonSdk.require_or_skip() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("in.jsonl");
    fs::write(
        &file,
        r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"nom":"train.loss"}]}]}]}"#,
    )
    .expect("a temporary file can be written");
    let output = Command::new(&python)
        .arg(Judge::PythonSdk.folder().join("read_otlp.py"))
        .arg(&file)
        .output();
    let output = output.expect("python can be started");
    assert!(
        !output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("nom"));
}

/// One message on one line: a NaN point with an exemplar.
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

/// The status of a plain HTTP POST of JSON.
fn post(address: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}
