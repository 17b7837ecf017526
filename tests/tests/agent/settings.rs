//! The settings of single OTLP sinks, with a real Collector and with receivers that require a token.

use std::fs;

use pulsetrain_tests::{
    Answer, Certificates, Collector, FakeEndpoint, Finished, Items, Judge, command, free_port,
    some_or_return, wait_until,
};
use serde_json::Value;

use crate::{
    delivery::{self, accepted_texts, post},
    world::{Setup, World, get},
};

/// Writes a configuration with these sinks and fast retries.
fn configure(world: &World, sinks: &str) {
    world.configure_as(&Setup {
        sinks,
        telemetry: "enabled: false",
        rest: "gpu: {enabled: false}\nlimits: {retry_after: 100ms, retry_at_most: 200ms}\n",
        ..Setup::default()
    });
}

#[test]
fn collector_with_mutual_tls_receives_everything_using_sink_settings_only() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let certificates = Certificates::generate();
    let (certificate, key) = certificates.client();
    let tls = format!(
        "tls: {{ca: {}, certificate: {}, key: {}}}",
        certificates.authority().display(),
        certificate.display(),
        key.display()
    );
    for (scheme, settings) in [
        (
            "grpcs",
            "compression: zstd\n      compression_level: 9\n      concurrency: 1",
        ),
        (
            "https",
            "compression: gzip\n      compression_level: 9\n      batch: {max_bytes: 64KiB, max_wait: 50ms}",
        ),
        (
            "https",
            "encoding: protobuf\n      compression: zstd\n      queue: {batches: 10, bytes: 20MiB}",
        ),
    ] {
        let collector = Collector::start_with_tls(&program, &certificates);
        let address = if scheme == "grpcs" {
            collector.grpc()
        } else {
            collector.http()
        };
        let world = World::new();
        world.write_log("surogate/training_dense.json");
        let sink = format!(
            "  secure:\n    otlp:\n      endpoint: {scheme}://{address}\n      {tls}\n      {settings}\n"
        );
        configure(&world, &(sink + &world.file_sink("archive", "out.jsonl")));
        let agent = world.start();
        wait_until("the log has arrived", || collector.received().len() > 300);
        wait_until("the Collector has what the file has", || {
            collector.received().len() == Items::read_complete_lines(&world.path("out.jsonl")).len()
        });
        assert!(agent.stop().success());
        collector
            .stop()
            .assert_same(&Items::read(&world.path("out.jsonl")));
    }
}

#[test]
fn untrusted_collector_or_client_is_reported_with_the_key_to_set() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let (certificates, others) = (Certificates::generate(), Certificates::generate());
    let collector = Collector::start_with_tls(&program, &certificates);
    let world = World::new();
    world.write_log("surogate/training_dense.json");
    let sink = |name: &str, tls: String| {
        let [grpc, http] = [("grpcs", collector.grpc()), ("https", collector.http())].map(|(scheme, address)| {
            format!("  {name}-{scheme}:\n    otlp:\n      endpoint: {scheme}://{address}\n      required: false\n      tls: {{{tls}}}\n")
        });
        grpc + &http
    };
    let ca = certificates.authority().display().to_string();
    let (expired, expired_key) = certificates.expired_client();
    let (client, key) = certificates.client();
    let sinks = [
        sink("unknown", format!("ca: {}", others.authority().display())),
        sink("nobody", format!("ca: {ca}")),
        sink(
            "expired",
            format!(
                "ca: {ca}, certificate: {}, key: {}",
                expired.display(),
                expired_key.display()
            ),
        ),
        sink(
            "misnamed",
            format!(
                "ca: {ca}, server_name: collector.test, certificate: {}, key: {}",
                client.display(),
                key.display()
            ),
        ),
    ];
    configure(&world, &sinks.concat());
    let agent = world.start();
    for (name, key) in [
        ("unknown", "tls.ca"),
        ("nobody", "tls.certificate"),
        ("expired", "tls.certificate"),
        ("misnamed", "tls.server_name"),
    ] {
        for scheme in ["grpcs", "https"] {
            let start = format!("sink {name}-{scheme}: fails: ");
            wait_until(&format!("{start}... {key}"), || {
                let log = agent.log();
                log.lines()
                    .any(|line| line.contains(&start) && line.contains(key))
            });
        }
    }
    agent.stop();
}

