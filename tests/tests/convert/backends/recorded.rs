//! Conversions from the recorded answers of a real Tempo: searches by TraceQL, traces by id in both versions and forms, and errors.

use pulsetrain_tests::{
    Finished, Folder, Items, RecordedTempo, convert, corpus, recorded_tempo_answer, recorded_tempo_body,
};
use serde_json::{Value, json};

use crate::backends::world::{Conversion, problems};

/// The trace of step 7, the only one that is recorded.
const STEP_7: &str = "bf04d53236b8d8b42727e890d3619508";
/// The trace that Tempo cut at its size limit.
const CUT: &str = "7853c58a36d0b4fbd05b37a07a82f27c";
/// The start of step 0, and a window with all steps.
const START: u64 = 1_795_806_761_000_000_000;
const WINDOW: &str = "2026-11-27T19:12:36Z..2026-11-27T19:13:41Z";

/// Returns the spans of step 7 as `tests/corpus/tempo/record.py` sent them.
fn step_7() -> Items {
    let start = START + 7_000_000_000;
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let number = |key: &str, value: u64| json!({"key": key, "value": {"intValue": value.to_string()}});
    let resources: Vec<Value> = [("31d15cc319a9c50e", "3df54515ce0901fb"), ("47a002373460c383", "71ab473587b0c95f")]
        .iter()
        .enumerate()
        .map(|(rank, (step, forward))| {
            let rank = rank as u64;
            let span = |id: &str, name: &str, from: u64, to: u64| {
                json!({"traceId": STEP_7, "spanId": id, "name": name, "kind": 1,
                    "startTimeUnixNano": (start + from).to_string(), "endTimeUnixNano": (start + to).to_string()})
            };
            let mut root = span(step, "train.step", 0, 300_000_000 + 200_000_000 * rank);
            root["attributes"] = json!([number("train.step", 7), {"key": "train.loss", "value": {"doubleValue": 4.8}}]);
            let mut pass = span(forward, "perf.forward", 1_000_001, 100_000_003);
            pass["parentSpanId"] = json!(step);
            pass["events"] = json!([{"timeUnixNano": (start + 50_000_000).to_string(), "name": "note", "attributes": [text("k", "v")]}]);
            json!({
                "resource": {"attributes": [text("service.instance.id", &format!("demo/{rank}")), number("train.rank", rank),
                    text("train.run.id", "demo"), text("service.name", "trainer")]},
                "scopeSpans": [{"scope": {"name": "pulsetrain"}, "spans": [root, pass]}],
            })
        })
        .collect();
    Items::parse(&json!({"resourceSpans": resources}).to_string())
}

fn query(url: &str, traceql: &str) -> Conversion {
    Conversion::new(&["--tempo", url, "--query", traceql, "--window", WINDOW])
}

#[test]
fn recorded_searches_by_duration_and_structure_return_the_exact_spans() {
    let tempo = RecordedTempo::start();
    for traceql in [
        "{ name = \"train.step\" && duration > 400ms }",
        "{ name = \"train.step\" && span.train.step = 7 } >> { name = \"perf.forward\" }",
    ] {
        query(&tempo.url(), traceql).items().assert_same(&step_7());
    }
}

#[test]
fn recorded_search_results_without_a_trace_are_each_reported() {
    let tempo = RecordedTempo::start();
    let found = query(&tempo.url(), "{ name = \"train.step\" }");
    let finished = found.run("out.jsonl").expect_code(1);
    let printed = problems(&finished);
    // The search lists twelve steps, and the answers have the trace of one.
    assert_eq!(printed.matches("there is no trace").count(), 11, "{printed}");
    Items::read(&found.path("out.jsonl")).assert_same(&step_7());
}

#[test]
fn recorded_search_without_a_result_is_reported() {
    let tempo = RecordedTempo::start();
    let finished = query(&tempo.url(), "{ name = \"no.such\" }")
        .run("out.jsonl")
        .expect_code(1);
    assert!(
        problems(&finished).contains("no trace matches"),
        "{}",
        problems(&finished)
    );
}

#[test]
fn recorded_errors_of_a_search_are_shown_in_the_words_of_tempo() {
    let tempo = RecordedTempo::start();
    let url = tempo.url();
    query(&url, "{ name = ")
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&[
            "400 Bad Request",
            "invalid TraceQL query: parse error at line 1, col 10",
        ]);
    let window = "2026-01-01T00:00:00Z..2026-11-27T19:13:41Z";
    Conversion::new(&[
        "--tempo",
        &url,
        "--query",
        "{ name = \"train.step\" }",
        "--window",
        window,
    ])
    .run("out.jsonl")
    .expect_code(1)
    .expect_words(&[
        "400 Bad Request",
        "range specified by start and end exceeds 168h0m0s",
    ]);
}

#[test]
fn recorded_trace_is_the_same_by_both_versions_of_the_interface() {
    for tempo in [RecordedTempo::start(), RecordedTempo::start_with_first_version()] {
        let trace = Conversion::new(&["--tempo", &tempo.url(), "--trace-id", STEP_7]);
        trace.items().assert_same(&step_7());
        let unknown = "1234567890abcdef1234567890abcdef";
        let both = Conversion::new(&[
            "--tempo",
            &tempo.url(),
            "--trace-id",
            &format!("{STEP_7},{unknown}"),
        ]);
        let finished = both.run("out.jsonl").expect_code(1);
        assert!(problems(&finished).contains(&format!("there is no trace {unknown}")));
        Items::read(&both.path("out.jsonl")).assert_same(&step_7());
    }
}

#[test]
fn recorded_answers_in_json_are_files_to_convert() {
    for name in ["trace_v1_json", "trace_v2_json"] {
        let (finished, items) = converted(name, "json");
        finished.expect_code(0);
        items.assert_same(&step_7());
    }
    // The first version answers in protobuf with OTLP itself.
    let (finished, items) = converted("trace_v1_protobuf", "binpb");
    finished.expect_code(0);
    items.assert_same(&step_7());
}

fn converted(name: &str, extension: &str) -> (Finished, Items) {
    let folder = Folder::new();
    let input = folder.file(&format!("answer.{extension}"), recorded_tempo_body(name));
    let output = folder.path("out.jsonl");
    let finished = convert(&[input], &output, &[]);
    (finished, Items::read(&output))
}

/// Tempo answers 200 with an empty partial success when it drops the spans above `max_bytes_per_trace`, and later returns the rest
/// as a complete trace. Its answers do not differ from complete ones.
#[test]
fn recorded_trace_that_tempo_cut_looks_complete() {
    assert_eq!(recorded_tempo_answer("push_trace_too_large")["status"], 200);
    let tempo = RecordedTempo::start();
    let cut = Conversion::new(&["--tempo", &tempo.url(), "--trace-id", CUT]);
    let items = cut.items();
    assert_eq!(items.len(), 4, "of the thirty spans that were sent");
    let (finished, from_file) = converted("trace_v2_cut_json", "json");
    finished.expect_code(0);
    from_file.assert_same(&items);
    assert!(corpus("tempo/README.md").is_file());
}
