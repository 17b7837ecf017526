//! Routing by signal: to different endpoints, to targets that receive some signals, and to receivers that support some signals.

use std::path::Path;

use pulsetrain_tests::{
    Answer, FakeEndpoint, Finished, Folder, Import, Items, Jaeger, Judge, Prometheus, corpus, free_port,
    some_or_return,
};
use serde_json::json;

const LOG: &str = "surogate/training_dense.json";

/// Returns the items of an import of the log.
fn complete_log() -> Items {
    let folder = Folder::new();
    let file = folder.path("out.jsonl");
    import().to(&file).run().expect_code(0);
    Items::read(&file)
}

fn import() -> Import {
    Import::new(corpus(LOG)).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
}

fn paths(endpoint: &FakeEndpoint) -> Vec<String> {
    let mut paths: Vec<_> = endpoint
        .received()
        .into_iter()
        .map(|request| request.path)
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Returns the lines of a text summary about a target.
fn lines_of<'a>(finished: &'a Finished, target: &str) -> Vec<&'a str> {
    let of_target = |line: &&str| line.starts_with(&format!("otlp {target} "));
    finished.stderr.lines().filter(of_target).collect()
}

#[test]
fn dead_endpoint_of_one_signal_loses_no_items_of_other_signals() {
    let log = complete_log();
    let traces = FakeEndpoint::start([], Answer::Accept);
    let dead = format!("http://127.0.0.1:{}", free_port());
    let finished = import()
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &dead)
        .env(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            format!("{}/v1/traces", traces.url()),
        )
        .arg("--give-up-after=1")
        .run()
        .expect_code(1);
    let spans = log.of_kind("span").len();
    assert_eq!(
        traces.items_answered(&Answer::Accept).of_kind("span").len(),
        spans
    );
    let targets = &finished.summary()["targets"];
    assert_eq!(targets[0]["target"], format!("otlp {}", traces.url()));
    assert_eq!(
        (&targets[0]["delivered"], &targets[0]["dropped"]),
        (&json!(spans), &json!({}))
    );
    assert_eq!(targets[1]["target"], format!("otlp {dead}"));
    assert_eq!(finished.total("dropped"), (log.len() - spans) as u64);
}

#[test]
fn each_signal_is_reported_with_its_own_cause() {
    let endpoint = FakeEndpoint::by_path([
        ("/v1/traces", Answer::Refuse(401)),
        ("/v1/metrics", Answer::Refuse(400)),
    ]);
    let finished = Import::for_people(corpus(LOG))
        .to(endpoint.url())
        .run()
        .expect_code(1);
    let lines = lines_of(&finished, &endpoint.url());
    let [traces, metrics] = lines[..] else {
        panic!("a line for each cause: {lines:?}")
    };
    assert!(
        traces.contains("items of traces (refused)") && traces.contains("401"),
        "{traces}"
    );
    assert!(
        metrics.contains("items of metrics (refused)") && metrics.contains("400"),
        "{metrics}"
    );
}

#[test]
fn signals_that_fail_for_the_same_cause_share_a_log_line() {
    let dead = format!("http://127.0.0.1:{}", free_port());
    let finished = Import::for_people(corpus(LOG))
        .to(&dead)
        .arg("--give-up-after=0")
        .run()
        .expect_code(1);
    let reasons: Vec<&str> = lines_of(&finished, &dead)
        .into_iter()
        .filter(|line| line.contains("(unreachable)"))
        .collect();
    assert_eq!(reasons.len(), 1, "{}", finished.stderr);
}

#[test]
fn unsupported_signal_of_a_receiver_is_reported_once_and_is_not_a_loss() {
    let endpoint = FakeEndpoint::by_path([
        ("/v1/traces", Answer::Refuse(404)),
        ("/v1/logs", Answer::Refuse(404)),
    ]);
    let finished = import().to(endpoint.url()).run().expect_code(0);
    let log = complete_log();
    let points = log.of_kind("point").len();
    assert_eq!(finished.summary()["delivered"], points);
    let unsupported = json!({"unsupported_signal": log.len() - points});
    assert_eq!(finished.summary()["dropped"], unsupported);

    let finished = Import::for_people(corpus(LOG))
        .to(endpoint.url())
        .run()
        .expect_code(0);
    let lines = lines_of(&finished, &endpoint.url());
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("does not support traces"), "{lines:?}");
    assert!(lines[1].contains("does not support logs"), "{lines:?}");
}

