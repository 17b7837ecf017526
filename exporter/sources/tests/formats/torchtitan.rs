//! torchtitan: the structured log.

use serde_json::Value;

use crate::{
    Imported,
    imported::{sample_text, time},
};

const SAMPLE: &str = "torchtitan/training.global_rank_0.20261121-002911-Z3DKG9.jsonl";

#[test]
fn every_span_is_as_long_as_the_log_says() {
    let rows: Vec<Value> = sample_text(SAMPLE)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let imported = Imported::of("torchtitan-structured", SAMPLE);
    let ends: Vec<&Value> = rows
        .iter()
        .filter(|row| {
            row["log_type_name"]
                .as_str()
                .is_some_and(|name| name.ends_with("_end"))
        })
        .collect();
    assert_eq!((ends.len(), imported.spans.len()), (6, 6));
    for (span, row) in imported.spans.iter().zip(ends) {
        let nanos = time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano");
        let expected = row["value"].as_f64().expect("milliseconds") * 1e6;
        assert!((nanos as f64 - expected).abs() <= 1.0, "{span}");
        assert_eq!(
            time(span, "endTimeUnixNano"),
            row["time_us"].as_u64().expect("microseconds") * 1000
        );
    }
}
