//! Samples that are JSON, by `serde_json`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::expected::{ExpectedLog, clock, number};

/// Parses JSON lines. Python's NaN is put in quotes, which the readers accept as a number too.
fn rows(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes).replace(": NaN", ": \"NaN\"");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

fn float(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// `training.json` of Surogate: numbers as `kind.field`.
pub(crate) fn surogate(bytes: &[u8]) -> ExpectedLog {
    let records: Vec<Value> = serde_json::from_slice(bytes).expect("the log is JSON");
    let mut expected = ExpectedLog::default();
    for record in &records {
        let kind = record["log"].as_str().expect("a record has a kind");
        let time = record["time"].as_str().expect("a record has a time");
        expected.time = Some(clock(&time["2026-11-21 ".len()..]));
        expected.attributes = match kind {
            "dataset" => vec![(
                "data.split",
                record["split"].as_str().unwrap_or_default().to_owned(),
            )],
            "gpu" => vec![("gpu.index", record["id"].to_string())],
            _ => Vec::new(),
        };
        match kind {
            "step" | "eval" | "moe" | "gpu" | "dataset" | "sol" => {
                let others = ["log", "time", "step", "rank", "id", "split"];
                expected.fields(&format!("{kind}."), record, &others);
            }
            "allocator" => segments(record, &mut expected),
            _ => expected.events += 1,
        }
        if kind == "step" {
            expected.steps.push(float(&record["step"]));
        }
        expected.spans += usize::from(["step", "eval"].contains(&kind));
    }
    expected
}

fn segments(record: &Value, expected: &mut ExpectedLog) {
    for segment in record["stats"].as_array().expect("an allocator lists segments") {
        let name = segment["name"].as_str().expect("a segment has a name");
        expected.attributes = vec![("memory.segment.name", name.to_owned())];
        expected.fields("allocator.", segment, &["name"]);
    }
}

/// `surogate_metrics.jsonl`.
pub(crate) fn surogate_jsonl(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for row in rows(bytes) {
        expected.time = Some((float(&row["ts"]) * 1e9) as u64);
        expected.attributes = Vec::new();
        let others = ["type", "ts", "step", "gpu_id"];
        match row["type"].as_str() {
            Some("config") => expected.events += 1,
            Some("gpu") => {
                expected.attributes = vec![("gpu.index", row["gpu_id"].to_string())];
                expected.fields("gpu.", &row, &others);
            }
            _ => {
                expected.spans += 1;
                if row.get("train/loss").is_some() {
                    expected.steps.push(float(&row["step"]));
                }
                expected.fields("", &row, &others);
            }
        }
    }
    expected
}

/// `metrics_file` and the windows of `gcs_metrics` of MaxText.
pub(crate) fn maxtext_metrics(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for row in rows(bytes) {
        expected.steps.push(float(&row["step"]));
        expected.fields("", &row, &["step", "run_name"]);
    }
    expected
}

/// Reads `trainer_state.json`: its history, its count of operations and its progress. All other fields are settings, or repeat
/// the last entry of the history.
pub(crate) fn hf_state(bytes: &[u8]) -> ExpectedLog {
    let state: Value = serde_json::from_slice(bytes).expect("the state is JSON");
    let mut expected = ExpectedLog::default();
    for row in state["log_history"].as_array().expect("a history is a list") {
        expected.steps.push(float(&row["step"]));
        expected.fields("", row, &["step"]);
    }
    expected.number("total_flos", float(&state["total_flos"]));
    expected.number(
        "progress",
        float(&state["global_step"]) / float(&state["max_steps"]),
    );
    for (key, value) in state.as_object().expect("a state is an object") {
        match key.as_str() {
            _ if value.is_null() => {}
            "log_history" | "total_flos" => {}
            "epoch" | "global_step" | "num_input_tokens_seen" => expected.leave_out("said_again"),
            "stateful_callbacks" => expected.leave_out("trainer_bookkeeping"),
            _ if key.starts_with("is_") => expected.leave_out("trainer_bookkeeping"),
            _ => expected.events += 1,
        }
    }
    expected
}

/// The structured log of torchtitan.
pub(crate) fn torchtitan_structured(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for row in rows(bytes) {
        expected.time = row["time_us"].as_u64().map(|micros| micros * 1000);
        match row["log_type_name"].as_str().expect("a record has a name") {
            "metric_value" => {
                expected.steps.push(float(&row["step"]));
                expected.number(
                    row["event_name"].as_str().expect("a value has a name"),
                    float(&row["value"]),
                );
            }
            name if name.ends_with("_end") => expected.spans += 1,
            name if name.ends_with("_start") && row["log_type"] == "event" => {
                expected.leave_out("start_told_by_end");
            }
            _ => expected.events += 1,
        }
    }
    // The environment of the single writer.
    expected.events += 1;
    expected
}

/// JSON lines of no system: the texts of a record are one event.
pub(crate) fn any_json(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for row in rows(bytes) {
        expected.time = row["ts"].as_u64().map(|millis| millis * 1_000_000);
        expected.steps.push(float(&row["step"]));
        expected.number("train.loss", float(&row["train.loss"]));
        expected.number("optim.lr", float(&row["optim"]["lr"]));
        let clipped = row["optim"]["clipped"].as_bool().expect("yes or no");
        expected.number("optim.clipped", f64::from(u8::from(clipped)));
        expected.events += usize::from(row["note"].is_string());
    }
    expected
}

/// Tunix's OpenTelemetry metrics, as the SDK prints them. The names are those of its tags.
pub(crate) fn tunix_console(bytes: &[u8]) -> ExpectedLog {
    let text = String::from_utf8_lossy(bytes);
    let exports = text.split("\n{\n").skip(1);
    let exports =
        exports.map(|export| serde_json::from_str(&format!("{{{export}")).expect("an export is JSON"));
    tunix_exports(
        &exports.collect::<Vec<_>>(),
        "data",
        "data_points",
        |attributes, key| attributes[key].as_str().expect("text").to_owned(),
    )
}

/// The same as OTLP/JSON.
pub(crate) fn tunix_otlp(bytes: &[u8]) -> ExpectedLog {
    tunix_exports(&rows(bytes), "gauge", "dataPoints", |attributes, key| {
        let pairs = attributes.as_array().expect("a list");
        let pair = pairs.iter().find(|pair| pair["key"] == key);
        pair.expect("it is there")["value"]["stringValue"]
            .as_str()
            .expect("text")
            .to_owned()
    })
}

fn tunix_exports(
    exports: &[Value],
    data: &str,
    points: &str,
    attribute: fn(&Value, &str) -> String,
) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    let at = |value: &Value, keys: [&str; 2]| keys.iter().find_map(|key| value.get(*key)).cloned();
    // The SDK exports a gauge repeatedly until it is set again: an equal value at the same step is not a second value.
    let (mut steps, mut last) = (BTreeMap::new(), BTreeMap::new());
    for export in exports {
        let resource = at(export, ["resource_metrics", "resourceMetrics"]).expect("an export");
        let scope = at(&resource[0], ["scope_metrics", "scopeMetrics"]).expect("a resource");
        let mut newest = None;
        let metrics = scope[0]["metrics"].as_array().expect("metrics");
        let is_step = |metric: &&Value| metric["name"] == "tunix.training.step";
        for point in metrics
            .iter()
            .filter(is_step)
            .flat_map(|metric| metric[data][points].as_array().expect("points"))
        {
            let of = ["tunix.metrics.prefix", "tunix.training.mode"]
                .map(|key| attribute(&point["attributes"], key));
            let value = ["value", "asInt"].iter().find_map(|key| point.get(*key));
            steps.insert(of, value.cloned());
        }
        for metric in metrics {
            for point in metric[data][points].as_array().expect("points") {
                let time = at(point, ["time_unix_nano", "timeUnixNano"]).expect("a time");
                expected.time = Some(
                    time.as_u64()
                        .unwrap_or_else(|| number(time.as_str().expect("text")) as u64),
                );
                let value = ["value", "asDouble", "asInt"]
                    .iter()
                    .find_map(|key| point.get(*key));
                let value = value.expect("a point has a value");
                let value = value
                    .as_f64()
                    .unwrap_or_else(|| number(value.as_str().expect("text")));
                let prefix = attribute(&point["attributes"], "tunix.metrics.prefix");
                let mode = attribute(&point["attributes"], "tunix.training.mode");
                let name = metric["name"].as_str().expect("a name");
                let name = match name {
                    "tunix.training.step" => {
                        newest = Some(value.max(newest.unwrap_or(value)));
                        expected.leave_out("step_again");
                        continue;
                    }
                    "tunix.training.gradient.norm" => "grad_norm",
                    _ => name.trim_start_matches("tunix.").trim_start_matches("training."),
                };
                let tag = format!("{prefix}/{mode}/{}", name.replace('.', "/"));
                let news = (steps.get(&[prefix, mode]).cloned(), value.to_bits());
                if last.get(&tag) == Some(&news) {
                    expected.leave_out("exported_again");
                } else {
                    expected.number(tag.clone(), value);
                }
                last.insert(tag, news);
            }
        }
        expected.steps.extend(newest);
    }
    expected
}
