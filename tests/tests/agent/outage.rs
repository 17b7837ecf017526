//! A real Collector that stops and restarts: queued items arrive, and items that did not fit are counted.

use std::{collections::HashMap, fs, path::Path, process::Command, time::Duration};

use fastrand::Rng;
use pulsetrain_tests::{
    Collector, Import, Items, Judge, Process, SurogateRun, command, corpus, free_port,
    otlp::{list, time},
    repeat_for, some_or_return, wait_until,
};
use serde_json::Value;

use crate::world::{Setup, World, imported};

/// The duration of the outage of the Collector.
const OUTAGE: Duration = Duration::from_secs(20);

/// A queue in memory, which is full when it reaches its maximum number of batches.
const IN_MEMORY: &str = "      disk_queue: off\n";

/// Fast retries, so that an outage of seconds has several attempts.
const QUICK: &str = "limits:\n  retry_after: 100ms\n  retry_at_most: 500ms\n";

#[test]
fn everything_arrives_in_order_after_a_20_second_collector_outage() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let mut random = Rng::with_seed(3);
    let world = World::new();
    let log = world.path("training.json");
    let mut run = SurogateRun::begin(&log, 0);
    let collector = Collector::start(&program);
    let ports = collector.ports();
    configure(&world, ports, "interval: 100ms", QUICK);
    let agent = world.start();
    run.write(&mut random, 100);
    let before = imported(&[&log]);
    wait_until("the first part has arrived", || {
        of_logs(collector.received()).len() >= before.len()
    });
    let first = collector.stop_with_text();

    repeat_for(OUTAGE, || {
        let retries = counted(&world, "pulsetrain_retries_total");
        run.write(&mut random, 30);
        wait_until("the agent has tried again and again", || {
            counted(&world, "pulsetrain_retries_total") >= retries + 3.0
        });
    });
    wait_until("all of it waits", || {
        counted(&world, "pulsetrain_queue_items") > 3000.0
            && counted(&world, "pulsetrain_queue_size_bytes") > 30_000.0
    });
    assert_eq!(counted(&world, "pulsetrain_dropped_items_total"), 0.0);

    let collector = Collector::start_at(&program, ports);
    let expected = imported(&[&log]);
    wait_until("the rest has arrived", || {
        of_logs(collector.received()).len() >= expected.len() - before.len()
    });
    assert!(agent.stop().success());
    let text = first + &collector.stop_with_text();
    of_logs(Items::parse(&text)).assert_same(&expected);
    assert_points_are_in_order(&text);
}

#[test]
fn full_queue_of_a_required_sink_pauses_the_log_and_loses_nothing() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let mut random = Rng::with_seed(4);
    let world = World::new();
    let log = world.path("training.json");
    let mut run = SurogateRun::begin(&log, 0);
    let ports = [free_port(), free_port()];
    let rest = format!("{QUICK}  queue_batches: 6\n");
    configure_as(&world, ports, IN_MEMORY, "interval: 100ms", &rest);
    let agent = world.start();
    for _ in 0..10 {
        let length = counted(&world, "pulsetrain_queue_length");
        run.write(&mut random, 30);
        // A flush has up to three batches, one per signal: with four in the queue it may have to wait.
        wait_until("the queue grows or has no room for a flush", || {
            let now = counted(&world, "pulsetrain_queue_length");
            now > length || now >= 4.0
        });
    }
    let collector = Collector::start_at(&program, ports);
    let expected = imported(&[&log]);
    wait_until("all of the log has arrived", || {
        of_logs(collector.received()).len() >= expected.len()
    });
    let (status, printed) = agent.stop_with_log();
    let of_agent = "the agent's own telemetry does not wait";
    assert!(matches!(status.code(), Some(0 | 1)), "{of_agent}: {printed}");
    of_logs(collector.stop()).assert_same(&expected);
}

#[test]
fn full_queue_of_an_optional_sink_drops_and_counts_items() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let mut random = Rng::with_seed(4);
    let world = World::new();
    let log = world.path("training.json");
    let mut run = SurogateRun::begin(&log, 0);
    let ports = [free_port(), free_port()];
    configure_best_effort(
        &world,
        ports,
        "enabled: false",
        &format!("{QUICK}  queue_batches: 6\n"),
    );
    let agent = world.start();
    for _ in 0..10 {
        run.write(&mut random, 30);
        wait_until_read(&world, &log);
    }
    let collector = Collector::start_at(&program, ports);
    wait_until("what was queued has arrived", || !collector.received().is_empty());
    let (status, printed) = agent.stop_with_log();
    assert_eq!(status.code(), Some(1), "a loss is a failure: {printed}");
    let lost = lost_to(&printed, "collector");
    let arrived = collector.stop();
    let expected = imported(&[&log]);
    expected.assert_holds(&arrived);
    assert!(lost > 0 && !arrived.is_empty());
    assert_eq!(
        arrived.len() + lost,
        expected.len(),
        "accepted = delivered + dropped"
    );
}

