//! Settings that a reload changes at once, settings that it reports as unchangeable, and sinks that cannot be opened.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    os::unix::net::UnixStream,
    process::Command,
};

use pulsetrain_tests::{Answer, FakeEndpoint, Process, corpus, free_port, wait_until};

use crate::{
    delivery::{configure, post},
    world::{Setup, World, check, get},
};

#[test]
fn unopened_sink_is_retried_and_named_by_the_readiness_probe() {
    let world = World::new();
    let agent = world.start();
    world.configure(&world.file_sink("archive", "later/out.jsonl"));
    agent.reload();
    wait_until("the agent is not ready", || {
        let answer = world.readiness();
        answer.starts_with("HTTP/1.1 503")
            && answer.contains("not ready: the sink archive: cannot write")
            && answer.contains("create the directory first")
    });
    assert!(
        agent.log().contains("it is tried again every second"),
        "{}",
        agent.log()
    );
    fs::create_dir(world.path("later")).unwrap();
    wait_until("the agent is ready", || world.is_ready());
    assert!(
        agent.log().contains("sink archive: is open now"),
        "{}",
        agent.log()
    );
    world.write_log("surogate/training_dense.json");
    wait_until("the sink gets what comes", || {
        world.written("later/out.jsonl").1.values("train.loss").len() == 30
    });
    assert!(agent.stop().success());
}

/// The token is in a pipe: the check reads a token, and the attempts to open the sink read an empty line.
#[test]
fn sink_notice_is_logged_once_across_open_attempts() {
    let world = World::new();
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let mut command = world.command();
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.url())
        .env("OTEL_EXPORTER_OTLP_COMPRESSION", "brotli");
    let mut agent = Process::start("pulsetrain agent", &mut command);
    agent.wait_until_ready(|| world.is_ready());
    let token = world.path("token");
    let made = Command::new("mkfifo").arg(&token).status();
    assert!(made.expect("mkfifo can be started").success());
    world.configure(&format!(
        "  o:\n    otlp:\n      bearer_token_file: {}\n      signals: [logs]\n",
        token.display()
    ));
    agent.reload();
    fs::write(&token, "token\n").unwrap();
    let notices = || agent.log().matches("OTEL_EXPORTER_OTLP_COMPRESSION").count();
    wait_until("the check is over", || notices() == 1);
    fs::write(&token, "\n").unwrap();
    wait_until("the sink cannot be opened", || {
        agent.log().contains("sink o: cannot be opened")
    });
    // The write blocks until the next attempt.
    fs::write(&token, "\n").unwrap();
    assert_eq!(notices(), 1, "{}", agent.log());
}

#[test]
fn receiver_with_a_used_port_is_rejected_and_opened_by_a_later_reload() {
    let world = World::new();
    let agent = world.start();
    let receiver = free_port();
    let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, receiver)).unwrap();
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    configure(&world, receiver, &endpoint.url(), "", "");
    agent.reload();
    wait_until("the old configuration continues", || {
        agent.log().contains("continues with the old configuration")
    });
    let named = format!("cannot listen on 127.0.0.1:{receiver}");
    assert!(agent.log().contains(&named), "{}", agent.log());
    assert!(world.is_ready());
    drop(holder);
    agent.reload();
    wait_until("the receiver is open", || {
        post(receiver, "message 1") == Some(200)
    });
    assert!(agent.stop().success());
}

#[test]
fn unopened_source_is_retried_and_named_by_the_readiness_probe() {
    let world = World::new();
    let agent = world.start();
    let socket = world.path("later/otlp.sock");
    let receiver = format!(
        "  clients:\n    otlp:\n      listen: [unix:{}]\nsinks:\n",
        socket.display()
    );
    let yaml = world.yaml(&Setup::default()).replacen("sinks:\n", &receiver, 1);
    fs::write(world.path("agent.yaml"), yaml).unwrap();
    agent.reload();
    wait_until("the agent is not ready", || {
        let answer = world.readiness();
        answer.starts_with("HTTP/1.1 503") && answer.contains("not ready: the source clients: cannot listen")
    });
    fs::create_dir(world.path("later")).unwrap();
    wait_until("the agent is ready", || world.is_ready());
    let log = agent.log();
    assert_eq!(
        log.matches("source clients: cannot be opened").count(),
        1,
        "{log}"
    );
    assert!(log.contains("source clients: is open now"), "{log}");
    assert!(UnixStream::connect(&socket).is_ok());
    assert!(agent.stop().success());
}

#[test]
fn removing_a_sink_that_cannot_be_opened_restores_readiness() {
    let world = World::new();
    let agent = world.start();
    world.configure(&world.file_sink("archive", "nowhere/out.jsonl"));
    agent.reload();
    wait_until("the agent is not ready", || world.readiness().contains("nowhere"));
    world.configure("");
    agent.reload();
    wait_until("the agent is ready", || world.is_ready());
    assert!(agent.stop().success());
}

