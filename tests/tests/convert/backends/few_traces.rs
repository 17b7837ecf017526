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
        let conversion = Conversion::of(&[&["--tempo", &url, "--trace-id", &ids], options].concat());
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
