//! Exceptions of span events and log records: trace_processor shows their stack traces as callstacks and their text as an
//! argument.

use pulsetrain_tests::{Folder, TraceProcessor, convert, some_or_return};
use serde_json::{Value, json};

const PYTHON: &str = "Traceback (most recent call last):\n  File \"/app/train.py\", line 90, in <module>\n    main()\n  File \
                      \"/app/train.py\", line 12, in step\n    loss.backward()\nRuntimeError: out of memory\n";
const JAVA: &str = "java.io.IOException: closed\n\tat org.app.Store.read(Store.java:7)\n\tat org.app.Main.main(Main.java:3)\n";
const OTHER: &str = "step/2 in train.ex line 12";

fn text(key: &str, text: &str) -> Value {
    json!({"key": key, "value": {"stringValue": text}})
}

#[test]
fn stack_traces_become_callstacks_and_keep_their_text() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let time = |nanos: u64| (1_700_000_000_000_000_000 + nanos).to_string();
    let event = |nanos: u64, trace: &str| {
        json!({"timeUnixNano": time(nanos), "name": "exception", "attributes": [
            text("exception.type", "RuntimeError"), text("exception.stacktrace", trace)]})
    };
    let span = json!({"traceId": "1f".repeat(16), "spanId": "2e".repeat(8), "name": "train.step", "startTimeUnixNano": time(0),
        "endTimeUnixNano": time(1000), "events": [event(100, PYTHON), event(200, OTHER)]});
    let record = json!({"timeUnixNano": time(300), "eventName": "store.failed", "attributes": [text("exception.stacktrace", JAVA)]});
    let lines = [
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}),
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}),
    ];
    let input = folder.file("run.jsonl", lines.map(|line| line.to_string()).join("\n"));
    for policy in ["lean", "full"] {
        let trace = folder.path(&format!("{policy}.pftrace"));
        convert(&[&input], &trace, &["--attributes", policy]).expect_code(0);
        let [calls, texts] = judge.query(
            &trace,
            [
                "with recursive call(slice_id, id, parent_id, frame_id, depth) as (
                   select e.slice_id, c.id, c.parent_id, c.frame_id, c.depth from __intrinsic_track_event_callstacks e
                   join stack_profile_callsite c on c.id = e.callsite_id
                   union all
                   select call.slice_id, c.id, c.parent_id, c.frame_id, c.depth from call
                   join stack_profile_callsite c on c.id = call.parent_id)
                 select s.ts % 1000 as nanos, y.name, y.source_file as file, y.line_number as line from call
                 join slice s on s.id = call.slice_id join stack_profile_frame f on f.id = frame_id
                 join stack_profile_symbol y using (symbol_set_id) order by s.ts, call.depth",
                "select s.ts % 1000 as nanos, string_value as text from slice s join args using (arg_set_id)
                 where key glob '*exception_stacktrace' order by s.ts",
            ],
        );
        let call = |nanos: u64, name: &str, file: &str, line: u64| json!({"nanos": nanos, "name": name, "file": file, "line": line});
        assert_eq!(
            calls,
            [
                call(100, "<module>", "/app/train.py", 90),
                call(100, "step", "/app/train.py", 12),
                call(300, "org.app.Main.main", "Main.java", 3),
                call(300, "org.app.Store.read", "Store.java", 7),
            ],
            "{policy}"
        );
        let shown = |nanos: u64, text: &str| json!({"nanos": nanos, "text": text});
        assert_eq!(texts, [shown(100, PYTHON), shown(200, OTHER), shown(300, JAVA)]);
    }
    // If the attribute filter excludes the text, there are no callstacks either.
    let trace = folder.path("few.pftrace");
    convert(&[&input], &trace, &["--attributes", "exception.type"]).expect_code(0);
    let [calls] = judge.query(&trace, ["select e.slice_id from __intrinsic_track_event_callstacks e join slice s on s.id = e.slice_id where s.name = 'exception'"]);
    assert!(calls.is_empty(), "{calls:?}");
}
