//! Stores that fail: each conversion ends in time, and its message has the cause and the fix.

use std::time::Duration;

use pulsetrain_tests::{Answer, FakeEndpoint, Finished, free_port};

use crate::backends::world::{Conversion, exists, problems};

const ID: &str = "5e000000000000000000000000000001";

/// Returns a `TraceByIDResponse` with one span named `a`, followed by the fields in `more`.
fn response(more: &str) -> String {
    let inside = |number: u8, text: &str| {
        format!(
            "{}{}{text}",
            char::from(number << 3 | 2),
            char::from(text.len() as u8)
        )
    };
    let span = inside(5, "a");
    let trace = inside(1, &inside(2, &inside(2, &span)));
    inside(1, &trace) + more
}

fn by_id(store: &FakeEndpoint, arguments: &[&str]) -> (Conversion, Finished) {
    let url = store.url();
    let conversion = Conversion::new(&[&["--tempo", &url, "--trace-id", ID], arguments].concat());
    let finished = conversion.run("out.jsonl");
    (conversion, finished)
}

#[test]
fn busy_trace_store_is_retried() {
    let busy = [Answer::Busy(0), Answer::Refuse(429), Answer::Refuse(502)];
    let store = FakeEndpoint::start(busy, Answer::Say(response("")));
    let (conversion, finished) = by_id(&store, &[]);
    finished.expect_code(0);
    assert!(exists(&conversion.path("out.jsonl")));
    assert_eq!(store.received().len(), 4);
    assert_eq!(store.received()[0].headers["accept"], "application/protobuf");
}

#[test]
fn retry_after_date_is_compared_with_the_clock_of_the_store() {
    let [now, later] = ["Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:39 GMT"];
    let store = FakeEndpoint::start([Answer::BusyUntil(now, later)], Answer::Say(response("")));
    let (_, finished) = by_id(&store, &[]);
    finished.expect_code(0);
    let [busy, next] = [0, 1].map(|place| store.received()[place].at);
    assert!(next - busy >= Duration::from_secs(2), "{:?}", next - busy);
}

#[test]
fn store_that_stays_busy_fails_with_its_status_and_message() {
    let store = FakeEndpoint::start([], Answer::Busy(0));
    let (_, finished) = by_id(&store, &[]);
    let printed = problems(&finished.expect_code(1));
    assert!(printed.contains("503") && printed.contains("busy"), "{printed}");
    assert_eq!(store.received().len(), 5);
}

#[test]
fn hung_store_times_out_and_receives_no_further_requests() {
    let store = FakeEndpoint::start([], Answer::Hang);
    let more = ["--trace-id", "1,2,3,4", "--timeout", "300ms", "--parallel", "1"];
    let (_, finished) = by_id(&store, &more);
    let printed = problems(&finished.expect_code(1));
    assert!(printed.contains("did not respond within 300ms"), "{printed}");
    assert!(
        printed.contains("4 further traces were not requested"),
        "{printed}"
    );
    assert_eq!(store.received().len(), 1);
}

#[test]
fn response_of_another_server_is_reported_as_unexpected() {
    let store = FakeEndpoint::start([], Answer::Say("<html>a page</html>".to_owned()));
    let (_, finished) = by_id(&store, &[]);
    let printed = problems(&finished.expect_code(1));
    assert!(
        printed.contains("that Tempo does not send") && printed.contains("a page"),
        "{printed}"
    );

    let url = store.url();
    Conversion::new(&["--tempo", &url, "--query", "{}"])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["that Tempo does not send"]);
    Conversion::new(&["--jaeger", &url, "--service", "x"])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["that Jaeger does not send"]);
    Conversion::new(&["--prometheus", &url, "--match", "x"])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["that Prometheus does not send"]);
}

#[test]
fn partial_trace_is_converted_and_reported_as_partial() {
    // `status` is PARTIAL, `message` is the reason.
    let store = FakeEndpoint::start([], Answer::Say(response("\u{18}\u{1}\"\u{9}too large")));
    let (conversion, finished) = by_id(&store, &[]);
    let printed = problems(&finished.expect_code(1));
    assert!(
        printed.contains(&format!("only a part of trace {ID}: too large")),
        "{printed}"
    );
    assert!(exists(&conversion.path("out.jsonl")));
}

