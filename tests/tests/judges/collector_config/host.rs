//! collector/agent.yaml: the Collector on the host of the trainer.

use pulsetrain_tests::{Collector, Folder, Judge, free_port, otlp::text_of, some_or_return, wait_until};
use serde_json::Value;

use crate::collector_config::otelcol::{Otelcol, send_demo};

/// All telemetry from an outage of the gateway arrives once after a kill, with the metrics of the host.
#[test]
fn an_outage_of_the_gateway_and_a_kill_lose_nothing() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let folder = Folder::new();
    let ports = [free_port(), free_port()];
    let variables = [
        ("GATEWAY_ENDPOINT", format!("http://127.0.0.1:{}", ports[1])),
        ("QUEUE_DIR", folder.path("queue").display().to_string()),
        ("HOST_INTERVAL", "1s".to_owned()),
    ];
    let agent = Otelcol::start(&program, "agent.yaml", &variables);
    let sent = send_demo(&agent.target(), &[]);
    agent.kill();

    let gateway = Collector::start_at(&program, ports);
    let agent = Otelcol::start(&program, "agent.yaml", &variables);
    let of_host = |item: &Value| {
        let scope = item["scope"]["name"].as_str().unwrap_or_default();
        scope.contains("hostmetricsreceiver")
    };
    wait_until("the gateway has everything", || {
        let received = gateway.received();
        let from_host = received.clone().changed(of_host, |_| {}).len();
        from_host > 0 && received.len() - from_host >= sent.len()
    });
    agent.stop();
    let received = gateway.stop();
    received
        .clone()
        .changed(|item| !of_host(item), |_| {})
        .assert_same(&sent);
    let host = received.changed(of_host, |_| {});
    assert!(host.points_by_metric().contains_key("system.cpu.time"));
    for item in host.of_kind("point") {
        assert!(text_of(&item["resource"], "host.name").is_some(), "{item}");
    }
}
