//! The rendering of short spans, deeply nested spans, spans on several devices, and states.

use pulsetrain_tests::{Folder, TraceProcessor, convert, some_or_return};
use serde_json::{Value, json};

use crate::large::input::{NOON, message, span};

#[test]
fn short_spans_are_merged_and_failed_spans_are_kept() {
    let folder = Folder::new();
    let mut spans: Vec<Value> = vec![span(1, 0, 0, 100_000)];
    spans.extend((1..=20).map(|number| span(1, number, number * 100, number * 100 + 60)));
    spans[5]["status"] = json!({"code": 2});
    spans[9]["name"] = json!("copy");
    // Short and isolated, and long.
    spans.push(span(1, 30, 50_000, 50_100));
    spans.push(span(1, 31, 60_000, 90_000));
    let input = folder.file("short.jsonl", message(0, &spans));
    let output = folder.path("short.pftrace");
    let summary = convert(&[&input], &output, &["--downsample", "1us"])
        .expect_code(0)
        .summary();
    assert_eq!(summary["mapped"]["merged"], 19);
    assert_eq!(summary["mapped"]["merged_slices"], 2);
    assert_eq!(summary["mapped"]["spans"], 4);
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let [slices, totals] = judge.query(
        &output,
        [
            "select s.name, s.dur, p.name as parent, extract_arg(s.arg_set_id, 'debug.merged.count') as count, \
             extract_arg(s.arg_set_id, 'debug.merged.duration_nanos') as nanos from slice s \
             left join slice p on p.id = s.parent_id where s.dur > 0 order by s.ts, s.dur desc",
            "select extract_arg(arg_set_id, 'debug.merged.names.copy.count') as copies, \
             extract_arg(arg_set_id, 'debug.merged.names.kernel.duration_nanos') as nanos from slice where name = 'short spans'",
        ],
    );
    let row = |name: &str, dur: u64, parent: Option<&str>, merged: Option<(u64, u64)>| json!({"name": name, "dur": dur, "parent": parent, "count": merged.map(|merged| merged.0), "nanos": merged.map(|merged| merged.1)});
    let step = Some("train.step");
    assert_eq!(
        slices,
        [
            row("train.step", 100_000, None, None),
            row("kernel", 360, step, Some((4, 240))),
            row("kernel", 60, step, None),
            row("short spans", 1_460, step, Some((15, 900))),
            row("kernel", 100, step, None),
            row("kernel", 30_000, step, None),
        ]
    );
    assert_eq!(totals, [json!({"copies": 1, "nanos": 840})]);
}

#[test]
fn nesting_beyond_the_viewer_limit_continues_on_another_track() {
    let folder = Folder::new();
    let chain = (0..1_200_u64).map(|depth| {
        let mut span = span(7, depth, depth, 10_000 - depth);
        span["spanId"] = json!(format!("{:016x}", depth + 1));
        if depth > 0 {
            span["parentSpanId"] = json!(format!("{depth:016x}"));
        }
        span
    });
    let input = folder.file("deep.jsonl", message(0, &chain.collect::<Vec<_>>()));
    let output = folder.path("deep.pftrace");
    let summary = convert(&[&input], &output, &[]).expect_code(0).summary();
    assert_eq!(summary["mapped"]["too_deep"], 2);
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let [slices, flows] = judge.query(
        &output,
        [
            "select count(*) as n, max(depth) as deepest, min(dur) as shortest, count(distinct dur) as lengths from slice where dur <> 0",
            "select count(*) as n from flow",
        ],
    );
    assert_eq!(
        slices,
        [json!({"n": 1200, "deepest": 499, "shortest": 7602, "lengths": 1200})]
    );
    assert_eq!(flows, [json!({"n": 2})]);
}

#[test]
fn devices_get_separate_tracks_and_phases_are_state_slices() {
    let folder = Folder::new();
    let mut spans = vec![span(1, 0, 0, 1_000)];
    for (number, device) in [(1, "0"), (2, "1")] {
        let mut kernel = span(1, number, 100, 900);
        kernel["attributes"] = json!([{"key": "device.id", "value": {"stringValue": device}}]);
        spans.push(kernel);
    }
    let state = |time: u64, state: &str, value: u64| json!({"timeUnixNano": (NOON + time).to_string(), "asInt": value, "attributes": [{"key": "phase", "value": {"stringValue": state}}]});
    let points = [
        state(0, "warmup", 1),
        state(0, "train", 0),
        state(400, "train", 1),
        state(800, "train", 1),
    ];
    let phase = json!({"name": "train.phase", "unit": "{state}", "gauge": {"dataPoints": points}});
    let metrics = json!({"resourceMetrics": [{"resource": {"attributes": [{"key": "train.rank", "value": {"intValue": "0"}}]}, "scopeMetrics": [{"metrics": [phase]}]}]});
    let input = folder.file("devices.jsonl", format!("{}\n{metrics}", message(0, &spans)));
    let output = folder.path("devices.pftrace");
    convert(&[&input], &output, &[]).expect_code(0);
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let [rows, processes] = judge.query(
        &output,
        [
            "select t.name as row, s.name, s.dur from slice s join process_track t on t.id = s.track_id where s.dur > 0 \
             order by t.name, s.ts",
            "select name from process where name like '%rank%'",
        ],
    );
    let row = |row: &str, name: &str, dur: u64| json!({"row": row, "name": name, "dur": dur});
    assert_eq!(
        rows,
        [
            row("device 0", "kernel", 800),
            row("device 1", "kernel", 800),
            row("steps", "train.step", 1_000),
            row("train.phase", "warmup", 400),
            row("train.phase", "train", 400),
        ]
    );
    assert_eq!(processes.len(), 1);
}
