//! The judges themselves, before anything of ours is judged by them: what goes in comes out, and nothing else.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use pulsetrain_tests::{Collector, Folder, Items, Judge};
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
    let sent = one_point("0102030405060708090a0b0c0d0e0f10");
    let (success, out, errors) = read_by(&python, &sent);
    assert!(success, "{errors}");
    Items::parse(&out).assert_same(&Items::parse(&sent));
}

#[test]
fn the_python_classes_refuse_a_field_that_otlp_does_not_have() {
    let Some(python) = Judge::PythonSdk.require_or_skip() else {
        return;
    };
    let odd = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"nom":"train.loss"}]}]}]}"#;
    let (success, out, errors) = read_by(&python, odd);
    assert!(!success, "{out}");
    assert!(errors.contains("nom"), "{errors}");
}

/// Whether the classes of Python can read some OTLP/JSON, what they read, and what they say.
fn read_by(python: &Path, text: &str) -> (bool, String, String) {
    let folder = Folder::new();
    let output = Command::new(python)
        .arg(Judge::PythonSdk.folder().join("read_otlp.py"))
        .arg(folder.file("in.jsonl", text))
        .output()
        .expect("python can be started");
    let [out, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    (output.status.success(), out, errors)
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