#[test]
fn corrupt_response_is_requested_again() {
    let store = FakeEndpoint::start([Answer::BrokenGzip], Answer::Say(response("")));
    let (conversion, finished) = by_id(&store, &[]);
    finished.expect_code(0);
    assert!(exists(&conversion.path("out.jsonl")));
    assert_eq!(store.received().len(), 2);
}

#[test]
fn trace_with_a_corrupt_response_does_not_stop_other_traces() {
    let broken = format!("{:032x}", 2);
    let path: &'static str = format!("/api/v2/traces/{broken}").leak();
    let other: &'static str = format!("/api/v2/traces/{:032x}", 3).leak();
    let store = FakeEndpoint::by_path([
        (path, Answer::BrokenGzip),
        (other, Answer::Say(response(""))),
        (
            "/api/v2/traces/5e000000000000000000000000000001",
            Answer::Say(response("")),
        ),
    ]);
    let (_, finished) = by_id(&store, &["--trace-id", "2,3", "--parallel", "1"]);
    let finished = finished.expect_code(1);
    let problem = problems(&finished);
    assert!(
        problem.contains(&format!("trace {broken}")) && problem.contains("truncated or corrupt"),
        "{problem}"
    );
    assert!(!problem.contains("not requested"), "{problem}");
    assert_eq!(finished.summary()["messages"], 2);
}

#[test]
fn old_tempo_is_queried_with_the_v1_path() {
    let trace = response("");
    // The response without its first two bytes is the trace itself.
    let store = FakeEndpoint::start([Answer::Refuse(404)], Answer::Say(trace[2..].to_owned()));
    let (conversion, finished) = by_id(&store, &[]);
    finished.expect_code(0);
    assert!(exists(&conversion.path("out.jsonl")));
    let paths: Vec<_> = store.received().into_iter().map(|request| request.path).collect();
    assert_eq!(
        paths,
        [format!("/api/v2/traces/{ID}"), format!("/api/traces/{ID}")]
    );
}

#[test]
fn rejected_store_search_is_reported_with_the_fix() {
    for (status, word) in [
        (401, "--tenant"),
        (404, "base address"),
        (500, "refused by the test"),
    ] {
        let store = FakeEndpoint::start([], Answer::Refuse(status));
        let url = store.url();
        Conversion::new(&["--tempo", &url, "--query", "{}"])
            .run("out.jsonl")
            .expect_code(1)
            .expect_words(&[word, &status.to_string()]);
    }
}

#[test]
fn unreachable_store_is_reported() {
    let url = format!("http://127.0.0.1:{}", free_port());
    Conversion::new(&["--tempo", &url, "--query", "{}"])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["cannot reach", "Connection refused"]);
}

#[test]
fn incomplete_backend_arguments_are_a_usage_error() {
    let url = "http://127.0.0.1:9";
    for (arguments, word) in [
        (&["--tempo", url][..], "--query"),
        (&["--jaeger", url], "--service"),
        (&["--prometheus", url], "--match"),
        (&["--query", "{}"], "--tempo"),
        (&["--tempo", "localhost:3200", "--query", "{}"], "http://"),
        (
            &["--tempo", "http://me:secret@localhost", "--query", "{}"],
            "--header",
        ),
        (&["--tempo", url, "--trace-id", "xyz"], "hexadecimal"),
        (
            &["--tempo", url, "--query", "{}", "--header", "nothing"],
            "Authorization",
        ),
        (&["--tempo", url, "--query", "{}", "--since", "yesterday"], "1h"),
    ] {
        let finished = Conversion::new(arguments).run("out.jsonl").expect_code(2);
        finished.expect_words(&[word]);
        assert!(!finished.stderr.contains("me:secret"), "{}", finished.stderr);
    }
}
