use std::fs;

use super::*;

/// Returns the report of a file with one gauge.
fn report(metric: &str) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.jsonl");
    let text = format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{metric}]}}]}}]}}"#);
    fs::write(&path, text + "\n").expect("a file can be written");
    check_file(&path).expect("the file can be opened")
}

#[test]
fn metric_of_the_registry_is_clean() {
    let metric = r#"{"name":"train.loss","unit":"{loss}","gauge":{"dataPoints":[{"asDouble":1.5}]}}"#;
    let report = report(metric);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.items, 1);
}

#[test]
fn faults_of_a_metric_are_one_line_each() {
    let point = r#"{"asDouble":1.5,"attributes":[{"key":"train.rnak","value":{"intValue":"1"}}]}"#;
    let metric =
        format!(r#"{{"name":"train.loss","unit":"nat","gauge":{{"dataPoints":[{point},{point}]}}}}"#);
    let expected = r#"metric train.loss has the unit "nat"; the registry has "{loss}" (1 times, first in message 1)
metric train.loss has the attribute train.rnak, which the registry does not know; did you mean train.rank? (2 times, first in message 1)
"#;
    assert_eq!(report(&metric).to_string(), expected);
}
