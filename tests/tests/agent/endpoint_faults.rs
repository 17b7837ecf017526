//! A failing endpoint: accepted items arrive once, rejected items are lost once, and both are counted.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_tests::{Answer, FakeEndpoint, Finished, Import, Items, SurogateLog, corpus, free_port};

const LOG: &str = "surogate/training_dense.json";

#[test]
fn busy_endpoint_is_retried_and_gets_everything_once() {
    let endpoint = FakeEndpoint::start([Answer::Busy(1)], Answer::Accept);
    let (finished, ours) = import_to(&endpoint, 0);
    endpoint.items_answered(&Answer::Accept).assert_same(&ours);
    assert_eq!(finished.summary()["dropped"], serde_json::json!({}));
    let received = endpoint.received();
    let again = received[1..]
        .iter()
        .find(|request| request.body == received[0].body);
    let again = again.expect("the refused body is sent again");
    assert!(
        again.at - received[0].at >= Duration::from_secs(1),
        "Retry-After was not kept"
    );
}

#[test]
fn rejected_batch_is_dropped_and_not_retried() {
    let endpoint = FakeEndpoint::start([], Answer::Refuse(400));
    let (finished, ours) = import_to(&endpoint, 1);
    let bodies = requests_by_body(&endpoint);
    assert!(bodies.values().all(|times| *times == 1), "{:?}", bodies.values());
    assert_eq!(finished.total("dropped"), ours.len() as u64);
    assert!(finished.stderr.contains("400"), "{}", finished.stderr);
}

#[test]
fn partial_success_is_counted_and_not_retried() {
    let endpoint = FakeEndpoint::start([Answer::Partial(3)], Answer::Accept);
    let (finished, _) = import_to(&endpoint, 1);
    assert_eq!(finished.total("dropped"), 3);
    assert!(requests_by_body(&endpoint).values().all(|times| *times == 1));
    assert!(
        finished.stderr.contains("refused by the test"),
        "{}",
        finished.stderr
    );
}

#[test]
fn endpoint_that_never_responds_is_abandoned_after_the_deadline() {
    let endpoint = FakeEndpoint::start([], Answer::Hang);
    let finished = import(&endpoint.url())
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "500")
        .arg("--give-up-after=1")
        .run()
        .expect_code(1);
    assert!(finished.total("dropped") > 0);
    assert!(finished.stderr.contains(&endpoint.url()), "{}", finished.stderr);
}

#[test]
fn unreachable_endpoint_is_reported_with_the_fix() {
    let url = format!("http://127.0.0.1:{}", free_port());
    let finished = import(&url).arg("--give-up-after=1").run().expect_code(1);
    finished.expect_words(&[&url, "Connection refused", "start"]);
    assert!(finished.total("dropped") > 0);
}

#[test]
fn compression_and_headers_from_the_environment_are_sent() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    import(&endpoint.url())
        .env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        .env(
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x-team=a%20b,authorization=Bearer%20t",
        )
        .run()
        .expect_code(0);
    let received = endpoint.received();
    assert!(!received.is_empty());
    for request in received {
        for (name, value) in [
            ("content-encoding", "gzip"),
            ("x-team", "a b"),
            ("authorization", "Bearer t"),
        ] {
            assert_eq!(request.headers[name], value, "{}", request.path);
        }
    }
}

#[test]
fn signal_specific_variable_overrides_the_general_one() {
    let (general, traces) = (
        FakeEndpoint::start([], Answer::Accept),
        FakeEndpoint::start([], Answer::Accept),
    );
    Import::new(corpus(LOG))
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", general.url())
        .env(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            format!("{}/spans", traces.url()),
        )
        .run()
        .expect_code(0);
    assert!(
        general
            .received()
            .iter()
            .all(|request| ["/v1/metrics", "/v1/logs"].contains(&request.path.as_str()))
    );
    assert!(!general.received().is_empty());
    assert!(traces.received().iter().all(|request| request.path == "/spans"));
    let log = SurogateLog::read(&corpus(LOG));
    assert_eq!(
        traces.items_answered(&Answer::Accept).of_kind("span").len(),
        log.of_kind("step").len() + log.of_kind("eval").len()
    );
}

/// Imports into the endpoint and to standard output; returns the items there.
fn import_to(endpoint: &FakeEndpoint, code: i32) -> (Finished, Items) {
    let finished = import(&endpoint.url()).to("-").run().expect_code(code);
    let items = Items::parse(&finished.stdout);
    (finished, items)
}

fn import(url: &str) -> Import {
    Import::new(corpus(LOG))
        .to(url)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
}

fn requests_by_body(endpoint: &FakeEndpoint) -> BTreeMap<Vec<u8>, usize> {
    let mut times = BTreeMap::new();
    for request in endpoint.received() {
        *times.entry(request.body).or_default() += 1;
    }
    assert!(!times.is_empty());
    times
}
