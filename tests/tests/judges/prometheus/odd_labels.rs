//! Texts from logs and variables that labels cannot represent unchanged, through the binary to a real Prometheus.

use std::{fs, path::Path, process::Command};

use pulsetrain_prometheus::{PrometheusConfig, Translation};
use pulsetrain_tests::{
    Finished, Folder, Judge, Process, Prometheus, command, corpus, free_port, http::metrics, promtool_check,
    some_or_return, wait_until,
};
use serde_json::json;

use crate::prometheus::{
    endpoint::Endpoint,
    following::Agent,
    otlp::{attributes, encode, gauge},
};

/// Quotes, backslashes, a line break and a byte that is not UTF-8, as Surogate writes them: it escapes nothing.
const NAME: &[u8] = b"the \\\"first\\\" \\ run\nof \xff all";

#[test]
fn unusual_run_name_reaches_prometheus_unchanged() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut agent = Agent::new();
    let log = fs::read(corpus("surogate/training_dense.json")).expect("the corpus can be read");
    let demo = b"\"demo\"";
    let place = log
        .windows(demo.len())
        .position(|window| window == demo)
        .expect("the run is called demo");
    let quoted = [b"\"", NAME, b"\""].concat();
    fs::write(
        agent.log(),
        [&log[..place], &quoted, &log[place + demo.len()..]].concat(),
    )
    .expect("a temporary file can be written");
    agent.start("", "");
    let prometheus = Prometheus::start(&program, &[("ours", agent.address())], &[]);
    assert_named(&prometheus, &String::from_utf8_lossy(NAME));
    assert_promtool_is_content(&program, agent.port());
    assert!(agent.stop().success());
}

/// The same with `run`, whose resource has the attributes of a variable; two of them map to the same label name.
#[test]
fn colliding_resource_attributes_reach_prometheus_in_one_label() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let sink =
        "sinks: {page: {prometheus: {resource_labels: [train.run.name, team.name, team_name, odd], listen: ";
    let config = folder.file("run.yaml", format!("{sink}\"{address}\"}}}}}}\n"));
    let script = "cat \"$0\" >&2; while [ ! -e \"$1\" ]; do sleep 0.05; done";
    let mut run: Command = command([
        "run",
        "--format=maxtext",
        "--no-gpu",
        "--run-name=tuned",
        "--config",
    ]);
    run.arg(config)
        .env(
            "OTEL_RESOURCE_ATTRIBUTES",
            "team_name=b,team.name=a,odd=q%22b%5Cs%0An",
        )
        .args(["--", "sh", "-c", script])
        .arg(corpus("maxtext/demo.stderr"))
        .arg(folder.path("go"));
    let run = Process::start("pulsetrain run", &mut run);
    let prometheus = Prometheus::start(&program, &[("ours", address)], &[]);
    assert_named(&prometheus, "tuned");
    let labels = &prometheus.query("train_loss")[0]["metric"];
    assert_eq!(
        (&labels["team_name"], &labels["odd"]),
        (&json!("a;b"), &json!("q\"b\\s\nn"))
    );
    assert_promtool_is_content(&program, port);
    folder.file("go", "");
    run.end_well();
}

#[test]
fn invalid_resource_attributes_variable_is_reported_and_the_trainer_runs() {
    let folder = Folder::new();
    for odd in ["team", "team=%FF"] {
        let mut run = command(["run", "--format=maxtext", "--no-gpu", "--to"]);
        run.arg(folder.path("sent.jsonl"))
            .env("OTEL_RESOURCE_ATTRIBUTES", odd)
            .args(["--", "echo", "trains"]);
        let finished = Finished::run(&mut run).expect_code(0);
        assert_eq!(finished.stdout, "trains\n");
        finished.expect_words(&[
            "continues without it: OTEL_RESOURCE_ATTRIBUTES",
            "is not key=value",
        ]);
    }
}

