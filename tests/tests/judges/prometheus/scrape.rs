//! The samples that a real Prometheus stores with a scrape every second.

use std::time::Duration;

use pulsetrain_tests::{Judge, Prometheus, promtool_check, some_or_return, unix_nanos, wait_until};
use serde_json::json;

use crate::prometheus::{
    endpoint::Endpoint,
    otlp::{self, encode, end, gauge},
    samples::samples,
};

const RESOURCE: [(&str, &str); 5] = [
    ("service.name", "trainer"),
    ("service.instance.id", "run-1/0"),
    ("train.run.id", "run-1"),
    ("train.run.name", "the \"first\" \\ run\nof all"),
    ("train.framework", "surogate"),
];
const TRACE: &str = "0102030405060708090a0b0c0d0e0f10";
const SPAN: &str = "0102030405060708";

fn start() -> Option<(Endpoint, Prometheus)> {
    let program = Judge::Prometheus.require_or_skip()?;
    let endpoint = Endpoint::start(&["train.run.id", "train.run.name"]);
    let prometheus = Prometheus::start(&program, &[("ours", endpoint.address())], &[]);
    Some((endpoint, prometheus))
}

#[test]
fn every_scrape_has_the_value_of_the_latest_step() {
    let (mut endpoint, prometheus) = some_or_return!(start());
    // A step every few milliseconds until eight scrapes have stored some, with the start and the end of each delivery.
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let scraped = || {
        prometheus
            .value("count_over_time(train_loss[1m])")
            .unwrap_or_default()
    };
    wait_until("Prometheus has scraped eight times", || {
        let begun = unix_nanos();
        endpoint.take(&encode(
            &RESOURCE,
            &[gauge("train.loss", "{loss}", steps.len() as f64)],
        ));
        steps.push((begun, unix_nanos()));
        scraped() >= 8.0
    });
    let durations = samples(&prometheus, "scrape_duration_seconds{via=\"ours\"}[1m]");
    let samples = samples(&prometheus, "train_loss[1m]");
    for (time, step) in &samples {
        let duration = durations
            .iter()
            .find(|(other, _)| other == time)
            .expect("each scrape has a duration")
            .1;
        // Prometheus' timestamps are in milliseconds, and moved by up to two to make them regular.
        let (earliest, latest) = (time - 0.004, time + duration + 0.004);
        let step = *step as usize;
        assert!(
            seconds(steps[step].0) <= latest,
            "step {step} was not there at {latest}"
        );
        let next = steps.get(step + 1).map_or(f64::INFINITY, |next| seconds(next.1));
        assert!(
            earliest <= next,
            "step {step} was over at {next}, before {earliest}"
        );
    }
    assert!(
        samples.windows(2).all(|pair| pair[0].1 < pair[1].1),
        "{samples:?}"
    );
}