#[test]
fn metrics_page_moved_to_another_port_keeps_its_series() {
    let world = World::new();
    let agent = world.start();
    world.write_log("surogate/training_dense.json");
    wait_until("the page has a loss", || !world.scraped("train_loss").is_empty());
    let series = |port| {
        let page = get(port, "/metrics");
        let lines = page.lines().filter(|line| line.starts_with("train_"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    wait_until("the page has all of the log", || series(world.page()).len() > 40);
    let before = series(world.page());
    let port = free_port();
    let yaml = world.yaml(&Setup::default());
    let yaml = yaml.replace(
        &format!("listen: 127.0.0.1:{}", world.page()),
        &format!("listen: 127.0.0.1:{port}"),
    );
    fs::write(world.path("agent.yaml"), yaml).unwrap();
    agent.reload();
    wait_until("the page is elsewhere", || !series(port).is_empty());
    assert_eq!(series(port), before);
    assert_eq!(series(world.page()), [""; 0]);
    assert!(agent.stop().success());
}

#[test]
fn health_port_changes_on_reload_and_restart_only_settings_are_reported() {
    let world = World::new();
    let agent = world.start();
    let port = free_port();
    let yaml = world.yaml(&Setup {
        telemetry: "interval: 200ms",
        rest: "limits:\n  queue_batches: 7\n  drain: 3s\n",
        ..Setup::default()
    });
    let yaml = yaml
        .replace(
            &format!("listen: 127.0.0.1:{}", world.health()),
            &format!("listen: 127.0.0.1:{port}"),
        )
        .replace("${STATE}", "elsewhere");
    fs::write(world.path("agent.yaml"), yaml).unwrap();
    agent.reload();
    wait_until("health answers at its new port", || {
        get(port, "/readyz").starts_with("HTTP/1.1 200")
    });
    assert_eq!(get(world.health(), "/healthz"), "");
    let printed = "restart the agent to change limits other than limits.drain, state_folder";
    wait_until("the agent logs what it cannot change", || {
        agent.log().contains(printed)
    });
    assert!(agent.stop().success());
}

/// The sink continues under another name: its file is not truncated, and later data is not lost.
#[test]
fn renaming_a_file_sink_in_a_reload_keeps_its_contents() {
    let world = World::new();
    world.configure(&world.file_sink("archive", "out.jsonl"));
    let agent = world.start();
    let log = fs::read_to_string(corpus("surogate/training_dense.json")).unwrap();
    let half = log[..log.len() / 2].rfind('\n').unwrap();
    fs::write(world.path("training.json"), &log[..half]).unwrap();
    wait_until("the first half has come", || {
        !world.written("out.jsonl").1.values("train.loss").is_empty()
    });
    world.configure(&world.file_sink("store", "out.jsonl"));
    agent.reload();
    fs::write(world.path("training.json"), &log).unwrap();
    wait_until("all of it has come", || {
        world.written("out.jsonl").1.values("train.loss").len() >= 30
    });
    assert!(agent.stop().success());
    let expected = crate::world::imported(&[world.path("training.json")]);
    world.written("out.jsonl").1.assert_same(&expected);
}

#[test]
fn changed_file_is_reloaded_and_checked_next_to_the_running_agent() {
    let world = World::new();
    let agent = world.start();
    // All addresses are those of the agent that the file is for.
    check(&world).expect_code(0);
    world.configure("  archive: {nothing: {}}\n");
    wait_until("the agent refuses the file", || {
        agent.log().contains("continues with the old configuration")
    });
    check(&world).expect_code(2);
    let port = free_port();
    let yaml = world.yaml(&Setup::default()).replace(
        &format!("listen: 127.0.0.1:{}", world.page()),
        &format!("listen: 127.0.0.1:{port}"),
    );
    fs::write(world.path("agent.yaml"), &yaml).unwrap();
    wait_until("the page is elsewhere", || {
        get(port, "/metrics").starts_with("HTTP/1.1 200")
    });
    check(&world).expect_code(0);
    // The key turns it off, from the reload that reads it.
    fs::write(
        world.path("agent.yaml"),
        format!("{yaml}reload_on_change: false\n"),
    )
    .unwrap();
    let reloads = || agent.log().matches("reloaded the configuration").count();
    wait_until("the key is read", || reloads() == 2);
    fs::write(world.path("agent.yaml"), "nothing: {}\n").unwrap();
    agent.reload();
    wait_until("only the signal reloads the file", || {
        agent
            .log()
            .matches("continues with the old configuration")
            .count()
            == 2
    });
    assert!(agent.stop().success());
}

#[test]
fn address_of_another_program_is_no_address_of_the_running_agent() {
    let world = World::new();
    let agent = world.start();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let yaml = world.yaml(&Setup::default()).replace(
        &format!("listen: 127.0.0.1:{}", world.page()),
        &format!("listen: {}", other.local_addr().unwrap()),
    );
    fs::write(world.path("agent.yaml"), yaml).unwrap();
    check(&world).expect_code(2).expect_words(&["cannot listen on"]);
    assert!(agent.stop().success());
}