#[test]
fn receiver_that_rejects_every_signal_suggests_checking_the_path() {
    let endpoint = FakeEndpoint::start([], Answer::Refuse(404));
    let finished = import().to(endpoint.url()).run().expect_code(1);
    finished.expect_words(&["lost", "404", "check the path"]);
    assert_eq!(finished.total("dropped"), complete_log().len() as u64);
}

#[test]
fn target_receives_only_the_signals_in_its_prefix() {
    let folder = Folder::new();
    let file = folder.path("traces.jsonl");
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let finished = import()
        .to(format!("traces={}", file.display()))
        .to(format!("metrics,logs={}", endpoint.url()))
        .run()
        .expect_code(0);
    let log = complete_log();
    let spans = log.of_kind("span").len();
    let written = Items::read(&file);
    assert_eq!((written.len(), written.of_kind("span").len()), (spans, spans));
    assert_eq!(paths(&endpoint), ["/v1/logs", "/v1/metrics"]);
    assert_eq!(finished.summary()["delivered"], log.len());
    assert_eq!(finished.summary()["dropped"], json!({}));
}

#[test]
fn explicitly_selected_unsupported_signal_is_a_loss() {
    let endpoint = FakeEndpoint::by_path([("/v1/traces", Answer::Refuse(404))]);
    let target = format!("traces,metrics={}", endpoint.url());
    let finished = import().to(target).run().expect_code(1);
    let spans = complete_log().of_kind("span").len();
    assert_eq!(finished.summary()["dropped"], json!({"refused": spans}));
}

#[test]
fn exporter_variable_set_to_none_disables_its_signal() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let off = |import: Import, signals: &[&str]| {
        let name = |signal: &&str| format!("OTEL_{signal}_EXPORTER");
        let names = signals.iter().map(name);
        names.fold(import, |import, name| import.env(&name, "none"))
    };
    let to_variables = || import().env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.url());
    off(to_variables(), &["TRACES", "LOGS"]).run().expect_code(0);
    assert_eq!(paths(&endpoint), ["/v1/metrics"]);

    let all = ["TRACES", "METRICS", "LOGS"];
    let finished = off(to_variables(), &all).run().expect_code(2);
    finished.expect_words(&["nothing to send to", "OTEL_TRACES_EXPORTER", "--to"]);
    off(import().to(endpoint.url()), &all).run().expect_code(0);
    assert_eq!(paths(&endpoint), ["/v1/logs", "/v1/metrics", "/v1/traces"]);
}

#[test]
fn jaeger_and_prometheus_each_receive_their_signal_and_nothing_is_lost() {
    let jaeger = some_or_return!(Judge::Jaeger.require_or_skip());
    let prometheus = some_or_return!(Judge::Prometheus.require_or_skip());
    let jaeger = Jaeger::start(&jaeger);
    let start_prometheus = || Prometheus::start(&prometheus, &[], &[]);
    let receiver = start_prometheus();
    let metrics = format!("{}/api/v1/otlp", receiver.url());
    let finished = Import::new(corpus(LOG))
        .to(format!("traces={}", jaeger.otlp()))
        .to(format!("metrics={metrics}"))
        .run()
        .expect_code(0);
    assert_eq!(finished.summary()["dropped"], json!({}));
    assert_eq!(jaeger_spans(&jaeger), complete_log().of_kind("span").len());

    // Prometheus accepts a sample only once.
    let other = start_prometheus();
    let metrics = format!("{}/api/v1/otlp", other.url());
    for (target, supported) in [
        (jaeger.otlp(), "traces"),
        (jaeger.grpc(), "traces"),
        (metrics, "metrics"),
    ] {
        assert_others_are_unsupported(&target, supported, &corpus(LOG));
    }
}

/// Imports into a receiver of one signal, without a selection of signals.
fn assert_others_are_unsupported(target: &str, supported: &str, log: &Path) {
    let finished = Import::for_people(log).to(target).run().expect_code(0);
    for signal in ["traces", "metrics", "logs"] {
        let line = format!("does not support {signal}, ");
        assert_eq!(
            finished.stderr.matches(&line).count(),
            usize::from(signal != supported),
            "{target}: {}",
            finished.stderr
        );
    }
    assert!(!finished.stderr.contains(" lost "), "{}", finished.stderr);
}

fn jaeger_spans(jaeger: &Jaeger) -> usize {
    let ids: std::collections::BTreeSet<String> = (complete_log().of_kind("span").into_iter())
        .filter_map(|item| item["span"]["traceId"].as_str().map(str::to_owned))
        .collect();
    let spans = |id: &String| {
        let trace = jaeger.trace(id).expect("Jaeger has the trace");
        trace.to_string().matches("\"spanId\"").count()
    };
    ids.iter().map(spans).sum()
}
