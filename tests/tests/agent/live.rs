//! `pulsetrain agent`: from a growing log to a page and a file, with changes of its configuration.

use std::{
    fs,
    io::Write,
    net::{Ipv4Addr, TcpListener},
    process::Command,
};

use pulsetrain_tests::{
    Finished, Folder, Items, Process, SurogateLog, command, corpus, free_port, wait_until,
};

use crate::world::{World, check};

#[test]
fn appended_log_reaches_the_metrics_page_and_the_output_file() {
    let world = World::new();
    world.configure(&world.file_sink("archive", "out.jsonl"));
    let agent = world.start();
    assert_eq!(world.scraped("train_loss"), [0.0; 0]);
    world.write_log("surogate/training_dense.json");

    let log = SurogateLog::read(&corpus("surogate/training_dense.json"));
    let losses: Vec<f64> = log
        .of_kind("step")
        .iter()
        .map(|step| step.number("loss"))
        .collect();
    wait_until("the page has the loss of the last step", || {
        world.scraped("train_loss") == losses[losses.len() - 1..]
    });
    wait_until("the agent has counted what it read", || {
        world
            .scraped("pulsetrain_accepted_items_total")
            .iter()
            .sum::<f64>()
            > losses.len() as f64
    });
    wait_until("the agent knows its series", || {
        world.scraped("pulsetrain_series_active").iter().sum::<f64>() > 10.0
    });
    for name in [
        "pulsetrain_delivered_items_total",
        "pulsetrain_queue_items",
        "pulsetrain_queue_length",
        "pulsetrain_source_lag_seconds",
        "pulsetrain_source_log_lag_seconds",
        "pulsetrain_export_duration_seconds_count",
    ] {
        wait_until(name, || !world.scraped(name).is_empty());
    }
    let logs = |state: &str| {
        let state = format!("pulsetrain_log_state=\"{state}\"");
        world.scraped_where("pulsetrain_source_logs", &state)
    };
    wait_until("the log is up to date", || {
        logs("up_to_date") == [1.0] && logs("failing") == [0.0]
    });
    assert!(agent.stop().success());
    let items = Items::read(&world.path("out.jsonl"));
    let mut sent: Vec<_> = items.values("train.loss");
    sent.sort_by_key(|(time, _)| *time);
    assert_eq!(sent.into_iter().map(|(_, loss)| loss).collect::<Vec<_>>(), losses);
}

/// As in every OpenTelemetry program, both variables set the resource of the logs and of the agent.
#[test]
fn opentelemetry_resource_variables_apply_to_all_telemetry() {
    let world = World::new();
    world.configure(&world.file_sink("archive", "out.jsonl"));
    world.write_log("surogate/training_dense.json");
    let mut agent = world.command();
    agent
        .env("OTEL_SERVICE_NAME", "nightly")
        .env("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=a%20b");
    let agent = Process::start("pulsetrain agent", &mut agent);
    let out = || Items::read_complete_lines(&world.path("out.jsonl"));
    let has = |name: &str| !out().values(name).is_empty();
    wait_until("logs and agent have spoken", || {
        has("train.loss") && has("pulsetrain.accepted_items")
    });
    assert!(agent.stop().success());
    let resource_of = |name: &str| out().points_of(name)[0]["resource"].to_string();
    for name in ["train.loss", "pulsetrain.accepted_items"] {
        let resource = resource_of(name);
        for word in ["\"nightly\"", "\"team\"", "\"a b\""] {
            assert!(resource.contains(word), "{name} of {resource}");
        }
        assert!(!resource.contains("other"), "{name} of {resource}");
    }
    // An invalid variable is ignored completely, and reported.
    let mut agent = world.command();
    agent.env("OTEL_RESOURCE_ATTRIBUTES", "team=a,zone");
    let mut agent = Process::start("pulsetrain agent", &mut agent);
    agent.wait_until_ready(|| world.is_ready());
    let (_, log) = agent.stop_with_log();
    assert!(
        log.contains("continues without it: OTEL_RESOURCE_ATTRIBUTES"),
        "{log}"
    );
}

