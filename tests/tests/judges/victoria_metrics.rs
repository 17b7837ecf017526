//! A real VictoriaMetrics: our OTLP and our remote write arrive there, and with which labels.

use std::collections::BTreeSet;

use pulsetrain_tests::{Folder, Judge, VictoriaMetrics, some_or_return, wait_until};
use serde_json::Value;

use crate::demo::world::{run, same_in_file, series};

/// The labels of a loss that is sent as OTLP: all attributes of the resource and the scope, and neither `job` nor `instance`.
const OTLP_LABELS: &str = "__name__ host_name scope_name scope_version service_instance_id service_name train_attempt \
    train_framework train_local_rank train_project train_rank train_run_id train_run_name train_world_size";
/// The same under the names of OpenTelemetry, which VictoriaMetrics keeps by default.
const DOTTED_LABELS: &str = "__name__ host.name scope.name scope.version service.instance.id service.name train.attempt \
    train.framework train.local_rank train.project train.rank train.run.id train.run.name train.world_size";
/// The labels of a loss by remote write, as on our page.
const REMOTE_WRITE_LABELS: &str = "__name__ host_name instance job service_instance_id train_attempt train_rank train_run_id train_run_name";

fn labels(series: &Value) -> String {
    let labels = series["metric"].as_object().expect("a series has labels");
    let names: BTreeSet<&str> = labels.keys().map(String::as_str).collect();
    names.into_iter().collect::<Vec<_>>().join(" ")
}

/// Returns the number of series and of points of a metric.
fn stored(store: &VictoriaMetrics, name: &str) -> (usize, usize) {
    let series = store.export(&format!("{{__name__=\"{name}\"}}"));
    let points = series
        .iter()
        .map(|series| series["values"].as_array().map_or(0, Vec::len));
    (series.len(), points.sum())
}

/// Runs a demo that sends its metrics to `target`, and compares each metric with its file.
fn expect_every_point(store: &VictoriaMetrics, target: &str) {
    let folder = Folder::new();
    let file = folder.path("demo.jsonl");
    let to = [
        "--steps",
        "60",
        "--to",
        file.to_str().expect("a path in UTF-8"),
        "--to",
        target,
    ];
    let finished = run(to).expect_code(0);
    let (_, items) = same_in_file(&finished, &file);
    for (family, expected) in series(&items) {
        let name = family.sample_name();
        wait_until(&format!("VictoriaMetrics has {name}"), || {
            stored(store, &name) == expected
        });
    }
}

#[test]
fn otlp_arrives_with_every_point_and_all_attributes_as_labels() {
    let program = some_or_return!(Judge::VictoriaMetrics.require_or_skip());
    let store = VictoriaMetrics::start(&program, &["-opentelemetry.usePrometheusNaming"]);
    expect_every_point(&store, &format!("metrics={}/opentelemetry", store.url()));
    let losses = store.export("train_loss");
    assert_eq!(labels(&losses[0]), OTLP_LABELS);
}

#[test]
fn otlp_without_prometheus_names_keeps_the_dots() {
    let program = some_or_return!(Judge::VictoriaMetrics.require_or_skip());
    let store = VictoriaMetrics::start(&program, &[]);
    let target = format!("metrics={}/opentelemetry", store.url());
    run(["--steps", "10", "--to", &target]).expect_code(0);
    let losses = || store.export("{__name__=\"train.loss\"}");
    wait_until("VictoriaMetrics has the loss", || !losses().is_empty());
    assert_eq!(labels(&losses()[0]), DOTTED_LABELS);
}

#[test]
fn remote_write_arrives_with_every_point_and_the_labels_of_the_page() {
    let program = some_or_return!(Judge::VictoriaMetrics.require_or_skip());
    let store = VictoriaMetrics::start(&program, &[]);
    expect_every_point(&store, &format!("remote-write:{}/api/v1/write", store.url()));
    let losses = store.export("train_loss");
    assert_eq!(labels(&losses[0]), REMOTE_WRITE_LABELS);
}
