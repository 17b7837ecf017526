//! TLS on each network hop: agent.yaml to gateway.yaml to sampler.yaml, and the tenant in the requests to the stores.

use std::collections::BTreeSet;

use pulsetrain_tests::{Answer, Certificates, FakeEndpoint, Folder, Judge, some_or_return, wait_until};

use crate::collector_config::otelcol::{Otelcol, send_demo};

#[test]
fn every_hop_is_encrypted_and_stores_get_the_tenant() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let (folder, certificates) = (Folder::new(), Certificates::generate());
    let store = FakeEndpoint::start([], Answer::Accept);
    let (certificate, key) = certificates.server();
    let server = format!(
        "{{cert_file: {}, key_file: {}}}",
        certificate.display(),
        key.display()
    );
    let tls = [
        ("OTLP_TLS", server),
        ("CA_FILE", certificates.authority().display().to_string()),
        ("TENANT", "team-7".to_owned()),
        ("METRICS_ENDPOINT", store.url()),
        ("LOGS_ENDPOINT", store.url()),
        ("TRACES_ENDPOINT", store.url()),
    ];
    let with = |variables: &[(&'static str, String)]| [&tls, variables].concat();
    let decision = [
        ("KEEP_PERCENT", "100".to_owned()),
        ("DECISION_WAIT", "1s".to_owned()),
    ];
    let sampler = Otelcol::start(&program, "sampler.yaml", &with(&decision));
    let samplers = [("SAMPLERS", format!("[{}]", sampler.grpc()))];
    let gateway = Otelcol::start(&program, "gateway.yaml", &with(&samplers));
    let target = [
        (
            "GATEWAY_ENDPOINT",
            format!("https://127.0.0.1:{}", gateway.port()),
        ),
        ("QUEUE_DIR", folder.path("queue").display().to_string()),
    ];
    let agent = Otelcol::start(&program, "agent.yaml", &with(&target));
    send_demo(&agent.target(), &[]);
    let signals = || -> BTreeSet<String> {
        let received = store.received();
        received.into_iter().map(|request| request.path).collect()
    };
    wait_until("the store has every signal", || {
        signals()
            .into_iter()
            .eq(["/v1/logs", "/v1/metrics", "/v1/traces"])
    });
    for request in store.received() {
        let tenant = request
            .headers
            .get("x-scope-orgid")
            .and_then(|value| value.to_str().ok());
        assert_eq!(tenant, Some("team-7"), "{}", request.path);
    }
    for collector in [agent, gateway, sampler] {
        collector.stop();
    }
}
