//! OTLP as the input of conversions: many steps, and one tree.

use serde_json::{Value, json};

pub(crate) const NOON: u64 = 1_792_000_000_000_000_000;
pub(crate) const TRACES: u64 = 400;
pub(crate) const SPANS_A_TRACE: u64 = 25;

pub(crate) fn span(trace: u64, number: u64, start: u64, end: u64) -> Value {
    let parent = match number {
        0 => String::new(),
        _ => format!("{:016x}", trace * 100 + 1),
    };
    json!({
        "traceId": format!("{:032x}", trace + 1),
        "spanId": format!("{:016x}", trace * 100 + number + 1),
        "parentSpanId": parent,
        "name": if number == 0 { "train.step" } else { "kernel" },
        "startTimeUnixNano": (NOON + start).to_string(),
        "endTimeUnixNano": (NOON + end).to_string(),
        "attributes": [{"key": "n", "value": {"intValue": (trace * 100 + number).to_string()}}],
    })
}

pub(crate) fn message(rank: u64, spans: &[Value]) -> String {
    let resource = json!({"attributes": [{"key": "train.rank", "value": {"intValue": rank.to_string()}}]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "trainer"}, "spans": spans}]}]})
        .to_string()
}

/// Returns steps with short children, one after another; the spans of a trace are far apart in the file. Each step also has a
/// link to the previous one, a point and a log record.
pub(crate) fn steps() -> String {
    let mut by_number: Vec<Vec<Value>> = vec![Vec::new(); SPANS_A_TRACE as usize];
    for trace in 0..TRACES {
        let begin = trace * 10_000;
        let mut step = span(trace, 0, begin, begin + 9_000);
        if trace > 0 {
            let before = (trace - 1) * 100 + 1;
            step["links"] = json!([{"traceId": format!("{trace:032x}"), "spanId": format!("{before:016x}")}]);
        }
        by_number[0].push(step);
        for number in 1..SPANS_A_TRACE {
            let start = begin + number * 300;
            by_number[number as usize].push(span(trace, number, start, start + 250));
        }
    }
    let mut lines: Vec<String> = by_number.iter().map(|spans| message(0, spans)).collect();
    let time = |trace: u64| (NOON + trace * 10_000).to_string();
    let point = |trace| json!({"timeUnixNano": time(trace), "asDouble": trace});
    let points: Vec<Value> = (0..TRACES).rev().map(point).collect();
    lines.push(json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "loss", "gauge": {"dataPoints": points}}]}]}]}).to_string());
    let record = |trace| json!({"timeUnixNano": time(trace), "body": {"stringValue": "step"}});
    let records: Vec<Value> = (0..TRACES).map(record).collect();
    lines.push(json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string());
    lines.join("\n")
}

/// Returns one trace with one tree: a run that contains steps, which contain kernels, with events of the run between the steps
/// and a link from each step to the previous one. Each span has `padding` additional bytes.
pub(crate) fn one_tree(steps: u64, padding: usize) -> String {
    let text = "x".repeat(padding);
    let padded = |mut span: Value, parent: u64| {
        span["traceId"] = json!(format!("{:032x}", 1));
        span["parentSpanId"] = json!(format!("{parent:016x}"));
        let attributes = span["attributes"].as_array_mut().expect("a span has attributes");
        attributes.push(json!({"key": "padding", "value": {"stringValue": text}}));
        span
    };
    const RUN: u64 = 0xffff;
    let mut spans = Vec::new();
    for step in 0..steps {
        let begin = step * 10_000;
        for number in 1..10 {
            let start = begin + number * 900;
            let mut kernel = padded(span(step, number, start, start + 800), step * 100 + 1);
            if number == 5 && step % 50 == 7 {
                kernel["status"] = json!({"code": 2});
            }
            spans.push(kernel);
        }
        let mut complete = padded(span(step, 0, begin, begin + 9_900), RUN);
        if step > 0 {
            let before = format!("{:016x}", (step - 1) * 100 + 1);
            complete["links"] = json!([{"traceId": complete["traceId"], "spanId": before}]);
        }
        spans.push(complete);
    }
    let mut run = padded(span(steps, 0, 0, steps * 10_000), 0);
    run["spanId"] = json!(format!("{RUN:016x}"));
    run["parentSpanId"] = json!("");
    run["name"] = json!("train.run");
    let event =
        |step: u64| json!({"timeUnixNano": (NOON + step * 10_000 + 9_950).to_string(), "name": "saved"});
    run["events"] = (0..steps).map(event).collect();
    spans.push(run);
    let messages: Vec<String> = spans.chunks(64).map(|spans| message(0, spans)).collect();
    messages.join("\n")
}
