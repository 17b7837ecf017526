//! The counts of the demo in a real Prometheus, by scrape and by OTLP.

use pulsetrain_tests::{Folder, Judge, Prometheus, free_port, some_or_return, wait_until};

use crate::demo::world::{run, same_in_file, series};

#[test]
fn prometheus_has_every_point_that_it_received_as_otlp() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    // Signals derived from a step are sent when the step is complete: later than newer samples of the same resource.
    let window = "storage: {tsdb: {out_of_order_time_window: 10m}}\n";
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), window);
    let file = folder.path("demo.jsonl");
    let target = format!("metrics={}/api/v1/otlp", prometheus.url());
    let to = ["--steps", "60", "--to", file.to_str().unwrap(), "--to", &target];
    let finished = run(to).expect_code(0);
    let (counts, items) = same_in_file(&finished, &file);
    let (mut points, mut all_series) = (0, 0);
    for (family, expected) in series(&items) {
        let name = family.sample_name();
        let count = format!("sum(count_over_time({{__name__=\"{name}\"}}[1h]))");
        let in_prometheus = prometheus.value(&count).unwrap_or_default() as usize;
        let of_name = prometheus.series(&format!("{{__name__=\"{name}\"}}")).len();
        assert_eq!((of_name, in_prometheus), expected, "{name}");
        points += in_prometheus as u64;
        all_series += of_name as u64;
    }
    assert_eq!((points, all_series), (counts.points, counts.series));
}

/// Prometheus writes `target_info` with the newest time of each OTLP request, and rejects a request whose newest time is older
/// than the previous one. The derived series themselves are in order: remote write, which has no such sample, loses none.
#[test]
fn without_an_out_of_order_window_otlp_loses_derived_points_and_remote_write_none() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), "");
    let otlp = format!("metrics={}/api/v1/otlp", prometheus.url());
    let config = "derive: {signals: {enabled: false}, energy: {enabled: false}}\n";
    let config = folder.file("underived.yaml", config);
    let arguments = ["--steps", "60", "--to", &otlp, "--config"];
    run(arguments.into_iter().chain(config.to_str())).expect_code(0);

    let prometheus = Prometheus::start_on(&program, &folder.path("otlp"), "");
    let otlp = format!("metrics={}/api/v1/otlp", prometheus.url());
    run(["--steps", "60", "--to", &otlp])
        .expect_code(1)
        .expect_words(&["out_of_order_time_window"]);

    let prometheus = Prometheus::start_on(&program, &folder.path("remote-write"), "");
    let remote_write = format!("remote-write:{}/api/v1/write", prometheus.url());
    run(["--steps", "60", "--to", &remote_write]).expect_code(0);
    assert!(
        !prometheus.series("train_steps_total").is_empty(),
        "derived series arrive"
    );
}

#[test]
fn prometheus_has_every_series_of_the_page() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let address = format!("127.0.0.1:{}", free_port());
    let prometheus = Prometheus::start_with_interval(&program, &[("demo", address.clone())], "4s");
    let folder = Folder::new();
    let file = folder.path("demo.jsonl");
    // The demo runs for ten seconds and serves its page until the last points are scraped.
    let arguments = ["--steps", "500", "--listen", &address, "--to"];
    let finished = run(arguments.into_iter().chain(file.to_str())).expect_code(0);
    let (counts, items) = same_in_file(&finished, &file);
    let mut all_series = 0;
    for (family, (expected, _)) in series(&items) {
        let name = family.sample_name();
        let mut of_name = 0;
        wait_until(&format!("Prometheus has {expected} series of {name}"), || {
            of_name = prometheus
                .series(&format!("{{__name__=\"{name}\",via=\"demo\"}}"))
                .len();
            of_name >= expected
        });
        assert_eq!(of_name, expected, "{name}");
        all_series += of_name as u64;
    }
    assert_eq!(all_series, counts.series);
}
