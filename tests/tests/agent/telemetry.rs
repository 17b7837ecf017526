//! The agent's own telemetry: every metric of the agent in the registry is on its page.

use std::{fs, process::Command};

use pulsetrain_semconv::metric;
use pulsetrain_tests::{Answer, FakeEndpoint, SurogateRun, corpus, free_port, wait_until};

use crate::world::{Setup, World, scraped_from};

#[test]
fn every_agent_metric_is_on_the_metrics_page() {
    let endpoint = FakeEndpoint::start([Answer::Busy(1), Answer::Refuse(400)], Answer::Hang);
    let world = World::new();
    // Without merging, because a rejected request of several batches is split, and not dropped.
    let sinks = format!(
        "  collector:\n    otlp:\n      endpoint: {}\n      batch: {{max_bytes: 0B}}\n",
        endpoint.url()
    );
    world.configure_as(&Setup {
        logs: &["training.json", "bad.json"],
        sinks: &sinks,
        ..Setup::default()
    });
    let log = fs::read_to_string(corpus("surogate/training_dense.json")).unwrap();
    let broken = log.replacen("\"loss\":", "\"loss\" 17", 1);
    fs::write(world.path("bad.json"), broken).unwrap();
    let mut run = SurogateRun::begin(&world.path("training.json"), 0);
    run.write(&mut fastrand::Rng::with_seed(5), 20);
    let _agent = world.start();

    let ours: Vec<_> = metric::ALL
        .iter()
        .filter(|metric| metric.name.starts_with("pulsetrain."))
        .collect();
    assert!(ours.len() >= 15, "{}", ours.len());
    for metric in ours {
        let name = metric.prometheus_name;
        wait_until(&format!("the page has {name}"), || {
            !world.scraped(name).is_empty() || !world.scraped(&format!("{name}_count")).is_empty()
        });
    }
    let of_bad = r#"pulsetrain_source_name="bad""#;
    wait_until("the page counts what was not understood, and why", || {
        world
            .scraped_where("pulsetrain_skipped_records_total", of_bad)
            .iter()
            .sum::<f64>()
            >= 1.0
    });
    assert_eq!(world.scraped("pulsetrain_series_limit"), [200_000.0]);
    assert_eq!(
        world.scraped("pulsetrain_series_size_limit_bytes"),
        [268_435_456.0]
    );
    let size = world.scraped("pulsetrain_series_size_bytes")[0];
    let series = world.scraped("pulsetrain_series_active")[0];
    assert!(
        series > 0.0 && (100.0..10_000.0).contains(&(size / series)),
        "{size} of {series}"
    );
    // The queues of the Prometheus page and of the live page, and the disk queue of the endpoint.
    let mut limits = world.scraped("pulsetrain_queue_limit_bytes");
    limits.sort_by(f64::total_cmp);
    assert_eq!(limits, [67_108_864.0, 67_108_864.0, 1_073_741_824.0]);
    let readings = world.scraped_where("pulsetrain_source_duration_seconds_count", of_bad);
    assert!(readings[0] >= 1.0, "{readings:?}");
}

/// The page is full before the agent has sent its own telemetry.
#[test]
fn items_above_the_series_limit_are_counted_on_the_page() {
    let world = World::new();
    let yaml = world.yaml(&Setup {
        telemetry: "interval: 1s",
        ..Setup::default()
    });
    let page = format!("listen: 127.0.0.1:{}\n", world.page());
    assert!(yaml.contains(&page), "{yaml}");
    let full = format!("{page}      series_limit: 5\n");
    fs::write(world.path("agent.yaml"), yaml.replace(&page, &full)).unwrap();
    world.write_log("surogate/training_dense.json");
    let _agent = world.start();
    let refused = r#"pulsetrain_drop_reason="rejected""#;
    wait_until("the page counts what it refused", || {
        let refused = world.scraped_where("pulsetrain_dropped_items_total", refused);
        refused.iter().sum::<f64>() > 100.0
    });
    assert_eq!(world.scraped("pulsetrain_series_limit"), [5.0]);
}

#[test]
fn ended_series_and_retimed_points_are_counted_once_across_a_reload() {
    let world = World::new();
    let move_page = |port: u16| {
        let (yaml, listen) = (
            world.yaml(&Setup::default()),
            format!("listen: 127.0.0.1:{}\n", world.page()),
        );
        let moved = format!("listen: 127.0.0.1:{port}\n      stale_after: 1s\n");
        fs::write(world.path("agent.yaml"), yaml.replace(&listen, &moved)).unwrap();
    };
    move_page(world.page());
    let log = fs::read_to_string(corpus("surogate/training_dense.json")).unwrap();
    fs::write(world.path("training.json"), log.replace("2026-11-", "2226-11-")).unwrap();
    let agent = world.start();
    let sum = |port, name, labels| scraped_from(port, name, labels).iter().sum::<f64>();
    let counts = |port| {
        let ended = "pulsetrain_ended_series_total";
        [
            sum(port, ended, "\"resource_ended\""),
            sum(port, ended, "\"expired\"") + sum(port, ended, "\"evicted\""),
            sum(port, "pulsetrain_retimed_points_total", ""),
        ]
    };
    wait_until("the run is over", || counts(world.page())[0] > 40.0);
    let before = counts(world.page());
    assert!(before[1] == 0.0 && before[2] > 100.0, "{before:?}");

    let port = free_port();
    move_page(port);
    agent.reload();
    let sent = |port| {
        sum(
            port,
            "pulsetrain_accepted_items_total",
            r#"pulsetrain_source_name="pulsetrain""#,
        )
    };
    wait_until("the page is elsewhere", || sent(port) > 0.0);
    let at_first = sent(port);
    wait_until("telemetry was sent again", || sent(port) > at_first + 100.0);
    assert_eq!(counts(port), before);
}

#[test]
fn unreadable_log_counts_as_a_failed_read() {
    let world = World::new();
    let agent = world.start();
    let made = Command::new("mkfifo")
        .arg(world.path("training.json"))
        .status()
        .unwrap();
    assert!(made.success());
    wait_until("the page has the reason", || {
        let labels = r#"error_type="invalid_input_parameter""#;
        !world
            .scraped_where("pulsetrain_source_duration_seconds_count", labels)
            .is_empty()
    });
    assert!(agent.log().contains("only regular files"), "{}", agent.log());
}
