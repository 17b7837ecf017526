//! Acknowledged data arrives: through outages, full queues and reloads.

use std::{fs, time::Duration};

use pulsetrain_tests::{
    Answer, FakeEndpoint, SurogateRun, free_port, http::post_json, repeat_for, wait_until,
};
use serde_json::json;

use crate::world::{Setup, World, imported};

const GIVE_UP: Duration = Duration::from_secs(1);

/// Posts a log record with this text; returns the status of the response, or `None` without one.
pub(crate) fn post(port: u16, text: &str) -> Option<u16> {
    let record = json!({"timeUnixNano": "1", "body": {"stringValue": text}});
    let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).to_string();
    post_json(port, "/v1/logs", &body).map(|(status, _)| status)
}

/// Writes a configuration with a receiver at this port and a sink named `o` for this endpoint.
pub(crate) fn configure(world: &World, receiver: u16, endpoint: &str, keys: &str, limits: &str) {
    let sinks = format!("  o:\n    otlp:\n      endpoint: {endpoint}\n{keys}");
    configure_sinks(world, receiver, &sinks, limits);
}

/// Writes a configuration with a receiver at this port and these sinks.
pub(crate) fn configure_sinks(world: &World, receiver: u16, sinks: &str, limits: &str) {
    let yaml = world
        .yaml(&Setup {
            sinks,
            telemetry: "enabled: false",
            rest: &format!("limits:\n  retry_after: 100ms\n  retry_at_most: 200ms\n{limits}"),
            ..Setup::default()
        })
        .replacen(
            "sinks:\n",
            &format!("  clients:\n    otlp:\n      listen: [127.0.0.1:{receiver}]\nsinks:\n"),
            1,
        );
    fs::write(world.path("agent.yaml"), yaml).expect("a temporary file can be written");
}

/// Returns the texts of the records that the endpoint accepted, sorted.
pub(crate) fn accepted_texts(endpoint: &FakeEndpoint) -> Vec<String> {
    let items = endpoint.items_answered(&Answer::Accept);
    let texts = items.of_kind("log").into_iter().filter_map(|item| {
        let text = item["log"]["body"]["stringValue"].as_str()?;
        text.starts_with("message").then(|| text.to_owned())
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts
}

#[test]
fn outage_longer_than_give_up_after_loses_no_log_or_client_data() {
    let world = World::new();
    let endpoint = FakeEndpoint::start([], Answer::Refuse(503));
    let receiver = free_port();
    configure(&world, receiver, &endpoint.url(), "", "  give_up_after: 1s\n");
    let agent = world.start();
    let log = world.path("training.json");
    let mut run = SurogateRun::begin(&log, 0);
    run.write(&mut fastrand::Rng::with_seed(7), 200);
    for number in 0..100 {
        assert_eq!(post(receiver, &format!("message {number}")), Some(200));
    }
    repeat_for(2 * GIVE_UP + GIVE_UP / 2, || {
        let tries = endpoint.received().len();
        wait_until("the sink is tried again", || endpoint.received().len() > tries);
    });
    endpoint.answer_with(Answer::Accept);
    let expected = imported(&[&log]);
    let of_log = || {
        endpoint
            .items_answered(&Answer::Accept)
            .values("train.loss")
            .len()
    };
    wait_until("everything has arrived", || {
        accepted_texts(&endpoint).len() == 100 && of_log() == expected.values("train.loss").len()
    });
    let printed = agent.stop_well();
    assert!(!printed.contains("lost"), "{printed}");

    // The checkpoints are at the end: a second agent sends only new data.
    let before = of_log();
    let agent = world.start();
    run.write(&mut fastrand::Rng::with_seed(8), 1);
    wait_until("the new step has arrived", || of_log() > before);
    assert!(agent.stop().success());
    assert_eq!(of_log(), before + 1);
}

#[test]
fn full_required_sink_gives_clients_503_and_loses_nothing_acknowledged() {
    let world = World::new();
    let endpoint = FakeEndpoint::start([], Answer::Refuse(503));
    let receiver = free_port();
    let in_memory = "      disk_queue: off\n";
    configure(
        &world,
        receiver,
        &endpoint.url(),
        in_memory,
        "  queue_batches: 5\n",
    );
    let agent = world.start();
    let mut acknowledged = Vec::new();
    for number in 0..20 {
        let text = format!("message {number}");
        match post(receiver, &text) {
            Some(200) => acknowledged.push(text),
            answer => assert_eq!(answer, Some(503)),
        }
    }
    assert_eq!(acknowledged.len(), 5, "the page has room, and does not count");
    endpoint.answer_with(Answer::Accept);
    wait_until("there is room again", || {
        post(receiver, "message last") == Some(200)
    });
    acknowledged.push("message last".to_owned());
    acknowledged.sort();
    wait_until("everything has arrived", || {
        accepted_texts(&endpoint).len() >= acknowledged.len()
    });
    assert_eq!(accepted_texts(&endpoint), acknowledged);
    agent.stop_well();
}

#[test]
fn reload_of_a_hung_sink_neither_loses_nor_delays_new_data() {
    let world = World::new();
    let endpoint = FakeEndpoint::start([], Answer::Hang);
    let receiver = free_port();
    let limits = "  drain: 5s\n";
    configure(&world, receiver, &endpoint.url(), "", limits);
    let agent = world.start();
    assert_eq!(post(receiver, "message of the old sink"), Some(200));
    wait_until("its delivery hangs", || !endpoint.received().is_empty());
    endpoint.answer_with(Answer::Accept);
    let header = "      headers: {tenant: new}\n";
    configure(&world, receiver, &endpoint.url(), header, limits);
    agent.reload();
    wait_until("the reload is done", || {
        agent.log().contains("reloaded the configuration")
    });
    let mut sent = Vec::new();
    wait_until("the new sink delivers while the old one hangs", || {
        let text = format!("message {}", sent.len());
        assert_eq!(post(receiver, &text), Some(200), "nobody waits for a reload");
        sent.push(text);
        accepted_texts(&endpoint).len() > 3
    });
    sent.push("message of the old sink".to_owned());
    wait_until("everything has arrived, and what the old one held", || {
        accepted_texts(&endpoint).len() >= sent.len()
    });
    sent.sort();
    assert_eq!(accepted_texts(&endpoint), sent);
    let printed = agent.stop_well();
    assert!(!printed.contains("lost"), "{printed}");
}

#[test]
fn shutdown_does_not_wait_for_the_reload_of_dead_sinks() {
    let world = World::new();
    let endpoint = FakeEndpoint::start([], Answer::Hang);
    let sinks = |header: &str| -> String {
        let url = endpoint.url();
        (0..6)
            .map(|n| format!("  o{n}:\n    otlp:\n      endpoint: {url}\n      disk_queue: off\n      headers: {{v: {header}}}\n"))
            .collect()
    };
    let configure = |sinks: &str| {
        world.configure_as(&Setup {
            sinks,
            rest: "limits:\n  drain: 4s\n",
            ..Setup::default()
        });
    };
    configure(&sinks("old"));
    let agent = world.start();
    wait_until("every sink hangs", || endpoint.received().len() >= 6);
    configure(&sinks("new"));
    agent.reload();
    wait_until("the reload is done", || {
        agent.log().contains("reloaded the configuration")
    });
    let begun = pulsetrain_pipeline::clock::now();
    let (status, printed) = agent.stop_with_log();
    let took = begun.elapsed();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(
        took < Duration::from_secs(4 * 3),
        "one drain for all, not one after the other: {took:?}"
    );
}
