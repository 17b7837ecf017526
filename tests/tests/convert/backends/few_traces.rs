//! Few traces of a store: each has a row of its own unless rows by process are requested.

use pulsetrain_tests::{Answer, FakeEndpoint};
use serde_json::json;

use crate::backends::world::Conversion;

/// A `TraceByIDResponse` with one span named `a`.
const RESPONSE: &str = "\u{a}\u{9}\u{a}\u{7}\u{12}\u{5}\u{12}\u{3}\u{2a}\u{1}a";

#[test]
fn few_traces_get_a_track_each_unless_process_tracks_are_requested() {
    let ids: Vec<String> = (1..=11).map(|id| format!("{id:x}")).collect();
    for (ids, options, by_trace) in [
        (&ids[..1], &[][..], true),
        (&ids[..10], &[], true),
        (&ids[..], &[], false),
        (&ids[..1], &["--by", "process"], false),
        (&ids[..1], &["--attributes", "full"], false),
        (&ids[..1], &["--process-by", "host.name"], false),
    ] {
        let store = FakeEndpoint::start([], Answer::Say(RESPONSE.to_owned()));
        let (url, ids) = (store.url(), ids.join(","));
        let conversion = Conversion::new(&[&["--tempo", &url, "--trace-id", &ids], options].concat());
        let summary = conversion.run("out.pftrace").expect_code(0).summary();
        let notes = summary["inputs"][0]["notes"].to_string();
        assert_eq!(
            notes.contains("--by process draws the rows of processes"),
            by_trace,
            "{options:?}"
        );
        // The rows match the note.
        let trace = std::fs::read(conversion.path("out.pftrace")).expect("the trace is written");
        let is_marked = trace.windows(13).any(|bytes| bytes == b"pulsetrain.by");
        assert_eq!(is_marked, by_trace, "{options:?}: {}", json!(summary));
    }
}

#[test]
fn found_traces_of_a_service_get_a_track_each_if_they_are_few() {
    for (traces, options, by_trace) in [
        (1, &[][..], true),
        (10, &[], true),
        (11, &[], false),
        (3, &["--by", "process"], false),
        (3, &["--attributes", "full"], false),
    ] {
        let span = |trace: u64| {
            json!({"traceId": format!("5e{trace:030x}"), "spanId": format!("5e{trace:014x}"), "name": "a",
                "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000000001"})
        };
        let spans: Vec<_> = (0..traces).map(span).collect();
        let answer = json!({"result": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}});
        let store = FakeEndpoint::start([], Answer::Say(answer.to_string()));
        let url = store.url();
        let conversion = Conversion::new(&[&["--jaeger", &url, "--service", "shop"], options].concat());
        let summary = conversion.run("out.pftrace").expect_code(0).summary();
        assert_eq!(summary["mapped"]["spans"], traces, "{summary}");
        let notes = summary["inputs"][0]["notes"].to_string();
        let is_noted = notes.contains("--by process draws the rows of processes");
        assert_eq!(is_noted, by_trace, "{traces} {options:?}: {notes}");
        let trace = std::fs::read(conversion.path("out.pftrace")).expect("the trace is written");
        let is_marked = trace.windows(13).any(|bytes| bytes == b"pulsetrain.by");
        assert_eq!(is_marked, by_trace, "{traces} {options:?}");
    }
}
