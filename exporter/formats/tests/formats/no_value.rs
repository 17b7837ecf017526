//! `null` in JSON is a value that was not measured: it is counted, not recorded.

use pulsetrain_formats::format_by_name;
use pulsetrain_record::SkipReason;

use crate::imported;

/// Reads a text. Returns the number of points and the skipped values.
fn read(format: &str, text: &str) -> (u64, Vec<(SkipReason, u64)>) {
    let format = format_by_name(format).expect("it is in the table");
    let (_, counts, skipped) = imported::read(format, text.as_bytes());
    (counts.points, skipped.counts().collect())
}

/// A record of each JSON format, with a number that occurs twice.
const RECORDS: [(&str, &str); 5] = [
    (
        "json",
        r#"{"step": 3, "train.loss": 1.5, "train.grad_norm": 1.5}"#,
    ),
    (
        "surogate-jsonl",
        r#"{"step": 3, "ts": 1795262400.5, "train/loss": 1.5, "train/norm": 1.5}"#,
    ),
    (
        "maxtext-metrics",
        r#"{"learning/loss": 1.5, "learning/grad_norm": 1.5, "step": 3.0, "run_name": "a"}"#,
    ),
    (
        "hf-trainer-state",
        r#"{"global_step": 3, "log_history": [{"loss": 1.5, "grad_norm": 1.5, "step": 3}]}"#,
    ),
    (
        "maxtext-goodput",
        r#"{"job_name": "a", "elastic_slice_counts_timestamp": 1.5, "active_slices": 1.5, "total_slices": 1.5}"#,
    ),
];

#[test]
fn null_value_is_counted_as_not_measured() {
    for (format, record) in RECORDS {
        let (points, skipped) = read(format, &format!("{record}\n"));
        let is_measured = |(reason, _): &(SkipReason, u64)| *reason != SkipReason::NotMeasured;
        assert!(skipped.iter().all(is_measured), "{format}: {skipped:?}");
        let (before, _) = record.rsplit_once("1.5").expect("the number is there");
        let after = &record[before.len() + 3..];
        let (fewer, skipped) = read(format, &format!("{before}null{after}\n"));
        assert_eq!(fewer, points - 1, "{format}");
        let nulls = skipped.iter().find(|counted| !is_measured(counted));
        assert_eq!(nulls, Some(&(SkipReason::NotMeasured, 1)), "{format}");
    }
}
