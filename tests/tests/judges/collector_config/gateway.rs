//! collector/gateway.yaml and collector/sampler.yaml: the traces of many hosts.

use std::collections::{BTreeMap, BTreeSet};

use pulsetrain_tests::{Collector, Items, Judge, http::post_json, some_or_return, wait_until};
use serde_json::{Value, json};

use crate::collector_config::otelcol::{Otelcol, send_demo};

fn trace_of(item: &Value) -> &str {
    item["span"]["traceId"].as_str().expect("a span has a trace")
}

fn traces(items: &Items) -> BTreeSet<&str> {
    items.of_kind("span").into_iter().map(trace_of).collect()
}

#[test]
fn all_ranks_of_a_step_are_routed_to_one_sampler() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let samplers = [Collector::start(&program), Collector::start(&program)];
    let others = Collector::start(&program);
    let variables = [
        (
            "SAMPLERS",
            format!("[{}, {}]", samplers[0].grpc(), samplers[1].grpc()),
        ),
        ("SAMPLER_INSECURE", "true".to_owned()),
        ("METRICS_ENDPOINT", format!("http://{}", others.http())),
        ("LOGS_ENDPOINT", format!("http://{}", others.http())),
    ];
    let gateway = Otelcol::start(&program, "gateway.yaml", &variables);
    let sent = send_demo(&gateway.target(), &[]);
    gateway.stop();
    let [one, two] = samplers.map(Collector::stop);
    assert!(!one.is_empty() && !two.is_empty(), "both get a share");
    assert!(traces(&one).is_disjoint(&traces(&two)));
    let mut all = sent.clone();
    all.assert_holds(&one);
    all.assert_holds(&two);
    assert_eq!(one.len() + two.len(), sent.of_kind("span").len());
    all = all.changed(|item| item.get("span").is_none(), |_| {});
    others.stop().assert_same(&all);
}

/// Returns the milliseconds from the start of the first span of a trace to the end of the last one.
fn millis_by_trace(items: &Items) -> BTreeMap<&str, u64> {
    let mut ranges = BTreeMap::<&str, (u64, u64)>::new();
    let time = |item: &Value, key: &str| -> u64 {
        item["span"][key]
            .as_str()
            .and_then(|text| text.parse().ok())
            .expect("a time")
    };
    for item in items.of_kind("span") {
        let (start, end) = (time(item, "startTimeUnixNano"), time(item, "endTimeUnixNano"));
        let range = ranges.entry(trace_of(item)).or_insert((start, end));
        *range = (range.0.min(start), range.1.max(end));
    }
    ranges
        .into_iter()
        .map(|(id, (start, end))| (id, (end - start) / 1_000_000))
        .collect()
}

/// Removes the schema URLs, which the processor tail_sampling drops.
fn without_schemas(items: Items) -> Items {
    items.changed(
        |_| true,
        |item| {
            let fields = item.as_object_mut().expect("an item is an object");
            fields.retain(|key, _| !key.ends_with("Schema"));
        },
    )
}

/// Returns a failed step of a millisecond, in OTLP/JSON.
fn failed_step(id: &str) -> String {
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "trainer"}}]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [{
        "traceId": id, "spanId": "0102030405060708", "name": "train.step", "kind": 1,
        "startTimeUnixNano": "1795220320000000000", "endTimeUnixNano": "1795220320001000000", "status": {"code": 2},
    }]}]}]})
    .to_string()
}

/// Returns the last call count of each series of span metrics; fails if a series belongs to a single rank.
fn calls_by_series(measured: &Items) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for item in measured.of_kind("point") {
        let resource = item["resource"]["attributes"].to_string();
        assert!(!resource.contains("train.rank"), "{resource}");
        if item["metric"]["name"] == "traces.span.metrics.calls" {
            let count: u64 = item["point"]["asInt"]
                .as_str()
                .and_then(|text| text.parse().ok())
                .expect("a count");
            let last = calls
                .entry(format!("{resource} {}", item["point"]["attributes"]))
                .or_insert(0);
            *last = count.max(*last);
        }
    }
    calls
}

#[test]
fn sampler_keeps_slow_failed_and_non_step_traces_and_measures_all() {
    const SLOW_MILLIS: u64 = 24;
    const FAILED: &str = "0102030405060708090a0b0c0d0e0f10";
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let [kept, measured] = [Collector::start(&program), Collector::start(&program)];
    let variables = [
        ("SLOW_STEP_MILLIS", SLOW_MILLIS.to_string()),
        ("KEEP_PERCENT", "0".to_owned()),
        ("DECISION_WAIT", "5s".to_owned()),
        ("SPAN_METRICS_INTERVAL", "1s".to_owned()),
        ("TRACES_ENDPOINT", format!("http://{}", kept.http())),
        ("METRICS_ENDPOINT", format!("http://{}", measured.http())),
    ];
    let sampler = Otelcol::start(&program, "sampler.yaml", &variables);
    let target = format!("traces={}", sampler.target());
    // A step has 20 ms; from step 20 on one rank is slower.
    let sent = send_demo(&target, &["--fault", "straggler@20:rank=2"]);
    let answer = post_json(sampler.port(), "/v1/traces", &failed_step(FAILED));
    assert_eq!(answer.expect("the sampler answers").0, 200);

    let other_than_step: BTreeSet<&str> = sent
        .of_kind("span")
        .into_iter()
        .filter(|item| {
            let name = item["span"]["name"].as_str().expect("a span has a name");
            name.starts_with("run.") || name.starts_with("train.checkpoint.")
        })
        .map(trace_of)
        .collect();
    let millis = millis_by_trace(&sent);
    let wanted = |id: &str| millis[id] >= SLOW_MILLIS || other_than_step.contains(id);
    let expected = sent.clone().changed(
        |item| item.get("span").is_some() && wanted(trace_of(item)),
        |_| {},
    );
    let steps = traces(&expected).len() - other_than_step.len();
    assert!(
        (20..50).contains(&steps),
        "the fault divides the steps: {steps} of 60 are slow"
    );

    wait_until("the decisions are made", || {
        kept.received().len() > expected.len()
    });
    sampler.stop();
    let (failed, others) = {
        let kept = kept.stop();
        let is_failed = |item: &Value| trace_of(item) == FAILED;
        let failed = kept.clone().changed(is_failed, |_| {});
        (failed, kept.changed(|item| !is_failed(item), |_| {}))
    };
    assert_eq!(failed.len(), 1);
    without_schemas(others).assert_same(&without_schemas(expected));

    // Span metrics also count spans that are sampled out, in series of the run and not of single ranks.
    let calls = calls_by_series(&measured.stop());
    let spans = sent.of_kind("span").len() + 1;
    assert_eq!(calls.values().sum::<u64>() as usize, spans, "{calls:?}");
}
