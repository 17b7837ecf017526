//! Conversions from a real Jaeger, by service and by id.

use pulsetrain_tests::{Items, Jaeger, Judge, some_or_return, wait_until};

use crate::backends::world::{Conversion, RANKS, SPANS, Steps, problems, trace_id};

#[test]
fn every_jaeger_trace_of_a_service_is_fetched_with_exact_timestamps() {
    let program = some_or_return!(Judge::Jaeger.require_or_skip());
    let jaeger = Jaeger::start(&program);
    // More than one response can hold.
    let steps = Steps::new("trainer", 130);
    jaeger.push(&steps.otlp());
    jaeger.push(&Steps::new("another", 3).otlp());
    let expected = (130 + 3) * RANKS * SPANS;
    wait_until("Jaeger has every span", || {
        let traces = jaeger.traces_of("trainer");
        let spans = traces
            .iter()
            .filter_map(|trace| Some(trace["spans"].as_array()?.len()));
        spans.sum::<usize>() as u64 == expected
    });
    let url = jaeger.url();
    let all = Conversion::new(&["--jaeger", &url, "--service", "trainer", "--since", "1h"]);
    let of_service = all.items();
    assert_eq!(of_service.of_kind("span").len() as u64, expected);

    let operation = ["--jaeger", &url, "--service", "trainer", "--operation", "no such"];
    let finished = Conversion::new(&operation).run("none.jsonl").expect_code(1);
    assert!(
        problems(&finished).contains("no trace matches"),
        "{}",
        problems(&finished)
    );

    let some = Conversion::new(&["--jaeger", &url, "--service", "trainer", "--limit", "7"]);
    let finished = some.run("some.jsonl").expect_code(1);
    assert!(
        problems(&finished).contains("raise --limit"),
        "{}",
        problems(&finished)
    );
    // Exactly the limit, although a response has up to 100 traces.
    assert_eq!(
        Items::read(&some.path("some.jsonl")).len() as u64,
        7 * RANKS * SPANS
    );
}

#[test]
fn traces_are_fetched_by_id_and_a_missing_one_is_reported() {
    let program = some_or_return!(Judge::Jaeger.require_or_skip());
    let jaeger = Jaeger::start(&program);
    let steps = Steps::new("trainer", 2);
    jaeger.push(&steps.otlp());
    wait_until("Jaeger has the last step", || {
        jaeger.trace(&trace_id(1)).is_some()
    });
    let url = jaeger.url();
    let ids = [trace_id(0), trace_id(1)].join(",");
    Conversion::new(&["--jaeger", &url, "--trace-id", &ids])
        .items()
        .assert_same(&steps.items());
    let finished = Conversion::new(&["--jaeger", &url, "--trace-id", "abc"])
        .run("none.jsonl")
        .expect_code(1);
    assert!(
        problems(&finished).contains("there is no trace"),
        "{}",
        problems(&finished)
    );
}
