//! Traces that our OTLP sink sends to a real Tempo and a real Jaeger are found there by id and by query.

use std::collections::BTreeSet;

use pulsetrain_tests::{Items, Jaeger, Judge, Tempo, corpus, otlp, send_traces, some_or_return, wait_until};
use serde_json::Value;

/// Sends the telemetry of a training log; its spans go to `traces`.
fn send(traces: &str) -> Items {
    send_traces(&corpus("surogate/training_dense.json"), traces)
}

/// Returns the ids of traces, and the names of their spans with their start times.
fn ids(items: &Items) -> BTreeSet<String> {
    let id = |item: &Value| item["span"]["traceId"].as_str().map(str::to_owned);
    items.of_kind("span").into_iter().filter_map(id).collect()
}

fn spans(items: &Items, trace: &str) -> BTreeSet<[String; 2]> {
    let of_trace = items.of_kind("span").into_iter().map(|item| &item["span"]);
    of_trace
        .filter(|span| span["traceId"] == trace)
        .map(named)
        .collect()
}

/// Returns the same for a response, without ids, because Tempo has them in base64.
fn answered(trace: &Value) -> BTreeSet<[String; 2]> {
    otlp::spans(trace).map(named).collect()
}

fn named(span: &Value) -> [String; 2] {
    ["name", "startTimeUnixNano"].map(|key| span[key].as_str().expect("a span has it").to_owned())
}

#[test]
fn jaeger_returns_the_spans_that_the_sink_sent() {
    let program = some_or_return!(Judge::Jaeger.require_or_skip());
    let jaeger = Jaeger::start(&program);
    let sent = send(&jaeger.otlp());
    let ids = ids(&sent);
    assert!(ids.len() > 10, "a trace for every step: {ids:?}");
    for id in &ids {
        let trace = jaeger.trace(id).unwrap();
        assert_eq!(answered(&trace), spans(&sent, id), "{id}");
    }
    assert!(jaeger.trace("0123456789abcdef0123456789abcdef").is_none());
    let service = service(&sent);
    let found = || -> BTreeSet<String> {
        let of_service = jaeger.traces_of(&service);
        let id = |trace: &Value| trace["traceID"].as_str().unwrap().to_owned();
        of_service.iter().map(id).collect()
    };
    wait_until("Jaeger finds all traces by their service", || found() == ids);
    assert!(jaeger.traces_of("another").is_empty());
}

#[test]
fn tempo_returns_the_spans_that_the_sink_sent() {
    let program = some_or_return!(Tempo::program());
    let tempo = Tempo::start(&program);
    let sent = send(&tempo.otlp());
    let ids = ids(&sent);
    assert!(ids.len() > 10, "a trace for every step: {ids:?}");
    for id in &ids {
        wait_until("Tempo has the trace", || tempo.trace(id).is_some());
        assert_eq!(answered(&tempo.trace(id).unwrap()), spans(&sent, id), "{id}");
    }
    assert!(tempo.trace("0123456789abcdef0123456789abcdef").is_none());
    let all = format!("{{ resource.service.name = \"{}\" }}", service(&sent));
    wait_until("the search finds every trace", || {
        tempo.search(&all).into_iter().collect::<BTreeSet<_>>() == ids
    });
    let some = tempo.search("{ name = \"train.step\" && span.train.step >= 3 && span.train.step < 5 }");
    assert_eq!(some.len(), 2, "{some:?}");
    assert!(tempo.search("{ name = \"no such span\" }").is_empty());
}

fn service(items: &Items) -> String {
    let spans = items.of_kind("span");
    let name = otlp::text_of(&spans[0]["resource"], "service.name");
    name.expect("a resource has a service name").to_owned()
}
