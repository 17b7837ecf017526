//! The messages of the agent: as JSON lines, with a minimum level, and changed by a reload.

use std::fs;

use pulsetrain_tests::{Process, free_port, wait_until};
use serde_json::Value;

use crate::world::{Setup, World, check};

/// Writes a configuration with a sink whose endpoint does not listen, and these keys of `log`.
fn configure(world: &World, log: &str) {
    world.configure_as(&Setup {
        sinks: &format!(
            "  dead:\n    otlp:\n      endpoint: http://127.0.0.1:{}\n",
            free_port()
        ),
        rest: &format!("limits: {{retry_after: 100ms, drain: 100ms}}\nlog: {log}\n"),
        ..Setup::default()
    });
}

/// Returns the lines of a log: each is an object with the fields of every message.
#[track_caller]
fn records(log: &str) -> Vec<Value> {
    let record = |line: &str| {
        let record: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?} of\n{log}"));
        let text = |key: &str| record[key].as_str().unwrap_or_else(|| panic!("no {key}: {line}"));
        let time: jiff::Timestamp = text("time").parse().expect("a time is RFC 3339");
        assert!(text("time").ends_with('Z') && time.as_second() > 0, "{line}");
        assert!(
            ["error", "warn", "info", "debug"].contains(&text("level")),
            "{line}"
        );
        assert!(!text("message").is_empty(), "{line}");
        record
    };
    log.lines().map(record).collect()
}

#[test]
fn every_json_log_line_names_its_sink_or_source() {
    let world = World::new();
    configure(&world, "{format: json, level: debug}");
    // Checkpoints that cannot be read, and an invalid log.
    fs::create_dir(world.path("state")).unwrap();
    fs::write(world.path("state/positions.json"), "nonsense").unwrap();
    fs::write(world.path("training.json"), [0xff, b'\n', 0, b'\n']).unwrap();
    let agent = world.start();
    wait_until("the sink fails", || agent.log().contains("fails: "));
    wait_until("the log is no log", || {
        let is_about = |line: &str| line.contains(r#""level":"info","source":"training""#);
        agent.log().lines().any(is_about)
    });
    fs::write(world.path("agent.yaml"), "sinks: 7\nlog: {level: loud}\n").unwrap();
    agent.reload();
    wait_until("the reload is refused", || {
        agent.log().contains("continues with the old configuration")
    });
    configure(&world, "{format: json, level: error}");
    agent.reload();
    wait_until("the new sink fails", || {
        agent.log().matches("fails: ").count() > 1
    });
    let (_, log) = agent.stop_with_log();
    let records = records(&log);
    let about = |key: &str, name: &str, level: &str| {
        let is_it = |record: &&Value| record[key] == name && record["level"] == level;
        assert!(records.iter().any(|record| is_it(&record)), "{key} {name}: {log}");
    };
    about("sink", "dead", "error");
    about("sink", "page", "debug");
    about("source", "training", "info");
    let place = format!("{}:1:8: ", world.path("agent.yaml").display());
    let is_fault = |record: &Value| {
        let message = record["message"].as_str().unwrap_or_default();
        message.starts_with(&place) && record["level"] == "error" && record["sink"].is_null()
    };
    assert!(records.iter().any(is_fault), "{log}");
    let at_debug = records.iter().position(|record| record["level"] == "debug");
    let refused = records
        .iter()
        .position(|record| record["message"] == "continues with the old configuration");
    assert!(at_debug < refused, "{log}");
    let later = &records[refused.unwrap() + 1..];
    assert!(
        !later.is_empty() && later.iter().all(|record| record["level"] == "error"),
        "the reload sets the level: {log}"
    );
}

#[test]
fn log_flags_override_the_config_and_level_error_hides_other_levels() {
    let world = World::new();
    let mut command = world.command();
    command.args(["--log-level", "error"]);
    let mut agent = Process::start("pulsetrain agent", &mut command);
    agent.wait_until_ready(|| world.is_ready());
    world.write_log("surogate/training_dense.json");
    wait_until("the page has a loss", || !world.scraped("train_loss").is_empty());
    world.configure_as(&Setup {
        rest: "log: {level: debug}\n",
        ..Setup::default()
    });
    agent.reload();
    let log = agent.stop_well();
    assert_eq!(log, "");
}

#[test]
fn unknown_log_level_or_format_is_rejected_with_its_location() {
    let world = World::new();
    for (log, column, expected) in [
        (
            "{level: loud}",
            14,
            "\"loud\"; it can be: error, warn, info, debug",
        ),
        ("{format: xml}", 15, "\"xml\"; it can be: text, json"),
    ] {
        world.configure_as(&Setup {
            rest: &format!("log: {log}\n"),
            ..Setup::default()
        });
        let refused = check(&world).expect_code(2).stderr;
        assert!(
            refused.contains(&format!(":{column}: ")) && refused.contains(expected),
            "{refused}"
        );
    }
}
