//! Metrics in Prometheus: through a Collector by OTLP, by scrape and by remote write, and scraped from Pulsetrain itself.

use std::fs;

use pulsetrain_tests::{Folder, Items, Judge, Process, Prometheus, free_port, some_or_return, wait_until};

use crate::collector_config::{
    otelcol::{Otelcol, config, send_demo},
    world::{demo, series},
};

/// The labels that dashboards select by, for a series of rank 0.
const LABELS: &str = "train_run_id=~\"demo-.+\",train_run_name=\"demo-sft-0\",train_attempt=\"0\",train_rank=\"0\",\
     host_name=\"demo-node-0\",service_instance_id=~\".+/0\",job=\"pulsetrain-demo\",instance=~\".+/0\"";

/// Reads a configuration file of Prometheus, with the actual path of its rules.
fn prometheus_file(name: &str) -> String {
    let rules = config("../grafana/alerts")
        .canonicalize()
        .expect("there are rules");
    let text = fs::read_to_string(config("backends").join(name)).expect("the file is there");
    text.replace("../../grafana/alerts", &rules.display().to_string())
}

/// Checks that Prometheus has each series with each sent point.
fn assert_complete(prometheus: &Prometheus, sent: &Items) {
    for (family, expected) in series(sent) {
        let name = family.sample_name();
        let count = format!("sum(count_over_time({{__name__=\"{name}\"}}[1h]))");
        let found = || {
            let series = prometheus.series(&format!("{{__name__=\"{name}\"}}")).len();
            (series, prometheus.value(&count).unwrap_or_default() as usize)
        };
        wait_until(
            &format!("{name} has {expected:?} series and points, not {:?}", found()),
            || found() == expected,
        );
    }
    let labels = format!("count(last_over_time(train_loss{{{LABELS}}}[1h]))");
    assert_eq!(prometheus.value(&labels), Some(1.0));
}

/// Sends a demo through a Collector with a file to a Prometheus with these settings. The Collector gets the URL of Prometheus
/// with a path in this variable.
fn assert_carried(file: &str, settings: &str, (variable, path): (&str, &str)) {
    let collector = some_or_return!(Judge::Collector.require_or_skip());
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), settings);
    let variables = [(variable, format!("{}{path}", prometheus.url()))];
    let collector = Otelcol::start(&collector, file, &variables);
    let sent = send_demo(&format!("metrics={}", collector.target()), &[]);
    collector.stop();
    assert_complete(&prometheus, &sent);
}

#[test]
fn prometheus_has_every_point_by_otlp() {
    let settings = prometheus_file("prometheus-otlp.yml");
    assert_carried("prometheus-otlp.yaml", &settings, ("PROMETHEUS_URL", ""));
}

#[test]
fn remote_write_carries_every_point() {
    let window = "storage: {tsdb: {out_of_order_time_window: 2h}}\n";
    assert_carried("mimir.yaml", window, ("MIMIR_URL", "/api/v1/write"));
}

#[test]
fn prometheus_scrapes_every_series_from_a_collector() {
    let collector = some_or_return!(Judge::Collector.require_or_skip());
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let address = format!("127.0.0.1:{}", free_port());
    let prometheus = Prometheus::start(&program, &[("collector", address.clone())], &[]);
    let collector = Otelcol::start(
        &collector,
        "prometheus-scrape.yaml",
        &[
            ("PROMETHEUS_LISTEN", address),
            ("METRIC_EXPIRATION", "5s".to_owned()),
        ],
    );
    let target = format!("metrics={}", collector.target());
    let folder = Folder::new();
    // The job runs until everything is scraped: the Collector drops a series that has ended.
    let file = folder.path("demo.jsonl");
    let path = file.to_str().expect("the path is text");
    let running = Process::start(
        "demo",
        &mut demo(["--steps", "5000", "--to", path, "--to", &target]),
    );
    let loss = format!("count(train_loss{{{LABELS}}})");
    wait_until("rank 0 is scraped", || prometheus.value(&loss) == Some(1.0));
    wait_until("every rank has its histogram of steps", || {
        prometheus.value("count(train_step_duration_seconds_count > 0)") == Some(4.0)
    });
    // The points so far; more may have arrived since.
    let sent = Items::read_complete_lines(&file);
    for family in series(&sent).into_iter().filter(|(_, (_, points))| *points > 60) {
        let (family, (expected, _)) = family;
        let name = family.sample_name();
        wait_until(&format!("{name} has its {expected} series"), || {
            prometheus
                .series(&format!("{{__name__=\"{name}\",via=\"collector\"}}"))
                .len()
                >= expected
        });
    }
    let steps = || prometheus.value("max(train_global_step)").unwrap_or_default();
    let before = steps();
    wait_until("steps go up", || steps() > before);
    // A killed job does not end its series; they expire, and Prometheus marks their end.
    running.kill();
    wait_until("the series of the job end", || {
        prometheus.query("train_loss").is_empty()
    });
}

#[test]
fn prometheus_scrapes_pulsetrain_with_native_histograms_and_exemplars() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let address = format!("127.0.0.1:{}", free_port());
    let file = prometheus_file("prometheus-scrape.yml");
    let faster = file
        .replace("127.0.0.1:9464", &address)
        .replace("scrape_interval: 5s", "scrape_interval: 1s");
    assert!(faster.contains(&address) && faster.contains("interval: 1s"));
    let folder = Folder::new();
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), &faster);
    let out = folder.path("out");
    let out = out.to_str().expect("the path is text");
    let running = Process::start(
        "demo",
        &mut demo(["--steps", "5000", "--listen", &address, "--out", out]),
    );
    let selected = LABELS.replace("train_attempt=\"0\",", "");
    wait_until("rank 0 is scraped", || {
        prometheus.value(&format!("count(train_loss{{{selected}}})")) == Some(1.0)
    });
    wait_until("both kinds of histogram give a rate", || {
        [
            "histogram_count(rate(train_step_duration_seconds[10s]))",
            "rate(train_step_duration_seconds_count[10s])",
        ]
        .iter()
        .all(|rate| prometheus.value(&format!("count({rate} > 0)")) == Some(4.0))
    });
    wait_until("a bucket has the span of a step", || {
        let exemplars = prometheus.exemplars("train_step_duration_seconds_bucket");
        exemplars
            .iter()
            .any(|series| series["exemplars"][0]["labels"]["trace_id"].is_string())
    });
    running.stop_well();
}
