//! `convert --by trace`: each trace is one row with the spans of all processes, judged by trace_processor.

use std::fmt::Write;

use pulsetrain_tests::{Folder, TraceProcessor, convert};
use serde_json::{Value, json};

const BEGIN: u64 = 1_795_000_000_000_000_000;
const TRACES: u64 = 40;
/// Services of a shop, in the order in which each calls the next.
const SERVICES: [&str; 15] = [
    "frontend-proxy",
    "frontend",
    "checkout",
    "cart",
    "valkey",
    "product-catalog",
    "currency",
    "payment",
    "shipping",
    "quote",
    "email",
    "accounting",
    "fraud-detection",
    "recommendation",
    "ad",
];

/// The spans of one service: in each trace it is within the service before, and traces overlap.
fn of_service(place: u64, name: &str) -> Value {
    let spans: Vec<Value> = (1..=TRACES)
        .map(|trace| {
            let begin = BEGIN + trace * 1_000 + place * 10;
            let mut span = json!({
                "traceId": format!("{trace:08x}{:024x}", 0xabc),
                "spanId": format!("{:016x}", trace * 100 + place + 1),
                "name": if place == 0 { "POST /checkout".to_owned() } else { format!("{name} call") },
                "startTimeUnixNano": begin.to_string(),
                "endTimeUnixNano": (BEGIN + trace * 1_000 + 9_000 - place * 10).to_string(),
            });
            if place > 0 {
                span["parentSpanId"] = format!("{:016x}", trace * 100 + place).into();
            }
            span
        })
        .collect();
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": name}}]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "test"}, "spans": spans}]}]})
}

/// Services come one after the other, the last first, so that children come before their parents.
fn shop() -> String {
    let mut text = String::new();
    for (place, name) in SERVICES.into_iter().enumerate().rev() {
        writeln!(text, "{}", of_service(place as u64, name)).expect("invariant: a string can be written");
    }
    text
}

#[test]
fn every_trace_is_one_row_with_each_span_under_its_parent() {
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let folder = Folder::new();
    let (input, trace) = (folder.file("shop.jsonl", shop()), folder.path("shop.pftrace"));
    // In memory, and through temporary files.
    for memory in ["64MiB", "64KiB"] {
        convert(&[&input], &trace, &["--by", "trace", "--memory", memory]).expect_code(0);
        let [rows, first, nested, services] = judge.query(
            &trace,
            [
                "select count(distinct t.id) as rows, count(distinct t.name) as names, count(*) as spans, sum(s.depth = 0) as roots \
                 from slice s join track t on t.id = s.track_id where s.name != 'resource'",
                "select t.name from slice s join track t on t.id = s.track_id where s.name != 'resource' order by s.ts limit 1",
                "select count(*) as nested from slice s join slice p on p.id = s.parent_id where p.depth = s.depth - 1",
                "select distinct category from slice where name != 'resource' order by category",
            ],
        );
        let spans = TRACES * SERVICES.len() as u64;
        assert_eq!(
            rows,
            [json!({"rows": TRACES, "names": TRACES, "spans": spans, "roots": TRACES})],
            "{memory}"
        );
        assert_eq!(first, [json!({"name": "POST /checkout 00000001"})]);
        assert_eq!(nested, [json!({"nested": spans - TRACES})]);
        let mut expected = SERVICES;
        expected.sort_unstable();
        let services: Vec<&str> = services
            .iter()
            .filter_map(|row| row["category"].as_str())
            .collect();
        assert_eq!(services, expected);
    }
}

#[test]
fn options_of_drawing_are_refused_where_no_trace_is_drawn() {
    let folder = Folder::new();
    let input = folder.file("shop.jsonl", shop());
    for option in [
        "--by=trace",
        "--step=1..2",
        "--rank=0",
        "--buckets",
        "--rows=a",
        "--process-by=a",
        "--downsample=1ms",
    ] {
        convert(&[&input], &folder.path("out.jsonl"), &[option])
            .expect_code(2)
            .expect_words(&["for Perfetto traces only"]);
    }
}

#[test]
fn a_trace_by_traces_cannot_be_asked_to_convert_back() {
    let folder = Folder::new();
    let input = folder.file("shop.jsonl", shop());
    convert(
        &[&input],
        &folder.path("out.pftrace"),
        &["--by", "trace", "--attributes", "full"],
    )
    .expect_code(2)
    .expect_words(&["--by trace", "--attributes full"]);
}
