//! Traces through a Collector into Tempo and Jaeger, each by its file of `collector-config/backends`.

use std::collections::BTreeMap;

use pulsetrain_tests::{Jaeger, Judge, Tempo, otlp, some_or_return, wait_until};
use serde_json::Value;

use crate::collector_config::otelcol::{Otelcol, config, send_demo};

#[test]
fn tempo_has_every_span_and_answers_traceql() {
    let collector = some_or_return!(Judge::Collector.require_or_skip());
    let program = some_or_return!(Tempo::program());
    let tempo = Tempo::start_file(&program, &config("backends/tempo.yaml"));
    let collector = Otelcol::start(&collector, "tempo.yaml", &[("TEMPO_ENDPOINT", tempo.otlp())]);
    let sent = send_demo(&format!("traces={}", collector.target()), &[]);
    collector.stop();
    for (id, spans) in sent.spans_by_trace() {
        wait_until("Tempo has the trace", || {
            tempo
                .trace(&id)
                .is_some_and(|trace| otlp::spans(&trace).count() == spans)
        });
    }
    wait_until("a step is found by its number", || {
        tempo
            .search("{ name = \"train.step\" && span.train.step = 20 }")
            .len()
            == 1
    });
    // Metrics of spans whose kind is not server.
    wait_until("TraceQL counts steps", || {
        let path =
            "/api/metrics/query_range?q=%7Bname%3D%22train.step%22%7D%7Ccount_over_time()&since=10m&step=10m";
        let (status, body) = tempo.get(path);
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        let values = answer["series"][0]["samples"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let count: f64 = values.iter().filter_map(|sample| sample["value"].as_f64()).sum();
        status == 200 && count == 240.0
    });
}

#[test]
fn jaeger_has_every_span() {
    let collector = some_or_return!(Judge::Collector.require_or_skip());
    let program = some_or_return!(Judge::Jaeger.require_or_skip());
    let jaeger = Jaeger::start_file(&program, &config("backends/jaeger.yaml"));
    let collector = Otelcol::start(&collector, "jaeger.yaml", &[("JAEGER_ENDPOINT", jaeger.otlp())]);
    let sent = send_demo(&format!("traces={}", collector.target()), &[]);
    collector.stop();
    let spans = |trace: &Value| trace["spans"].as_array().map_or(0, Vec::len);
    let id = |trace: &Value| trace["traceID"].as_str().expect("a trace has an id").to_owned();
    let stored = || -> BTreeMap<String, usize> {
        let stored = jaeger.traces_of("pulsetrain-demo");
        stored.iter().map(|trace| (id(trace), spans(trace))).collect()
    };
    let sent = sent.spans_by_trace();
    assert_eq!(sent.len(), 61, "one for each step, and one for the run");
    wait_until("Jaeger has every span", || stored() == sent);
}
