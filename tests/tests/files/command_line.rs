//! The options of `import`, and its summary.

use std::fs;

use pulsetrain_tests::{Folder, Import, Items, SurogateLog, corpus, otlp::text_of};
use serde_json::{Value, json};

const LOG: &str = "surogate/training_dense.json";

#[test]
fn every_target_gets_everything() {
    let folder = Folder::new();
    let [one, other] = ["one.jsonl", "other.jsonl"].map(|name| folder.path(name));
    let finished = Import::new(corpus(LOG)).to(&one).to(&other).run().expect_code(0);
    let items = Items::read(&one);
    assert!(!items.is_empty());
    items.assert_same(&Items::read(&other));
    assert_eq!(finished.summary()["delivered"], 2 * items.len());
}

#[test]
fn json_summary_is_the_only_output_on_stderr() {
    let finished = Import::new(corpus(LOG)).to("-").run().expect_code(0);
    assert_eq!(finished.stderr.lines().count(), 1);
    let summary = finished.summary();
    for field in ["records", "points", "spans", "events", "delivered"] {
        assert!(summary[field].is_u64(), "{field} in {summary}");
    }
    for field in ["skipped", "dropped"] {
        assert_eq!(summary[field], json!({}), "{field}");
    }
}

#[test]
fn last_human_readable_line_is_the_summary() {
    let finished = Import::for_people(corpus(LOG)).to("-").run().expect_code(0);
    let (items, log) = (Items::parse(&finished.stdout), SurogateLog::read(&corpus(LOG)));
    let [points, spans, events] = ["point", "span", "log"].map(|kind| items.of_kind(kind).len());
    assert_eq!(
        finished.stderr.lines().last(),
        Some(&*format!(
            "{} records: {points} points, {spans} spans, {events} events; skipped 0; delivered {}, dropped 0",
            log.count(),
            items.len()
        ))
    );
}

#[test]
fn values_with_unknown_names_are_kept_and_not_counted_as_skipped() {
    let log = corpus("generic/imagenet.log");
    let finished = Import::for_people(log).to("-").run().expect_code(0);
    let summary = finished.stderr.lines().last().unwrap_or_default();
    assert!(summary.contains(" (unknown names kept: 1), "), "{summary}");
    assert!(!summary.contains("unknown_name"), "{summary}");
}

#[test]
fn malformed_record_is_reported_with_its_line() {
    let folder = Folder::new();
    let text = fs::read_to_string(corpus(LOG)).expect("the corpus can be read");
    let text = text.replacen(r#""loss": 4.23,"#, r#""loss": ?,"#, 1);
    let log = folder.file("training.json", text);
    let finished = Import::for_people(log).to("-").run().expect_code(1);
    finished.expect_words(&[
        "training.json:16: malformed record",
        "skipped 1 (malformed_record 1)",
    ]);
    assert_eq!(Items::parse(&finished.stdout).values("train.loss").len(), 29);
}

#[test]
fn run_id_and_run_name_are_on_every_resource() {
    let items = import(&["--run-id=job-7", "--run-name=tuned"]);
    for item in items.of_kind("point") {
        assert_eq!(resource(item, "train.run.id"), Some("job-7"));
        assert_eq!(resource(item, "train.run.name"), Some("tuned"));
    }
}

#[test]
fn run_name_and_id_default_to_those_of_the_log() {
    for item in import(&[]).of_kind("span") {
        assert_eq!(resource(item, "train.run.name"), Some("demo"));
        assert_eq!(resource(item, "train.run.id").map(str::len), Some(32));
    }
}

#[test]
fn sums_use_the_start_time_option_as_start_timestamp() {
    let items = import(&["--start-time=2026-11-20T23:00:00.000000001+00:00"]);
    let tokens = items.points_of("train.tokens");
    assert_eq!(tokens.len(), 30);
    for item in tokens {
        assert_eq!(item["point"]["startTimeUnixNano"], "1795215600000000001");
    }
}

#[test]
fn a_resource_attribute_of_the_environment_is_on_the_resource() {
    let import = Import::new(corpus(LOG))
        .env("OTEL_SERVICE_NAME", "pretraining")
        .env("OTEL_RESOURCE_ATTRIBUTES", "team=a%20b");
    for item in import.items().of_kind("span") {
        assert_eq!(resource(item, "service.name"), Some("pretraining"));
        assert_eq!(resource(item, "team"), Some("a b"));
    }
}

#[test]
fn output_equal_to_the_input_is_rejected_before_truncation() {
    let folder = Folder::new();
    let log = folder.path("training.jsonl");
    fs::copy(corpus(LOG), &log).expect("a temporary file can be written");
    let finished = Import::new(&log).to(&log).run().expect_code(2);
    finished.expect_words(&["both input and output"]);
    assert_eq!(fs::read(&log).ok(), fs::read(corpus(LOG)).ok());
}

#[test]
fn invalid_import_arguments_are_usage_errors() {
    for (argument, word) in [
        ("--format=parquet", "surogate"),
        ("--start-time=yesterday", "2026-11-21T00:18:40Z"),
        ("--to=ftp://host", "grpc://"),
        ("--run-id=", "empty"),
        ("--give-up-after=soon", "seconds"),
    ] {
        let finished = Import::new(corpus(LOG)).arg(argument).run().expect_code(2);
        finished.expect_words(&[word]);
    }
}

fn import(options: &[&str]) -> Items {
    options.iter().fold(Import::new(corpus(LOG)), Import::arg).items()
}

fn resource<'a>(item: &'a Value, key: &str) -> Option<&'a str> {
    text_of(&item["resource"], key)
}
