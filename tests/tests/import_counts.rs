//! Every number of a Surogate log arrives exactly once, at the record's own time and in the registry's unit.
//!
//! What is expected is worked out here from the log with plain serde_json and the table below, and by nothing of ours.

use pulsetrain_tests::{Finished, Import, Items, SurogateLog, corpus};
use serde_json::{Value, json};

#[test]
fn every_number_of_a_dense_model_arrives_once() {
    every_number_arrives_once("surogate/training_dense.json");
}

#[test]
fn every_number_of_a_mixture_of_experts_arrives_once() {
    every_number_arrives_once("surogate/training_moe.json");
}

#[test]
fn every_step_has_one_loss_at_its_own_time() {
    for name in ["surogate/training_dense.json", "surogate/training_moe.json"] {
        let (_, items) = import(name);
        let log = SurogateLog::read(&corpus(name));
        let steps = log.of_kind("step");
        let expected: Vec<_> = steps
            .iter()
            .map(|step| (step.time(), step.number("loss")))
            .collect();
        assert_eq!(expected.len(), 30);
        assert_eq!(items.values("train.loss"), expected);
    }
}

#[test]
fn every_measured_step_is_a_span_that_ends_at_the_record() {
    for name in ["surogate/training_dense.json", "surogate/training_moe.json"] {
        let (_, items) = import(name);
        let mut spans: Vec<_> = items
            .of_kind("span")
            .into_iter()
            .map(|item| &item["span"])
            .collect();
        spans.retain(|span| span["name"] == "train.step");
        spans.sort_by_key(|span| span["endTimeUnixNano"].to_string());
        let log = SurogateLog::read(&corpus(name));
        let steps = log.of_kind("step");
        assert_eq!(spans.len(), steps.len());
        for (span, step) in spans.iter().zip(steps) {
            let nanos = step.number("duration_ms") as u64 * 1_000_000;
            assert_eq!(span["endTimeUnixNano"], step.time().to_string());
            assert_eq!(span["startTimeUnixNano"], (step.time() - nanos).to_string());
            assert_eq!(
                attribute(span, "train.step"),
                json!({"intValue": step.number("step").to_string()})
            );
            assert_eq!(
                attribute(span, "train.loss"),
                json!({"doubleValue": format!("{:?}", step.number("loss"))})
            );
        }
    }
}

#[test]
fn the_summary_counts_what_is_in_the_file() {
    for name in ["surogate/training_dense.json", "surogate/training_moe.json"] {
        let (finished, items) = import(name);
        let summary = finished.summary();
        for (field, count) in [
            ("records", SurogateLog::read(&corpus(name)).count()),
            ("points", items.of_kind("point").len()),
            ("spans", items.of_kind("span").len()),
            ("events", items.of_kind("log").len()),
            ("delivered", items.len()),
        ] {
            assert_eq!(summary[field], count, "{field} of {name}");
        }
        assert_eq!(
            [&summary["skipped"], &summary["dropped"]],
            [&json!({}), &json!({})]
        );
    }
}

fn every_number_arrives_once(name: &str) {
    let (_, items) = import(name);
    let log = SurogateLog::read(&corpus(name));
    let (expected, states) = (log.expected_points(), log.expected_changes());
    let mut counts = items.points_by_metric();
    counts.retain(|metric, _| !states.contains_key(metric));
    let expected_counts = expected
        .iter()
        .map(|(metric, points)| (*metric, points.len()))
        .collect();
    assert_eq!(counts, expected_counts);
    for (metric, points) in expected {
        for ((time, value), (expected_time, expected)) in items.values(metric).into_iter().zip(points) {
            assert_eq!(time, expected_time, "{metric}");
            let close = value == expected || (value - expected).abs() <= 1e-12 * expected.abs();
            assert!(close, "{metric} at {time} is {value} and not {expected}");
        }
    }
    for (metric, changes) in states {
        state_set_changes(&items, metric, &changes);
    }
}

/// At each change exactly one state holds, and every other state is said not to.
fn state_set_changes(items: &Items, metric: &str, changes: &[u64]) {
    let values = items.values(metric);
    let holding: Vec<_> = values
        .iter()
        .filter(|(_, value)| *value == 1.0)
        .map(|(time, _)| *time)
        .collect();
    assert_eq!(holding, changes, "{metric}");
    let mut states: Vec<_> = items
        .of_kind("point")
        .into_iter()
        .filter(|item| item["metric"]["name"] == metric)
        .collect();
    states.sort_by_key(|item| item["point"]["attributes"].to_string());
    states.dedup_by_key(|item| item["point"]["attributes"].to_string());
    assert!(states.len() > 2, "{metric} has {} states", states.len());
    assert_eq!(values.len(), changes.len() * states.len(), "{metric}");
}

fn import(name: &str) -> (Finished, Items) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let out = folder.path().join("out.jsonl");
    let finished = Import::of(corpus(name)).to(&out).run().expect_code(0);
    (finished, Items::read(&out))
}

fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().expect("a step has attributes");
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found.unwrap_or_else(|| panic!("no {key} in {span}"))["value"].clone()
}
