//! The import of a Surogate log: its steps, their spans, and the counts in the summary.
//!
//! The expected values are computed from the log with plain serde_json, independently of our code.

use pulsetrain_tests::{Finished, Import, Items, SurogateLog, corpus, otlp::attribute};
use serde_json::json;

#[test]
fn every_step_has_one_loss_with_its_own_timestamp() {
    for name in ["surogate/training_dense.json", "surogate/training_moe.json"] {
        let (_, items) = import(name);
        let log = SurogateLog::read(&corpus(name));
        let steps = log.of_kind("step");
        let expected: Vec<_> = steps
            .iter()
            .map(|step| (step.time(), step.number("loss")))
            .collect();
        assert_eq!(expected.len(), 30);
        assert_eq!(items.values("train.loss"), expected);
    }
}

#[test]
fn every_timed_step_is_a_span_that_ends_at_its_record_time() {
    for name in ["surogate/training_dense.json", "surogate/training_moe.json"] {
        let (_, items) = import(name);
        let mut spans = items.spans_of("train.step");
        spans.sort_by_key(|item| item["span"]["endTimeUnixNano"].to_string());
        let log = SurogateLog::read(&corpus(name));
        let steps = log.of_kind("step");
        assert_eq!(spans.len(), steps.len());
        for (span, step) in spans.iter().map(|item| &item["span"]).zip(steps) {
            let nanos = step.number("duration_ms") as u64 * 1_000_000;
            assert_eq!(span["endTimeUnixNano"], step.time().to_string());
            assert_eq!(span["startTimeUnixNano"], (step.time() - nanos).to_string());
            assert_eq!(
                attribute(span, "train.step"),
                Some(&json!({"intValue": step.number("step").to_string()}))
            );
            assert_eq!(
                attribute(span, "train.loss"),
                Some(&json!({"doubleValue": format!("{:?}", step.number("loss"))}))
            );
        }
    }
}

#[test]
fn summary_counts_match_the_output_file() {
    for name in ["surogate/training_dense.json", "surogate/training_moe.json"] {
        let (finished, items) = import(name);
        let summary = finished.summary();
        for (field, count) in [
            ("records", SurogateLog::read(&corpus(name)).count()),
            ("points", items.of_kind("point").len()),
            ("spans", items.of_kind("span").len()),
            ("events", items.of_kind("log").len()),
            ("delivered", items.len()),
        ] {
            assert_eq!(summary[field], count, "{field} of {name}");
        }
        assert_eq!(
            [&summary["skipped"], &summary["dropped"]],
            [&json!({}), &json!({})]
        );
    }
}

fn import(name: &str) -> (Finished, Items) {
    let finished = Import::new(corpus(name)).to("-").run().expect_code(0);
    let items = Items::parse(&finished.stdout);
    (finished, items)
}

#[test]
fn several_run_ids_in_a_folder_cause_a_notice_until_unified() {
    let notices = |arguments: &[&str]| {
        let import = Import::new(corpus("hf-trainer")).to("-");
        let finished = arguments.iter().fold(import, Import::arg).run();
        finished.expect_code(0).summary()["notices"].to_string()
    };
    let found = notices(&[]);
    assert!(
        found.contains("hf-trainer: the 3 logs of hf_trainer have 3 run ids") && found.contains("--run-id"),
        "{found}"
    );
    assert_eq!(notices(&["--run-id", "one"]), "[]");
}
