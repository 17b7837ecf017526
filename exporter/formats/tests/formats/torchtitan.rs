//! torchtitan: the structured log.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Imported,
    imported::{attributes, sample_text, time},
};

const SAMPLE: &str = "torchtitan/training.global_rank_0.20261121-002911-Z3DKG9.jsonl";

#[test]
fn every_span_has_the_duration_of_the_log() {
    let rows: Vec<Value> = sample_text(SAMPLE)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let imported = Imported::new("torchtitan-structured", SAMPLE);
    let ends: Vec<&Value> = rows
        .iter()
        .filter(|row| {
            row["log_type_name"]
                .as_str()
                .is_some_and(|name| name.ends_with("_end"))
        })
        .collect();
    assert_eq!((ends.len(), imported.spans.len()), (6, 6));
    for (span, row) in imported.spans.iter().zip(ends) {
        let nanos = time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano");
        let expected = row["value"].as_f64().expect("milliseconds") * 1e6;
        assert!((nanos as f64 - expected).abs() <= 1.0, "{span}");
        assert_eq!(
            time(span, "endTimeUnixNano"),
            row["time_us"].as_u64().expect("microseconds") * 1000
        );
    }
}

const WRITTEN: &str = "written/torchtitan_structured.jsonl";

/// Returns the name of the parent of each span, by the span's name in the log and its step.
fn parents(spans: &[Value]) -> BTreeMap<(String, String), String> {
    let name = |span: &Value| {
        let attributes = attributes(span);
        let stage = attributes.get("perf.stage").cloned();
        stage.unwrap_or_else(|| span["name"].as_str().expect("a span has a name").to_owned())
    };
    let by_id: BTreeMap<&str, &Value> = spans
        .iter()
        .map(|span| (span["spanId"].as_str().expect("a span has an id"), span))
        .collect();
    let parent = |span: &Value| {
        let parent = span["parentSpanId"].as_str().filter(|id| !id.is_empty())?;
        let parent = by_id
            .get(parent)
            .unwrap_or_else(|| panic!("{span} lies in nothing that is there"));
        assert_eq!(parent["traceId"], span["traceId"], "{span}");
        Some(name(parent))
    };
    let key = |span: &Value| {
        let step = attributes(span).get("train.step").cloned();
        (name(span), step.unwrap_or_default())
    };
    assert_eq!(by_id.len(), spans.len(), "ids are different");
    spans
        .iter()
        .map(|span| (key(span), parent(span).unwrap_or_default()))
        .collect()
}

#[test]
fn spans_are_nested_in_the_open_span_of_their_task() {
    let imported = Imported::new("torchtitan-structured", WRITTEN);
    let parents = parents(&imported.spans);
    for (name, step, parent) in [
        ("train.step", "1", ""),
        ("perf.data", "1", "train.step"),
        ("perf.forward_backward", "1", "train.step"),
        ("perf.optimizer", "4", "train.step"),
        ("collect_dist_metrics", "2", "train.step"),
        ("gc_collect", "3", "train.step"),
        ("eval.run", "4", "train.step"),
        ("train.checkpoint.save", "4", "train.step"),
        ("run.init", "", ""),
        ("Trainer.build", "", ""),
        ("model_parallelism_init", "", "Trainer.build"),
        ("train.checkpoint.load", "", ""),
        ("vllm_engine_step", "5", "generate"),
    ] {
        let found = parents.get(&(name.to_owned(), step.to_owned()));
        assert_eq!(found.map(String::as_str), Some(parent), "{name} of step {step}");
    }
    let tagged: Vec<&Value> = imported
        .spans
        .iter()
        .filter(|span| attributes(span).contains_key("perf.tags"))
        .collect();
    assert!(!tagged.is_empty());
    for span in tagged {
        assert_eq!(attributes(span)["perf.tags"], "[\"gc\"]");
        assert_eq!(attributes(span)["train.step"], "3");
    }
    let messages = imported
        .events
        .iter()
        .map(|event| event["body"]["stringValue"].clone());
    let error = "[step 5] fwd_bwd_error: torch.OutOfMemoryError: CUDA out of memory";
    assert!(messages.into_iter().any(|message| message == error));
}
