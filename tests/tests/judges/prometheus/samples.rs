//! The samples that a real Prometheus has stored.

use pulsetrain_tests::Prometheus;
use serde_json::Value;

/// Returns the samples of a range query with at most one series: Unix seconds and value.
pub(crate) fn samples(prometheus: &Prometheus, range: &str) -> Vec<(f64, f64)> {
    let result = prometheus.query(range);
    assert!(result.len() <= 1, "{result:?}");
    let series = result.first().and_then(|series| series["values"].as_array());
    series.into_iter().flatten().map(sample).collect()
}

fn sample(pair: &Value) -> (f64, f64) {
    let value = pair[1].as_str().expect("a sample is text").replace("Inf", "inf");
    (
        pair[0].as_f64().expect("a sample has a time"),
        value.parse().expect("a sample is a number"),
    )
}
