//! The information for an operator while sinks fail: the log, `/readyz` and the page.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink};

use pulsetrain_tests::{Answer, FakeEndpoint, free_port, wait_until};
use serde_json::Value;

use crate::world::{Setup, World, get};

fn otlp(name: &str, endpoint: &str) -> String {
    format!("  {name}:\n    otlp:\n      endpoint: {endpoint}\n")
}

#[test]
fn failing_sinks_are_reported_during_the_outage_and_on_recovery() {
    let world = World::new();
    let (forbidding, healthy) = (
        FakeEndpoint::start([], Answer::Refuse(401)),
        FakeEndpoint::start([], Answer::Accept),
    );
    let port = free_port();
    let sinks = otlp("forbidden", &forbidding.url())
        + &otlp("dead", &format!("http://127.0.0.1:{port}"))
        + &otlp("healthy", &healthy.url());
    world.configure_as(&Setup {
        sinks: &sinks,
        rest: "limits:\n  retry_after: 100ms\n  retry_at_most: 200ms\n",
        ..Setup::default()
    });
    let agent = world.start();
    let up = |sink: &str| {
        let labels = format!("pulsetrain_sink_name=\"{sink}\"");
        world.scraped_where("pulsetrain_sink_up", &labels)
    };
    wait_until("the log has a line for each", || {
        let log = agent.log();
        log.contains("sink forbidden: fails: ")
            && log.contains("sink dead: fails: ")
            && log.contains("sink healthy: delivers")
    });
    let log = agent.log();
    assert!(log.contains("401"), "{log}");
    assert_eq!(log.matches("sink dead: ").count(), 1, "not once a try: {log}");
    wait_until("readiness names both", || {
        let answer = world.readiness();
        answer.starts_with("HTTP/1.1 200")
            && answer.contains("sink forbidden fails: ")
            && answer.contains("sink dead fails: ")
            && !answer.contains("healthy")
    });
    wait_until("the page has their state", || {
        (up("forbidden"), up("dead"), up("healthy")) == (vec![0.0], vec![0.0], vec![1.0])
    });

    forbidding.answer_with(Answer::Accept);
    let _alive = FakeEndpoint::start_at(port, [], Answer::Accept);
    wait_until("both are back", || {
        let log = agent.log();
        log.contains("sink forbidden: delivers again") && log.contains("sink dead: delivers again")
    });
    wait_until("readiness names nobody", || !world.readiness().contains("fails"));
    wait_until("the page has their state", || {
        (up("forbidden"), up("dead")) == (vec![1.0], vec![1.0])
    });
    let (status, printed) = agent.stop_with_log();
    assert_eq!(status.code(), Some(0), "what 401 refused was held: {printed}");
}

#[test]
fn refused_reload_and_version_are_on_the_page() {
    let world = World::new();
    let agent = world.start();
    let reloaded = || world.scraped("pulsetrain_config_last_reload_success");
    wait_until("the page has the first configuration", || reloaded() == [1.0]);
    assert_eq!(world.scraped("pulsetrain_build_info"), [1.0]);
    fs::write(world.path("agent.yaml"), "sinks: 7\n").unwrap();
    agent.reload();
    wait_until("the page names the refusal", || reloaded() == [0.0]);
    world.configure("");
    agent.reload();
    wait_until("the page has the new configuration", || reloaded() == [1.0]);
    assert!(agent.stop().success());
}

#[test]
fn status_has_state_error_and_lag_of_each_log_and_links_outside_are_refused() {
    let world = World::new();
    world.write_log("surogate/training_dense.json");
    fs::write(world.path("compressed.json"), [0x1f, 0x8b, 8, 0]).expect("a log can be written");
    fs::create_dir(world.path("linked")).expect("a folder can be made");
    symlink(world.path("training.json"), world.path("linked/secret.json")).expect("a link can be made");
    world.configure_as(&Setup {
        logs: &[
            "training.json",
            "compressed.json",
            "missing.json",
            "linked/*.json",
        ],
        ..Setup::default()
    });
    let agent = world.start();
    let logs = || -> BTreeMap<String, (String, bool, bool)> {
        let status = get(world.health(), "/status");
        let Some((_, body)) = status.split_once("\r\n\r\n") else {
            return BTreeMap::new();
        };
        let status: Value = serde_json::from_str(body).expect("the status is JSON");
        let sources = status["sources"].as_array().expect("a list").iter();
        let logs = sources.flat_map(|source| source["logs"].as_array().expect("a list").clone());
        let named = logs.map(|log| {
            let path = log["path"].as_str().expect("a path");
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            let state = log["state"].as_str().expect("a state").to_owned();
            (
                name,
                (state, !log["error"].is_null(), log["lag_seconds"].is_f64()),
            )
        });
        named.collect()
    };
    let state = |state: &str, has_error, has_lag| (state.to_owned(), has_error, has_lag);
    let expected = BTreeMap::from([
        ("training.json".to_owned(), state("up_to_date", false, true)),
        ("compressed.json".to_owned(), state("failing", true, false)),
        ("missing.json".to_owned(), state("waiting", false, false)),
    ]);
    wait_until("the status has each log", || logs() == expected);
    wait_until("the link is refused", || {
        agent.log().contains("outside the folder that is followed")
    });
    assert!(agent.stop().success());
}
