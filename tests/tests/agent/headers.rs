//! Headers from the environment and from sinks, which may contain secrets: sinks of the configuration do not send those of the
//! environment.

use pulsetrain_tests::{Answer, FakeEndpoint, Process, wait_until};

use crate::world::World;

#[test]
fn headers_from_the_environment_are_not_sent_by_configured_sinks() {
    let (with_own, without) = (
        FakeEndpoint::start([], Answer::Accept),
        FakeEndpoint::start([], Answer::Accept),
    );
    let world = World::new();
    world.write_log("surogate/training_dense.json");
    world.configure(&format!(
        "  with_own:\n    otlp:\n      endpoint: {}\n      headers: {{authorization: of-section}}\n  \
         without:\n    otlp:\n      endpoint: {}\n",
        with_own.url(),
        without.url()
    ));
    let mut command = world.command();
    command
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=s3cret")
        .env("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "authorization=of-logs");
    let agent = Process::start("pulsetrain agent", &mut command);
    for endpoint in [&with_own, &without] {
        for path in ["/v1/traces", "/v1/metrics", "/v1/logs"] {
            wait_until("every signal has arrived", || {
                endpoint.received().iter().any(|request| request.path == path)
            });
        }
    }
    assert!(agent.stop().success());
    for request in with_own.received() {
        assert_eq!(request.headers["authorization"], "of-section", "{}", request.path);
    }
    for request in without.received() {
        assert!(!request.headers.contains_key("authorization"), "{}", request.path);
    }
}
