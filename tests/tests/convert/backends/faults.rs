//! Stores that fail: each conversion ends in time, and its message has the cause and the fix.

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
    let conversion = Conversion::of(&[&["--tempo", &url, "--trace-id", ID], arguments].concat());
    let finished = conversion.run("out.jsonl");
    (conversion, finished)
}

#[test]
fn a_store_that_is_busy_is_asked_again() {
    let busy = [Answer::Busy(0), Answer::Refuse(429), Answer::Refuse(502)];
    let store = FakeEndpoint::start(busy, Answer::Say(response("")));
    let (conversion, finished) = by_id(&store, &[]);
    finished.expect_code(0);
    assert!(exists(&conversion.path("out.jsonl")));
    assert_eq!(store.received().len(), 4);
    assert_eq!(store.received()[0].headers["accept"], "application/protobuf");
}

#[test]
fn a_store_that_stays_busy_is_given_up_with_its_words() {
    let store = FakeEndpoint::start([], Answer::Busy(0));
    let (_, finished) = by_id(&store, &[]);
    let printed = problems(&finished.expect_code(1));
    assert!(printed.contains("503") && printed.contains("busy"), "{printed}");
    assert_eq!(store.received().len(), 5);
}

#[test]
fn a_store_that_hangs_is_given_up_in_time_and_not_asked_for_the_rest() {
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
fn what_is_no_answer_of_such_a_store_is_called_that() {
    let store = FakeEndpoint::start([], Answer::Say("<html>a page</html>".to_owned()));
    let (_, finished) = by_id(&store, &[]);
    let printed = problems(&finished.expect_code(1));
    assert!(
        printed.contains("that Tempo does not send") && printed.contains("a page"),
        "{printed}"
    );

    let url = store.url();
    Conversion::of(&["--tempo", &url, "--query", "{}"])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["that Tempo does not send"]);
    Conversion::of(&["--jaeger", &url, "--service", "x"])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["that Jaeger does not send"]);
    Conversion::of(&["--prometheus", &url, "--match", "x"])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["that Prometheus does not send"]);
}

#[test]
fn a_part_of_a_trace_is_taken_and_reported_as_one() {
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
fn a_broken_answer_is_asked_for_again() {
    let store = FakeEndpoint::start([Answer::BrokenGzip], Answer::Say(response("")));
    let (conversion, finished) = by_id(&store, &[]);
    finished.expect_code(0);
    assert!(exists(&conversion.path("out.jsonl")));
    assert_eq!(store.received().len(), 2);
}

#[test]
fn a_trace_whose_answer_stays_broken_does_not_stop_the_others() {
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
fn an_old_tempo_is_asked_by_its_old_path() {
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
fn a_search_that_a_store_refuses_reports_what_to_do() {
    for (status, word) in [
        (401, "--tenant"),
        (404, "base address"),
        (500, "refused by the test"),
    ] {
        let store = FakeEndpoint::start([], Answer::Refuse(status));
        let url = store.url();
        Conversion::of(&["--tempo", &url, "--query", "{}"])
            .run("out.jsonl")
            .expect_code(1)
            .expect_words(&[word, &status.to_string()]);
    }
}

#[test]
fn an_address_where_nobody_is_reports_it() {
    let url = format!("http://127.0.0.1:{}", free_port());
    Conversion::of(&["--tempo", &url, "--query", "{}"])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["cannot reach", "Connection refused"]);
}

#[test]
fn a_command_line_that_lacks_something_is_a_usage_error() {
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
        let finished = Conversion::of(arguments).run("out.jsonl").expect_code(2);
        finished.expect_words(&[word]);
        assert!(!finished.stderr.contains("me:secret"), "{}", finished.stderr);
    }
}