#[test]
fn hostile_or_duplicate_labels_leave_the_scrape_target_up() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let resource = [("service.name", "trainer"), ("service.instance.id", "0")];
    let metric = |name: &str, labels: &[(&str, &str)]| {
        let mut metric = gauge(name, "", 1.0);
        metric["description"] = json!("Something.");
        metric["gauge"]["dataPoints"][0]["attributes"] = attributes(labels);
        [metric]
    };
    let hostile = [("..name..", "evil"), ("zone", "a")];
    let with_hostile_resource = [resource[0], resource[1], hostile[0], hostile[1]];
    let mut endpoints = [
        Translation::UnderscoreEscapingWithSuffixes,
        Translation::NoTranslation,
    ]
    .map(|translation| {
        Endpoint::start_with(PrometheusConfig {
            translation,
            ..PrometheusConfig::default()
        })
    });
    for endpoint in &mut endpoints {
        let twice = metric("twice", &[("a_b", "2"), ("a.b", "1")]);
        endpoint.take(&encode(&with_hostile_resource, &twice));
        let refused = endpoint.refused(&encode(&resource, &metric("hidden", &hostile)));
        assert!(refused.contains("__name__"), "{refused}");
        assert_promtool_is_content(&program, endpoint.port());
    }
    let [default, untranslated] = endpoints.each_ref().map(Endpoint::address);
    let targets = [("default", default), ("untranslated", untranslated)];
    for prometheus in [
        Prometheus::start(&program, &targets, &[]),
        Prometheus::start_without_utf8(&program, &targets),
    ] {
        wait_until("Prometheus has scraped both", || {
            prometheus.query("twice").len() == 2 && prometheus.query("up").len() == 2
        });
        assert_eq!(prometheus.value("min(up)"), Some(1.0));
        assert!(prometheus.query("hidden").is_empty() && prometheus.query("evil").is_empty());
        assert_eq!(prometheus.value("twice{via=\"default\", a_b=\"1;2\"}"), Some(1.0));
    }
}

/// The first metric keeps the name; the non-conflicting attributes of the other are added, and the rest is rejected with a
/// message.
#[test]
fn colliding_metric_names_share_one_name_that_prometheus_accepts() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut endpoint = Endpoint::start(&[]);
    let resource = [("service.name", "trainer"), ("service.instance.id", "0")];
    let other = [("service.name", "trainer"), ("service.instance.id", "1")];
    let metric = |name: &str, value: f64| {
        let mut metric = gauge(name, "", value);
        metric["description"] = json!("Something.");
        [metric]
    };
    endpoint.take(&encode(&resource, &metric("my.value", 1.0)));
    endpoint.take(&encode(&other, &metric("my_value", 2.0)));
    let refused = endpoint.refused(&encode(&resource, &metric("my_value", 3.0)));
    assert!(
        refused.contains("another metric has the name and the labels in Prometheus; rename one"),
        "{refused}"
    );
    let prometheus = Prometheus::start(&program, &[("ours", endpoint.address())], &[]);
    wait_until("Prometheus has scraped", || {
        prometheus.query("my_value").len() == 2
    });
    assert_eq!(prometheus.value("my_value{instance=\"0\"}"), Some(1.0));
    assert_eq!(prometheus.value("my_value{instance=\"1\"}"), Some(2.0));
    assert_promtool_is_content(&program, endpoint.port());
}

fn assert_named(prometheus: &Prometheus, name: &str) {
    wait_until("Prometheus has the loss", || {
        !prometheus.query("train_loss").is_empty()
    });
    for family in ["train_loss", "train_global_step"] {
        let series = prometheus.query(family);
        assert_eq!(
            (series.len(), &series[0]["metric"]["train_run_name"]),
            (1, &json!(name)),
            "{family}"
        );
    }
}

fn assert_promtool_is_content(program: &Path, port: u16) {
    let page = metrics(port).expect("the page is served");
    let output = promtool_check(program, page.as_bytes());
    let printed = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.is_empty(), "{printed}");
}