#[test]
fn rotated_token_is_used_without_a_reload_and_rejected_batches_arrive() {
    let endpoint = FakeEndpoint::start([], Answer::Refuse(401));
    let world = World::new();
    world.write_log("surogate/training_dense.json");
    let token = world.path("token");
    fs::write(&token, "old\n").unwrap();
    let sink = format!(
        "  guarded:\n    otlp:\n      endpoint: {}\n      bearer_token_file: {}\n",
        endpoint.url(),
        token.display()
    );
    configure(&world, &(sink + &world.file_sink("archive", "out.jsonl")));
    let agent = world.start();
    wait_until("the refusal names the file", || {
        agent
            .log()
            .contains(&format!("the credentials in {} were refused", token.display()))
    });
    let sent = |value: &str| {
        let received = endpoint.received();
        received.iter().any(|request| {
            request
                .headers
                .get("authorization")
                .is_some_and(|header| header == value)
        })
    };
    assert!(sent("Bearer old") && !sent("Bearer new"));
    fs::write(&token, "new\n").unwrap();
    wait_until("the new token is sent", || sent("Bearer new"));
    endpoint.answer_with(Answer::Accept);
    let ours = || Items::read_complete_lines(&world.path("out.jsonl"));
    wait_until("everything has arrived", || {
        ours().len() > 300 && endpoint.items_answered(&Answer::Accept).len() == ours().len()
    });
    assert!(agent.stop().success());
    endpoint.items_answered(&Answer::Accept).assert_same(&ours());
}

/// A token and an authority that another program writes after the start of the agent.
#[test]
fn missing_files_of_sinks_are_named_and_waited_for() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let (world, receiver) = (World::new(), free_port());
    let (token, authority) = (world.path("token"), world.path("ca.pem"));
    let keys = format!(
        "      bearer_token_file: {}\n  tls:\n    otlp:\n      endpoint: https://127.0.0.1:1\n      tls: {{ca: {}}}\n      \
         required: false\n",
        token.display(),
        authority.display()
    );
    delivery::configure(&world, receiver, &endpoint.url(), &keys, "  drain: 100ms\n");
    let checked = Finished::run(world.command().arg("--check")).expect_code(2);
    let files = ["bearer_token_file: cannot use ", "tls.ca: cannot use "];
    checked.expect_words(&files);
    let agent = world.spawn();
    wait_until("the agent waits", || {
        agent.log().contains("waits for the sinks that are not open")
    });
    let log = agent.log();
    for (sink, file) in ["o", "tls"].into_iter().zip(files) {
        assert!(
            log.contains(&format!("sink {sink}: cannot be opened: {file}")),
            "{log}"
        );
    }
    assert!(!log.contains("pulsetrain: ready"), "{log}");
    let readiness = world.readiness();
    assert!(
        readiness.starts_with("HTTP/1.1 503") && readiness.contains("bearer_token_file: cannot use "),
        "{readiness}"
    );
    let status = get(world.health(), "/status");
    assert!(
        status.contains("not_open") && files.iter().all(|file| status.contains(file)),
        "{status}"
    );
    let mut doctor = command(["doctor", "--config"]);
    let found = Finished::run(
        doctor
            .arg(world.path("agent.yaml"))
            .env("STATE", world.path("state")),
    );
    for file in files {
        assert_eq!(found.stdout.matches(file).count(), 1, "{}", found.stdout);
    }
    assert_eq!(post(receiver, "message 1"), Some(200));
    fs::write(&token, "first\n").unwrap();
    wait_until("the message arrives", || {
        accepted_texts(&endpoint) == ["message 1"]
    });
    assert!(agent.log().contains("sink o: is open now"), "{}", agent.log());
    let certificates = Certificates::generate();
    fs::copy(certificates.authority(), &authority).unwrap();
    wait_until("the agent is ready", || world.is_ready());
    agent.stop();
}

#[test]
fn attribute_rules_of_one_sink_do_not_affect_other_sinks() {
    let (plain, redacted) = (
        FakeEndpoint::start([], Answer::Accept),
        FakeEndpoint::start([], Answer::Accept),
    );
    let world = World::new();
    world.write_log("surogate/training_dense.json");
    let rules =
        "[{drop: host.name}, {hash: train.run.id}, {rename: {from: service.name, to: service.alias}}]";
    configure(
        &world,
        &format!(
            "  plain:\n    otlp:\n      endpoint: {}\n  redacted:\n    otlp:\n      endpoint: {}\n      attributes: {rules}\n",
            plain.url(),
            redacted.url()
        ),
    );
    let agent = world.start();
    let count = |endpoint: &FakeEndpoint| endpoint.items_answered(&Answer::Accept).len();
    wait_until("both have everything", || {
        count(&plain) > 300 && count(&plain) == count(&redacted)
    });
    assert!(agent.stop().success());
    let keys = |endpoint: &FakeEndpoint| {
        let received = endpoint.received();
        let bodies = received.iter().map(|request| {
            serde_json::from_slice::<Value>(&request.body)
                .unwrap()
                .to_string()
        });
        bodies.collect::<Vec<_>>().join("\n")
    };
    let (plain, redacted) = (keys(&plain), keys(&redacted));
    for key in ["\"train.run.id\"", "\"service.name\"", "\"host.name\""] {
        assert!(plain.contains(key), "{key}");
    }
    assert!(!redacted.contains("\"service.name\"") && redacted.contains("\"service.alias\""));
    assert!(!redacted.contains("\"host.name\"") && redacted.contains("\"train.run.id\""));
    let id = plain
        .split("\"train.run.id\",\"value\":{\"stringValue\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let id = id.expect("the run has an id");
    assert!(!redacted.contains(&format!("\"{id}\"")), "the id is hashed: {id}");
}
