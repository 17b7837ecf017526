//! Threads of OTLP spans: one row per thread, checked by trace_processor, and their names and ids after a conversion back.

use std::collections::BTreeSet;

use pulsetrain_tests::{Folder, TraceProcessor, convert, otlp, some_or_return};
use serde_json::{Value, json};

fn span(number: u64, start: u64, attributes: &[(&str, Value)]) -> Value {
    let attributes: Vec<_> = attributes
        .iter()
        .map(|(key, value)| json!({"key": key, "value": value}))
        .collect();
    let time = |nanos: u64| (1_700_000_000_000_000_000 + nanos).to_string();
    json!({"traceId": "1f".repeat(16), "spanId": format!("{number:016x}"), "name": format!("work {number}"),
        "startTimeUnixNano": time(start), "endTimeUnixNano": time(start + 100), "attributes": attributes})
}

#[test]
fn threads_with_the_same_name_get_separate_tracks_and_round_trip() {
    let folder = Folder::new();
    let name = |text: &str| ("thread.name", json!({"stringValue": text}));
    let id = |number: u64| ("thread.id", json!({"intValue": number.to_string()}));
    let spans = [
        span(1, 0, &[name("worker"), id(41)]),
        // The attributes in reverse order, after the first thread is free again.
        span(2, 200, &[id(42), name("worker")]),
        span(3, 400, &[name("worker"), id(41)]),
        span(4, 0, &[name("exec-7"), id(7)]),
        span(5, 0, &[id(9)]),
        span(6, 0, &[name("main")]),
    ];
    let message = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    let input = folder.file("run.jsonl", message.to_string());
    for more in [&[][..], &["--memory", "1KiB"]] {
        let trace = folder.path("run.pftrace");
        convert(&[&input], &trace, more).expect_code(0);
        let back = folder.path("back.jsonl");
        convert(&[&trace], &back, &[]).expect_code(0);
        let mut found = BTreeSet::new();
        for span in otlp::messages(&back).iter().flat_map(otlp::spans) {
            let attributes = otlp::list(&span["attributes"]);
            let keys: BTreeSet<_> = attributes
                .iter()
                .map(|attribute| attribute["key"].to_string())
                .collect();
            assert_eq!(keys.len(), attributes.len(), "no key is there twice: {span}");
            let name = span["name"].as_str().expect("a span has a name").to_owned();
            found.insert((name, otlp::text_of(span, "thread.name").map(str::to_owned)));
        }
        let expected = ["worker", "worker", "worker", "exec-7", "thread 9", "main"];
        let expected = (1..)
            .zip(expected)
            .map(|(number, thread)| (format!("work {number}"), Some(thread.to_owned())));
        assert_eq!(found, expected.collect());
        let judge = some_or_return!(TraceProcessor::require_or_skip());
        let [rows] = judge.query(
            &trace,
            [
                "select s.name, t.name as row, count() over (partition by t.id) as spans from slice s
              join process_track t on t.id = s.track_id where s.dur > 0 order by s.name",
            ],
        );
        let row = |number: u64, row: &str, spans: u64| json!({"name": format!("work {number}"), "row": row, "spans": spans});
        assert_eq!(
            rows,
            [
                row(1, "thread worker 41", 2),
                row(2, "thread worker 42", 1),
                row(3, "thread worker 41", 2),
                row(4, "thread exec-7", 1),
                row(5, "thread 9", 1),
                row(6, "thread main", 1),
            ]
        );
    }
}
