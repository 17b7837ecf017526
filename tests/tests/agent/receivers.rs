//! An OTLP sink with separate endpoints per signal: to different receivers, and to one that does not support all signals.

use pulsetrain_tests::{Answer, FakeEndpoint, Process, free_port, wait_until};

use crate::world::{Setup, World, imported};

/// Returns the labels of the items of one signal that a sink dropped.
fn dropped(reason: &str, signal: &str) -> String {
    format!(r#"pulsetrain_drop_reason="{reason}",pulsetrain_signal="{signal}""#)
}

/// Creates a world with a log, and a page with only the data of the log.
fn world(sinks: &str) -> World {
    let world = World::new();
    configure(&world, sinks);
    world.write_log("surogate/training_dense.json");
    world
}

fn configure(world: &World, sinks: &str) {
    world.configure_as(&Setup {
        sinks,
        rest: "limits:\n  retry_after: 100ms\n  retry_at_most: 500ms\n  drain: 500ms\n",
        ..Setup::default()
    });
}

fn spans() -> usize {
    let log = imported(&[pulsetrain_tests::corpus("surogate/training_dense.json")]);
    log.of_kind("span").len()
}

#[test]
fn sink_without_an_endpoint_has_a_queue_per_receiver_from_the_environment() {
    let world = world("  collector:\n    otlp: {disk_queue: off}\n");
    let live = FakeEndpoint::start([], Answer::Accept);
    let dead = format!("http://127.0.0.1:{}", free_port());
    let mut command = world.command();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &dead).env(
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        format!("{}/v1/traces", live.url()),
    );
    let agent = Process::start("pulsetrain agent", &mut command);
    wait_until("every span arrives", || {
        live.items_answered(&Answer::Accept).of_kind("span").len() == spans()
    });
    let named = |url: &str| format!(r#"pulsetrain_sink_name="collector (otlp {url})""#);
    wait_until("the page counts both receivers", || {
        let delivered = world.scraped_where("pulsetrain_delivered_items_total", &named(&live.url()));
        let retries = world.scraped_where("pulsetrain_retries_total", &named(&dead));
        delivered.iter().sum::<f64>() == spans() as f64 && retries.iter().sum::<f64>() > 0.0
    });

    configure(&world, "");
    agent.reload();
    let lost = format!("sink collector (otlp {dead}): lost ");
    wait_until("the reload removes the dead receiver", || {
        agent.log().contains(&lost)
    });
    wait_until("nothing is queued for a sink that is gone", || {
        let queued = |url: &str| world.scraped_where("pulsetrain_queue_items", &named(url));
        queued(&live.url()).iter().sum::<f64>() + queued(&dead).iter().sum::<f64>() == 0.0
    });
    let (status, log) = agent.stop_with_log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(!log.contains(&format!("(otlp {}): lost", live.url())), "{log}");
}

#[test]
fn dropped_items_are_labeled_by_signal_and_unsupported_ones_are_not_a_loss() {
    let receiver = FakeEndpoint::by_path([("/v1/traces", Answer::Refuse(404))]);
    let sink = format!("  collector:\n    otlp:\n      endpoint: {}\n", receiver.url());
    let world = world(&sink);
    let agent = world.start();
    wait_until("the page has the spans that were dropped", || {
        let labels = dropped("unsupported_signal", "traces");
        let items = world.scraped_where("pulsetrain_dropped_items_total", &labels);
        items.iter().sum::<f64>() == spans() as f64
    });
    let all = world.scraped("pulsetrain_dropped_items_total");
    assert_eq!(all.iter().sum::<f64>(), spans() as f64);
    wait_until("the log names the signal", || {
        agent.log().contains("sink collector: does not support traces: ")
    });
    let (status, log) = agent.stop_with_log();
    assert_eq!(status.code(), Some(0), "{log}");
    for once in [
        "sink collector: does not support traces: ",
        "sink collector: does not support traces, ",
    ] {
        assert_eq!(log.matches(once).count(), 1, "{log}");
    }
}

#[test]
fn a_sink_of_the_configuration_receives_the_signals_that_it_names() {
    let receiver = FakeEndpoint::start([], Answer::Accept);
    let world = World::new();
    let archive = world.file_sink("archive", "out.jsonl") + "      signals: [traces]\n";
    let metrics = format!(
        "  collector:\n    otlp:\n      endpoint: {}\n      signals: [metrics]\n",
        receiver.url()
    );
    configure(&world, &(archive + &metrics));
    world.write_log("surogate/training_dense.json");
    let agent = world.start();
    wait_until("the file has every span", || {
        world.written("out.jsonl").1.len() == spans()
    });
    wait_until("the receiver has metrics", || {
        let of_log = receiver
            .items_answered(&Answer::Accept)
            .divide_by_service("pulsetrain")
            .1;
        of_log.values("train.loss").len() == 30
    });
    let (status, log) = agent.stop_with_log();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(
        receiver
            .received()
            .iter()
            .all(|request| request.path == "/v1/metrics")
    );
    let (ours, of_log) = world.written("out.jsonl");
    assert_eq!((ours.len(), of_log.of_kind("span").len()), (0, spans()));
}
