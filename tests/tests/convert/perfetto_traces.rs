//! The grouping by OTLP trace in a Perfetto trace: rows (`convert --by trace`) and colours, checked by trace_processor.

use std::fmt::Write;

use pulsetrain_tests::{Folder, TraceProcessor, convert, corpus, some_or_return};
use serde_json::{Value, json};

const BEGIN: u64 = 1_795_000_000_000_000_000;
const TRACES: u64 = 40;
/// Services of a shop, in the order of their calls.
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

/// Returns the spans of one service: in each trace, its span is inside that of the previous service, and traces overlap.
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

/// Returns the services in reverse order, so that children come before their parents.
fn shop() -> String {
    let mut text = String::new();
    for (place, name) in SERVICES.into_iter().enumerate().rev() {
        writeln!(text, "{}", of_service(place as u64, name)).expect("invariant: a string can be written");
    }
    text
}

#[test]
fn each_trace_is_one_track_with_spans_nested_under_their_parents() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
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
fn traces_with_similar_ids_have_a_track_each() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let ids = [
        "00000000000000004bf92f3577b34da6",
        "00000000000000005bf92f3577b34da6",
        "6bf92f3577b34da60000000000000001",
        "6bf92f3577b34da60000000000000002",
    ];
    let spans: Vec<Value> = (0..)
        .zip(ids)
        .map(|(place, id)| {
            json!({
                "traceId": id, "spanId": format!("{:016x}", place + 1), "name": "GET /",
                "startTimeUnixNano": (BEGIN + place).to_string(), "endTimeUnixNano": (BEGIN + 100).to_string(),
            })
        })
        .collect();
    let otlp = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    let (input, trace) = (
        folder.file("in.jsonl", otlp.to_string()),
        folder.path("out.pftrace"),
    );
    for memory in ["64MiB", "1KiB"] {
        convert(&[&input], &trace, &["--by", "trace", "--memory", memory]).expect_code(0);
        let [rows] = judge.query(
            &trace,
            ["select t.name as row from slice s join track t on t.id = s.track_id where s.name = 'GET /' order by s.ts"],
        );
        let row = |id: &str| json!({"row": format!("GET / {id}")});
        assert_eq!(
            rows,
            [row("4bf92f35"), row("5bf92f35"), row(ids[2]), row(ids[3])],
            "{memory}"
        );
    }
}

#[test]
fn trace_drawing_options_are_rejected_for_other_outputs() {
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
fn drawing_by_trace_rejects_full_attributes() {
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

#[test]
fn color_by_trace_gives_spans_of_a_trace_one_color() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (input, trace) = (folder.file("shop.jsonl", shop()), folder.path("shop.pftrace"));
    // The viewer derives the colour of a slice from this argument.
    let query = "select count(distinct a.display_value) as colors, count(*) as slices from slice s \
                 join args a using (arg_set_id) where a.key = 'correlation_id' or a.flat_key = 'track_event.correlation_id'";
    for (options, colors, slices) in [
        (&["--color-by-trace"][..], TRACES, TRACES * SERVICES.len() as u64),
        (&[], 0, 0),
    ] {
        convert(&[&input], &trace, options).expect_code(0);
        let [found] = judge.query(&trace, [query]);
        assert_eq!(found, [json!({"colors": colors, "slices": slices})]);
    }
}

/// Returns a gauge with this number of series.
fn gauge_of(series: u32) -> String {
    let points: Vec<Value> = (0..series)
        .map(|number| {
            let label = json!([{"key": "series", "value": {"intValue": number.to_string()}}]);
            json!({"timeUnixNano": "1700000000000000000", "asInt": "1", "attributes": label})
        })
        .collect();
    let metrics = json!([{"name": "load", "gauge": {"dataPoints": points}}]);
    json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}).to_string()
}

#[test]
fn more_tracks_than_viewers_handle_well_cause_a_note() {
    const MOST: u32 = 10_000;
    let folder = Folder::new();
    for (series, is_noted) in [(MOST, false), (MOST + 1, true)] {
        let input = folder.file("load.jsonl", gauge_of(series));
        let finished = convert(&[&input], &folder.path("load.pftrace"), &[]).expect_code(0);
        let notes = finished.summary()["notes"].to_string();
        assert_eq!(
            notes.contains("10001 rows and counters"),
            is_noted,
            "{series}: {notes}"
        );
        assert_eq!(finished.summary()["mapped"]["counters"], json!(series));
    }
}

#[test]
fn repair_counts_and_the_version_are_trace_attributes() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = folder.path("rich.pftrace");
    convert(&[corpus("perfetto/rich.json")], &trace, &[]).expect_code(0);
    let [attributes] = judge.query(
        &trace,
        ["select substr(name, 28) as name, str_value as value from metadata
          where name glob 'trace_attribute.pulsetrain.*' order by name"],
    );
    let attribute = |name: &str, value: &str| json!({"name": name, "value": value});
    assert_eq!(
        attributes,
        [
            attribute("cycles", "1"),
            attribute("end_before_start", "1"),
            attribute("links_outside", "1"),
            attribute("missing_parents", "1"),
            attribute("same_ids", "1"),
            attribute("unfinished", "2"),
            attribute("version", env!("CARGO_PKG_VERSION")),
            attribute("without_time", "2"),
        ]
    );
}
