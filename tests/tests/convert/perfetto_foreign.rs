//! OTLP of other programs: a web service, and an agent that calls a language model, have the expected rows and parents.

use std::fs;

use pulsetrain_tests::{Folder, TraceProcessor, convert, corpus, some_or_return};
use serde_json::{Value, json};

/// The process, row, name and parent on the row of every span, ordered by time.
const SLICES: &str = "select p.name as process, t.name as track, s.name as name, u.name as parent \
    from slice s join process_track t on t.id = s.track_id join process p using (upid) \
    left join slice u on u.id = s.parent_id where s.dur > 0 order by s.ts, s.dur desc, s.name";
const FLOWS: &str = "select a.name as a, b.name as b from flow f join slice a on a.id = f.slice_out \
    join slice b on b.id = f.slice_in order by a.ts, b.ts, b.name";

fn rows(slices: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let row = |slice: &Value| {
        ["process", "track", "name", "parent"]
            .map(|key| text(&slice[key]))
            .join(" | ")
    };
    slices.iter().map(row).collect()
}

#[test]
fn services_become_processes_and_calls_between_them_become_flows() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = folder.path("web.pftrace");
    convert(&[corpus("otlp/web_service.jsonl")], &trace, &[]).expect_code(0);
    let [slices, flows] = judge.query(&trace, [SLICES, FLOWS]);
    assert_eq!(
        rows(&slices),
        [
            "frontend | http | GET /cart | -",
            "frontend | http | cart.Get | GET /cart",
            "cart | grpc | cart.Get | -",
            "cart | grpc | GET cart:7 | cart.Get",
            // It overlaps its sibling, so it has a row of its own.
            "cart | grpc | GET price:1 | -",
            // A second request.
            "frontend | http | GET /cart | -",
            "cart | grpc | publish orders | cart.Get",
            "mailer | kafka | process orders | -",
        ]
    );
    let arrow = |from: &str, to: &str| json!({"a": from, "b": to});
    assert_eq!(
        flows,
        [
            arrow("cart.Get", "cart.Get"),
            arrow("cart.Get", "GET price:1"),
            arrow("publish orders", "process orders"),
        ]
    );
}

#[test]
fn llm_agent_spans_nest_calls_and_draw_parallel_tools_on_lanes() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = folder.path("agent.pftrace");
    convert(&[corpus("otlp/llm_agent.jsonl")], &trace, &[]).expect_code(0);
    let [slices, failed, events] = judge.query(
        &trace,
        [
            SLICES,
            "select name, extract_arg(arg_set_id, 'debug.otel.status_message') as why from slice \
             where extract_arg(arg_set_id, 'debug.otel.status') = 'error'",
            "select s.name as name, p.name as parent from slice s join slice p on p.id = s.parent_id where s.dur = 0",
        ],
    );
    assert_eq!(
        rows(&slices),
        [
            "assistant | openinference | invoke_agent planner | -",
            "assistant | openinference | chat gpt | invoke_agent planner",
            "assistant | openinference | execute_tool search | invoke_agent planner",
            "assistant | openinference | execute_tool browse | -",
            "assistant | openinference | invoke_agent planner | -",
            "assistant | openinference | chat gpt | invoke_agent planner",
        ]
    );
    assert_eq!(failed, [json!({"name": "execute_tool browse", "why": "timeout"})]);
    assert_eq!(events, [json!({"name": "first token", "parent": "chat gpt"})]);
}

#[test]
fn unknown_attributes_for_rows_and_processes_are_noted_and_keep_the_usual_names() {
    let folder = Folder::new();
    let trace = folder.path("web.pftrace");
    let notes = |options: &[&str]| {
        let finished = convert(&[corpus("otlp/web_service.jsonl")], &trace, options).expect_code(0);
        finished.summary()["notes"].to_string()
    };
    let unknown = notes(&["--process-by", "nosuch,none", "--rows", "nosuch"]);
    for note in [
        "no resource has an attribute that names processes (nosuch, none)",
        "no span has an attribute for rows (nosuch)",
    ] {
        assert!(unknown.contains(note), "{unknown}");
    }
    let text = fs::read(&trace).expect("the trace can be read");
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("frontend") && !text.contains("unknown_service"));
    for options in [&[] as &[&str], &["--process-by", "nosuch,service.name"]] {
        assert!(!notes(options).contains("has an attribute"), "{options:?}");
    }
}

#[test]
fn a_configuration_names_rows_and_processes() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = folder.path("agent.pftrace");
    let text = "perfetto:\n  rows: [session.id]\n  process_names: [gen_ai.agent.name, service.name]\n  \
                process_labels: [service.name]\n";
    let config = folder.file("pulsetrain.yaml", text);
    let config = config.to_str().unwrap();
    convert(&[corpus("otlp/llm_agent.jsonl")], &trace, &["--config", config]).expect_code(0);
    let [rows, labels] = judge.query(
        &trace,
        [
            "select distinct p.name as process, t.name as row from slice s join process_track t on t.id = s.track_id \
             join process p using (upid) where s.dur > 0 order by 2",
            "select string_value as label from args a join process p using (arg_set_id) where a.key like 'chrome.process_label%'",
        ],
    );
    let row = |name: &str| json!({"process": "planner", "row": name});
    assert_eq!(rows, [row("session s-1"), row("session s-2")]);
    assert_eq!(labels, [json!({"label": "assistant"})]);
    let wrong = convert(
        &[corpus("otlp/llm_agent.jsonl")],
        &trace,
        &["--config", "nowhere.yaml"],
    );
    assert!(wrong.expect_code(2).stderr.contains("nowhere.yaml"));
}