#[test]
fn item_counts_of_a_lossy_sink_balance_on_the_metrics_page() {
    let world = World::new();
    let ports = [free_port(), free_port()];
    configure_best_effort(
        &world,
        ports,
        "interval: 100ms",
        &format!("{QUICK}  queue_batches: 6\n"),
    );
    let agent = world.start();
    world.write_log("surogate/training_dense.json");
    wait_until_read(&world, &world.path("training.json"));
    let lost = || {
        let labels = r#"pulsetrain_drop_reason="queue_full""#;
        world
            .scraped_where("pulsetrain_dropped_items_total", labels)
            .iter()
            .sum::<f64>()
    };
    wait_until("the page counts the loss and its reason", || lost() > 0.0);
    wait_until("accepted = delivered + dropped + queued", || {
        let accepted: f64 = world.scraped("pulsetrain_accepted_items_total").iter().sum();
        let [delivered, dropped, queued] = [
            "pulsetrain_delivered_items_total",
            "pulsetrain_dropped_items_total",
            "pulsetrain_queue_items",
        ]
        .map(|name| counted(&world, name));
        accepted > 0.0 && accepted == delivered + dropped + queued
    });
    drop(agent);
}

/// The trainer prints half of its log before the Collector starts, and the rest after it.
#[test]
fn output_printed_before_the_collector_starts_arrives() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let world = World::new();
    let ports = [free_port(), free_port()];
    configure(&world, ports, "interval: 100ms", QUICK);
    let log = fs::read_to_string(corpus("maxtext/demo.stderr")).unwrap();
    let step = log.rfind("completed step").unwrap();
    let half = log[..step].rfind('\n').unwrap() + 1;
    fs::write(world.path("first"), &log[..half]).unwrap();
    fs::write(world.path("second"), &log[half..]).unwrap();
    let mut trainer = run_of_trainer(&world);
    trainer.wait_until_ready(|| !world.scraped("train_loss").is_empty());
    let collector = Collector::start_at(&program, ports);
    fs::write(world.path("go"), "").unwrap();
    let printed = trainer.end_well();
    assert!(!printed.contains("lost"), "{printed}");
    let imported = world.path("imported.jsonl");
    Import::new(corpus("maxtext/demo.stderr"))
        .arg("--format=maxtext")
        .to(&imported)
        .run()
        .expect_code(0);
    let (arrived, imported) = (collector.stop(), Items::read(&imported));
    assert_eq!(arrived.points_by_metric(), imported.points_by_metric());
    assert_eq!(arrived.values("train.loss"), imported.values("train.loss"));
}

fn run_of_trainer(world: &World) -> Process {
    let script = "cat \"$0\"/first >&2; while [ ! -e \"$0\"/go ]; do sleep 0.05; done; cat \"$0\"/second >&2";
    let mut run: Command = command(["run", "--format=maxtext", "--drain=20", "--config"]);
    run.arg(world.path("agent.yaml"))
        .env("STATE", world.path("state"))
        .args(["--", "sh", "-c", script])
        .arg(world.path(""));
    Process::start("pulsetrain run", &mut run)
}

fn configure(world: &World, ports: [u16; 2], telemetry: &str, rest: &str) {
    configure_as(world, ports, "", telemetry, rest);
}

/// As [`configure`], with a sink that may lose items.
fn configure_best_effort(world: &World, ports: [u16; 2], telemetry: &str, rest: &str) {
    let keys = format!("      required: false\n{IN_MEMORY}");
    configure_as(world, ports, &keys, telemetry, rest);
}

fn configure_as(world: &World, [grpc, _]: [u16; 2], keys: &str, telemetry: &str, rest: &str) {
    let sinks = format!("  collector:\n    otlp:\n      endpoint: grpc://127.0.0.1:{grpc}\n{keys}");
    world.configure_as(&Setup {
        sinks: &sinks,
        telemetry,
        rest,
        ..Setup::default()
    });
}

/// Waits until the page shows the last loss of a log.
fn wait_until_read(world: &World, log: &Path) {
    let losses = imported(&[log]).values("train.loss");
    let last = losses.last().expect("the log has a loss").1;
    wait_until("the agent has read the log", || {
        world.scraped("train_loss") == [last]
    });
}

/// Returns a metric of the sink `collector` on the page, summed over all signals.
fn counted(world: &World, name: &str) -> f64 {
    world
        .scraped_where(name, r#"pulsetrain_sink_name="collector""#)
        .iter()
        .sum()
}

/// Returns the number of items that a sink has lost, from the last log lines of the agent.
fn lost_to(printed: &str, sink: &str) -> usize {
    let start = format!("pulsetrain: sink {sink}: lost ");
    let counts = printed.lines().filter_map(|line| {
        let (count, why) = line.strip_prefix(&start)?.split_once(" items of ")?;
        assert!(why.ends_with(" (queue full)"), "{line}");
        count.parse::<usize>().ok()
    });
    counts.sum()
}

fn of_logs(items: Items) -> Items {
    items.divide_by_service("pulsetrain").1
}

/// Panics if the timestamps of a series in OTLP/JSON decrease.
fn assert_points_are_in_order(text: &str) {
    let mut last = HashMap::<String, u64>::new();
    let mut points = 0;
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).expect("a line is JSON");
        for resource in list(&message["resourceMetrics"]) {
            for metric in list(&resource["scopeMetrics"])
                .iter()
                .flat_map(|scope| list(&scope["metrics"]))
            {
                for kind in ["gauge", "sum", "histogram"] {
                    for point in list(&metric[kind]["dataPoints"]) {
                        let series = format!(
                            "{}{}{}",
                            resource["resource"], metric["name"], point["attributes"]
                        );
                        let time = time(point, "timeUnixNano");
                        let before = last.insert(series, time).unwrap_or_default();
                        assert!(before <= time, "{} goes back: {point}", metric["name"]);
                        points += 1;
                    }
                }
            }
        }
    }
    assert!(points > 1000, "only {points} points");
}
