//! Responses of a real Tempo and a real Jaeger, recorded in `tests/corpus/backends`, as inputs of `pulsetrain convert`: the
//! result is the spans of `sent.json`, except for the known losses of each store.

use std::{fs, path::PathBuf};

use pulsetrain_tests::{Finished, Folder, Items, convert, corpus, otlp::gzip};
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn read(inputs: &[PathBuf]) -> (Finished, Items) {
    let folder = Folder::new();
    let output = folder.path("out.jsonl");
    let finished = convert(inputs, &output, &[]);
    (finished, Items::read_complete_lines(&output))
}

fn converted(names: &[&str]) -> Items {
    let inputs: Vec<_> = names
        .iter()
        .map(|name| corpus(&format!("backends/{name}")))
        .collect();
    let (finished, items) = read(&inputs);
    finished.expect_code(0);
    items
}

/// Returns the sent spans, each modified by `lose`; with `trace`, only the spans of that trace.
fn sent(trace: Option<&str>, lose: fn(&mut Value)) -> Items {
    let text = fs::read_to_string(corpus("backends/sent.json")).expect("the corpus can be read");
    let mut message: Value = serde_json::from_str(&text).expect("the corpus is JSON");
    for resource in lists(&mut message, "resourceSpans") {
        for scope in lists(resource, "scopeSpans") {
            let spans = lists(scope, "spans");
            spans.retain(|span| trace.is_none_or(|trace| span["traceId"] == trace));
            spans.iter_mut().for_each(lose);
        }
    }
    Items::parse(&message.to_string())
}

fn lists<'a>(value: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    value[key].as_array_mut().expect("the corpus has the list")
}

/// This version of Tempo drops the flags.
fn without_flags(span: &mut Value) {
    span.as_object_mut().expect("a span is an object").remove("flags");
}

#[test]
fn tempo_responses_of_both_api_versions_return_every_span() {
    let one = sent(Some(TRACE), without_flags);
    assert_eq!(one.len(), 6);
    converted(&["tempo_api_traces.json"]).assert_same(&one);
    converted(&["tempo_api_v2_traces.json"]).assert_same(&one);
    // Two responses together contain both traces, with the link from one to the other.
    converted(&["tempo_api_v2_traces.json", "tempo_api_v2_traces_other.json"])
        .assert_same(&sent(None, without_flags));
}

#[test]
fn jaeger_otlp_responses_return_every_span() {
    converted(&["jaeger_api_v3_trace.json"]).assert_same(&sent(Some(TRACE), |_| {}));
    converted(&["jaeger_api_v3_traces.json"]).assert_same(&sent(None, |_| {}));
}

#[test]
fn jaeger_json_returns_every_span_except_unsupported_fields() {
    let mut items = converted(&["jaeger_api_traces.json"]);
    items.assert_same(&sent(None, as_jaeger_has_it));
    items = converted(&["jaeger_api_traces.json", "jaeger_api_v3_traces.json"]);
    assert_eq!(items.len(), 14);
}

/// Applies the losses of Jaeger: microseconds, lists and maps as text, no flags, no attributes of links; adds its clock
/// warning.
fn as_jaeger_has_it(span: &mut Value) {
    without_flags(span);
    for time in ["startTimeUnixNano", "endTimeUnixNano"] {
        let nanos = span[time].as_str().expect("a span has its times").to_owned();
        span[time] = format!("{}000", &nanos[..nanos.len() - 3]).into();
    }
    if let Some(links) = span.get_mut("links").and_then(Value::as_array_mut) {
        for link in links {
            link.as_object_mut()
                .expect("a link is an object")
                .remove("attributes");
        }
    }
    let attributes = span["attributes"].as_array_mut().expect("a span has attributes");
    for attribute in attributes {
        let text = match attribute["key"].as_str() {
            Some("list") => "[\"a\",2]",
            Some("map") => "{\"inner\":false}",
            _ => continue,
        };
        attribute["value"] = serde_json::json!({"stringValue": text});
    }
    if span["name"] == "dequeue" {
        let warning = "clock skew adjustment disabled; not applying calculated delta of -20ms";
        span["attributes"] = serde_json::json!([{
            "key": "jaeger.internal.warnings",
            "value": {"arrayValue": {"values": [{"stringValue": warning}]}},
        }]);
    }
}

/// Writes a file, and returns it with its folder.
fn saved(text: &[u8], name: &str) -> (Folder, PathBuf) {
    let folder = Folder::new();
    let path = folder.file(name, text);
    (folder, path)
}

#[test]
fn compressed_response_without_a_file_extension_is_read() {
    let text = fs::read(corpus("backends/tempo_api_traces.json")).unwrap();
    let (_folder, path) = saved(&gzip(&text), "answer");
    let (finished, items) = read(&[path]);
    finished.expect_code(0);
    items.assert_same(&sent(Some(TRACE), without_flags));
}

#[test]
fn truncated_or_error_response_is_reported() {
    let uncut = fs::read(corpus("backends/jaeger_api_v3_trace.json")).unwrap();
    // One cut after some complete spans, one before the first.
    for (end, words, is_empty) in [
        (uncut.len() / 2, "is used", false),
        (30, "is the saved file complete?", true),
    ] {
        let (_folder, cut) = saved(&uncut[..end], "cut.json");
        let (finished, items) = read(&[cut]);
        finished.expect_code(1).expect_words(&["begins at byte 0", words]);
        assert_eq!(items.is_empty(), is_empty);
    }
    let refused = br#"{"error":{"httpCode":404,"message":"No traces found"}}"#;
    let (_folder, refused) = saved(refused, "error.json");
    let (finished, _) = read(&[refused]);
    finished.expect_code(1).expect_words(&["No traces found"]);
}