#[test]
fn non_finite_values_reach_prometheus_and_an_ended_series_goes_stale() {
    let (mut endpoint, prometheus) = some_or_return!(start());
    let mut shows = |value: f64| {
        endpoint.take(&encode(
            &RESOURCE,
            &[
                gauge("train.loss", "{loss}", value),
                gauge("train.epoch", "{epoch}", 1.0),
            ],
        ));
        wait_until("Prometheus has the value", || {
            prometheus
                .value("train_loss")
                .is_some_and(|seen| seen == value || (seen.is_nan() && value.is_nan()))
        });
    };
    [2.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
        .into_iter()
        .for_each(&mut shows);
    let info = prometheus.query("target_info{via=\"ours\"}");
    assert_eq!(info.len(), 1);
    let labels = &info[0]["metric"];
    assert_eq!(
        (&labels["job"], &labels["instance"], &labels["train_framework"]),
        (&json!("trainer"), &json!("run-1/0"), &json!("surogate"))
    );
    let joined = prometheus.query("train_epoch * on(job, instance) group_left(train_framework) target_info");
    assert_eq!(joined[0]["metric"]["train_framework"], "surogate");
    assert_eq!(
        joined[0]["metric"]["train_run_name"],
        "the \"first\" \\ run\nof all"
    );

    endpoint.take(&encode(&RESOURCE, &[end("train.loss", "{loss}")]));
    wait_until("the series has ended", || {
        prometheus.query("train_loss").is_empty()
    });
    assert_eq!(
        prometheus.value("train_epoch"),
        Some(1.0),
        "no other series ends with it"
    );
}

#[test]
fn exemplars_and_native_histograms_arrive() {
    let (mut endpoint, prometheus) = some_or_return!(start());
    let (start, time) = (
        (unix_nanos() - 60_000_000_000).to_string(),
        unix_nanos().to_string(),
    );
    let exemplar = json!({"timeUnixNano": time, "asDouble": 0.7, "traceId": TRACE, "spanId": SPAN,
        "filteredAttributes": otlp::attributes(&[("train.step", "400")])});
    endpoint.take(&encode(
        &RESOURCE,
        &[
            json!({"name": "train.tokens", "unit": "{token}", "sum": {"aggregationTemporality": 2, "isMonotonic": true,
                "dataPoints": [{"startTimeUnixNano": start, "timeUnixNano": time, "asInt": "4096", "exemplars": [exemplar]}]}}),
            json!({"name": "train.step.duration", "unit": "s", "histogram": {"aggregationTemporality": 2, "dataPoints": [
                {"startTimeUnixNano": start, "timeUnixNano": time, "count": "10", "sum": 6.0, "explicitBounds": [0.5, 1],
                 "bucketCounts": ["5", "5", "0"], "exemplars": [exemplar]}]}}),
            // Scale 1: buckets up to 2^(1/2), 2, 2^(3/2), 4. All 100 observations are between 2 and 2^(3/2).
            json!({"name": "rl.latency", "unit": "s", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [
                {"startTimeUnixNano": start, "timeUnixNano": time, "count": "100", "sum": 240.0, "scale": 1, "zeroCount": "0",
                 "positive": {"offset": 2, "bucketCounts": ["100"]}, "exemplars": [exemplar]}]}}),
        ],
    ));
    wait_until("Prometheus has scraped", || {
        prometheus.value("train_tokens_total").is_some()
    });
    assert_eq!(prometheus.value("train_tokens_total"), Some(4096.0));
    for expression in [
        "train_tokens_total",
        "train_step_duration_seconds_bucket{le=\"1.0\"}",
        "rl_latency_seconds",
    ] {
        let exemplars = prometheus.exemplars(expression);
        let exemplar = &exemplars
            .first()
            .unwrap_or_else(|| panic!("{expression} has no exemplar"))["exemplars"][0];
        assert_eq!(
            exemplar["labels"],
            json!({"trace_id": TRACE, "span_id": SPAN, "train_step": "400"}),
            "{expression}"
        );
        assert_eq!(exemplar["value"], "0.7");
    }
    let median = prometheus
        .value("histogram_quantile(0.5, rl_latency_seconds)")
        .expect("a native histogram");
    assert!((2.0..8f64.sqrt()).contains(&median), "{median}");
    assert_eq!(
        prometheus.value("histogram_count(rl_latency_seconds)"),
        Some(100.0)
    );
    let classic = prometheus.value("histogram_quantile(0.5, train_step_duration_seconds_bucket)");
    assert_eq!(classic, Some(0.5));
}

#[test]
fn promtool_accepts_the_page_without_warnings() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut endpoint = Endpoint::start(&["train.run.id", "train.run.name"]);
    crate::prometheus::names::one_of_each(&RESOURCE)
        .iter()
        .for_each(|batch| endpoint.take(batch));
    let output = promtool_check(&program, &endpoint.page("text/plain"));
    let printed = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.is_empty(), "{printed}");
}

fn seconds(unix_nanos: u64) -> f64 {
    Duration::from_nanos(unix_nanos).as_secs_f64()
}
