//! From a duration in Prometheus to the trace of its step, through the agent.

use std::collections::BTreeSet;

use pulsetrain_tests::{
    Answer, FakeEndpoint, Items, Judge, Prometheus, otlp::time, some_or_return, wait_until,
};

use crate::prometheus::following::Following;

const BUCKETS: &str = "train_step_duration_seconds_bucket";

#[test]
fn step_duration_exemplar_is_the_span_of_its_step() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let receiver = format!("  receiver:\n    otlp:\n      endpoint: {}\n", endpoint.url());
    let mut following = Following::start("", &receiver);
    let target = [("ours", following.agent().address())];
    let prometheus = Prometheus::start(&program, &target, &[]);
    let mut steps = 0;
    wait_until("Prometheus has the exemplars of three steps", || {
        following.write_step(f64::from(steps));
        steps += 1;
        stored(&prometheus).len() >= 3
    });
    let sent = || sent(&endpoint.items_answered(&Answer::Accept));
    wait_until("each step has a span", || sent().len() == steps as usize);
    assert!(following.stop().success());
    let (stored, spans) = (stored(&prometheus), sent());
    assert_eq!(spans.len(), steps as usize, "each step has one span");
    assert!(stored.is_subset(&spans), "{stored:?} in {spans:?}");
}

/// Returns the exemplars in Prometheus: trace, span, seconds, and the time in milliseconds.
fn stored(prometheus: &Prometheus) -> BTreeSet<[String; 4]> {
    let series = prometheus.exemplars(BUCKETS);
    let exemplars = series.iter().flat_map(|series| series["exemplars"].as_array());
    exemplars
        .flatten()
        .map(|exemplar| {
            let label = |name: &str| exemplar["labels"][name].as_str().unwrap_or_default().to_owned();
            let value = exemplar["value"].as_str().unwrap_or_default().to_owned();
            let secs = exemplar["timestamp"].as_f64().expect("an exemplar has a time");
            [
                label("trace_id"),
                label("span_id"),
                value,
                format!("{:.0}", secs * 1e3),
            ]
        })
        .collect()
}

/// Returns the spans of steps that were sent by OTLP, in the same form.
fn sent(items: &Items) -> BTreeSet<[String; 4]> {
    let spans = items.spans_of("train.step").into_iter();
    spans
        .map(|item| {
            let text = |key: &str| item["span"][key].as_str().expect("a span has it").to_owned();
            let [start, end] = ["startTimeUnixNano", "endTimeUnixNano"].map(|key| time(&item["span"], key));
            let secs = (end - start) as f64 / 1e9;
            [
                text("traceId"),
                text("spanId"),
                secs.to_string(),
                (end / 1_000_000).to_string(),
            ]
        })
        .collect()
}