#[test]
fn restart_resumes_at_the_position_of_the_previous_agent() {
    let world = World::new();
    world.configure(&world.file_sink("archive", "out.jsonl"));
    let log = fs::read_to_string(corpus("surogate/training_dense.json")).unwrap();
    let half = log[..log.len() / 2].rfind("\n").unwrap();
    fs::write(world.path("training.json"), &log[..half]).unwrap();
    let first = world.start();
    wait_until("the first agent has read", || {
        !world.scraped("train_loss").is_empty()
    });
    assert!(first.stop().success());
    fs::write(world.path("rest"), "").unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(world.path("training.json"))
        .unwrap()
        .write_all(&log.as_bytes()[half..])
        .unwrap();
    let losses: Vec<f64> = SurogateLog::read(&corpus("surogate/training_dense.json"))
        .of_kind("step")
        .iter()
        .map(|step| step.number("loss"))
        .collect();
    let second = world.start();
    wait_until("the second agent has read the rest", || {
        world.scraped("train_loss") == losses[losses.len() - 1..]
    });
    assert!(second.stop().success());
    let mut sent = Items::read(&world.path("out.jsonl")).values("train.loss");
    sent.sort_by_key(|(time, _)| *time);
    assert_eq!(sent.into_iter().map(|(_, loss)| loss).collect::<Vec<_>>(), losses);
}

#[test]
fn reload_applies_only_the_changes() {
    let world = World::new();
    let agent = world.start();
    world.write_log("surogate/training_dense.json");
    wait_until("the page has a loss", || !world.scraped("train_loss").is_empty());

    world.configure("  archive:\n    fil:\n      path: out.jsonl\n");
    agent.reload();
    wait_until("the bad configuration is refused", || {
        agent.log().contains("continues with the old configuration")
    });
    assert!(agent.log().contains("did you mean \"file\"?"), "{}", agent.log());

    world.configure(&world.file_sink("archive", "out.jsonl"));
    agent.reload();
    wait_until("the configuration is reloaded", || {
        agent.log().contains("reloaded the configuration")
    });
    assert!(
        !world.scraped("train_loss").is_empty(),
        "the page has forgotten its series"
    );
    world.write_log("surogate/training_moe.json");
    wait_until("the new sink has the new run", || {
        fs::read_to_string(world.path("out.jsonl")).is_ok_and(|sent| sent.contains("moe."))
    });

    world.configure("");
    agent.reload();
    wait_until("the sink is taken out", || {
        agent.log().matches("reloaded the configuration").count() == 2
    });
    assert!(agent.stop().success());
}

#[test]
fn a_configuration_is_checked_without_starting_anything() {
    let world = World::new();
    check(&world).expect_code(0);

    world.configure("  archive:\n    file:\n      paht: out.jsonl\n");
    let message = check(&world).expect_code(2).stderr;
    assert!(
        message.contains("agent.yaml:13:7: unknown key \"paht\"; did you mean \"path\"?"),
        "{message}"
    );

    world.configure("");
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, world.page())).unwrap();
    let message = check(&world).expect_code(2).stderr;
    let us = format!("(process {}), or choose another port", std::process::id());
    assert!(
        message.contains("agent.yaml:10:15: cannot listen on") && message.contains(&us),
        "{message}"
    );
    // An agent without its page does not start.
    Finished::run(&mut world.command()).expect_code(2);
}

#[test]
fn named_pipe_is_rejected_and_does_not_block_the_config_check() {
    let world = World::new();
    let made = Command::new("mkfifo")
        .arg(world.path("training.json"))
        .status()
        .unwrap();
    assert!(made.success());
    let message = check(&world).expect_code(2).stderr;
    assert!(
        message.contains("training.json cannot be read: it is not a regular file"),
        "{message}"
    );
}

#[test]
fn printed_configuration_passes_the_check() {
    let printed = Finished::run(&mut command(["agent", "--print-config"])).expect_code(0);
    let folder = Folder::new();
    let [page, health] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let text = printed.stdout.replace("127.0.0.1:9464", &page);
    let config = folder.file("a.yaml", text.replace("127.0.0.1:13133", &health));
    Finished::run(command(["agent", "--check", "--config"]).arg(config)).expect_code(0);
}
