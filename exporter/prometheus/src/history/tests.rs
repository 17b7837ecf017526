//! Histories of OTLP in JSON.

use pulsetrain_otlp::{json, limits::Limits};
use serde_json::{Value, json};

use super::{super::Rejection, samples::write_time, *};

/// 2026-11-21T00:18:40.123Z.
const TIME: u64 = 1_795_220_320_123_000_000;
const MILLI: u64 = 1_000_000;

fn message(metrics: &Value) -> Vec<u8> {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let message = json!({"resourceMetrics": [{
        "resource": {"attributes": [
            attribute("service.name", "trainer"), attribute("service.instance.id", "r/0"),
            attribute("train.run.id", "r"), attribute("team", "nlp"),
        ]},
        "scopeMetrics": [{"metrics": metrics}],
    }]});
    let mut bytes = Vec::new();
    json::decode(message.to_string().as_bytes(), &Limits::default(), &mut bytes).expect("OTLP/JSON");
    bytes
}

fn gauge(name: &str, points: &[(u64, Value)]) -> Value {
    let points: Vec<Value> = points
        .iter()
        .map(|(time, value)| json!({"timeUnixNano": time.to_string(), "asDouble": value}))
        .collect();
    json!({"name": name, "gauge": {"dataPoints": points}})
}

fn history(bytes: usize, messages: &[Value]) -> (String, HistorySummary) {
    let config = PrometheusConfig::default();
    let mut history = OpenMetricsHistory::new(&config, MemoryBudget { bytes, folder: None });
    for metrics in messages {
        let refused = history.add(&message(metrics)).expect("OTLP");
        assert_eq!(refused, Delivery::Delivered);
    }
    let mut out = Vec::new();
    let summary = history.write(&mut out).expect("memory can be written");
    (String::from_utf8(out).expect("UTF-8"), summary)
}

const LABELS: &str = r#"instance="r/0",job="trainer",service_instance_id="r/0",train_run_id="r""#;

#[test]
fn history_groups_families_and_sorts_samples_by_time() {
    let messages = [
        json!([
            gauge("a", &[(TIME + MILLI, json!(2.5)), (TIME, json!("NaN"))]),
            gauge("b", &[(TIME, json!(7))])
        ]),
        json!([gauge("a", &[(TIME - 1000 * MILLI, json!("-Infinity"))])]),
    ];
    let (text, summary) = history(1 << 20, &messages);
    let (first, second) = ("1795220319.123", "1795220320.123");
    let expected = format!(
        "# TYPE a gauge\na{{{LABELS}}} -Inf {first}\na{{{LABELS}}} NaN {second}\na{{{LABELS}}} 2.5 1795220320.124\n\
         # TYPE b gauge\nb{{{LABELS}}} 7 {second}\n# HELP target_info Target metadata\n# TYPE target_info gauge\n"
    );
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(
        text.contains("target_info{instance=\"r/0\",job=\"trainer\",team=\"nlp\""),
        "{text}"
    );
    assert_eq!((summary.series, summary.points, summary.replaced), (2, 4, 0));
    assert_eq!(
        history(1, &messages),
        (text, summary),
        "by way of temporary files"
    );
}

#[test]
fn the_last_point_of_a_millisecond_is_kept_and_the_others_are_counted() {
    let messages = [json!([gauge(
        "a",
        &[
            (TIME + 9, json!(3)),
            (TIME, json!(1)),
            (TIME + 5, json!(2)),
            (TIME + 9, json!(3))
        ]
    )])];
    let (text, summary) = history(1 << 20, &messages);
    let samples: Vec<&str> = text.lines().filter(|line| line.starts_with("a{")).collect();
    assert!(samples.len() == 1 && samples[0].contains("} 3 "), "{text}");
    assert_eq!(
        (summary.points, summary.replaced),
        (1, 2),
        "an equal point is no loss"
    );
    assert!(
        summary
            .problem()
            .expect("two are left out")
            .contains("2 of 3 points")
    );
}

#[test]
fn counter_and_histogram_samples_are_written_with_timestamps() {
    let histogram = json!({"name": "train.step.duration", "unit": "s", "description": "Time\nof a step.", "histogram": {
        "aggregationTemporality": 2, "dataPoints": [{"startTimeUnixNano": TIME.to_string(), "timeUnixNano": TIME.to_string(),
            "count": "3", "sum": 4.5, "bucketCounts": ["2", "1"], "explicitBounds": [1]}]}});
    let counter = json!({"name": "train.tokens", "unit": "{token}", "sum": {"isMonotonic": true, "aggregationTemporality": 2,
        "dataPoints": [{"timeUnixNano": TIME.to_string(), "asInt": "12"}]}});
    let (text, summary) = history(1 << 20, &[json!([histogram, counter])]);
    for line in [
        "# HELP train_step_duration_seconds Time\\nof a step.".to_owned(),
        "# UNIT train_step_duration_seconds seconds".to_owned(),
        format!("train_step_duration_seconds_bucket{{{LABELS},le=\"1.0\"}} 2 1795220320.123"),
        format!("train_step_duration_seconds_bucket{{{LABELS},le=\"+Inf\"}} 3 1795220320.123"),
        format!("train_step_duration_seconds_sum{{{LABELS}}} 4.5 1795220320.123"),
        format!("train_step_duration_seconds_count{{{LABELS}}} 3 1795220320.123"),
        "# TYPE train_tokens counter".to_owned(),
        format!("train_tokens_total{{{LABELS}}} 12 1795220320.123"),
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    assert_eq!((summary.series, summary.points), (2, 2));
}

#[test]
fn a_long_run_has_target_info_within_the_lookback_of_every_point() {
    let hour = 3_600_000 * MILLI;
    let (text, _) = history(
        1 << 20,
        &[json!([gauge("a", &[(TIME, json!(1)), (TIME + hour, json!(2))])])],
    );
    let infos = text.lines().filter(|line| line.starts_with("target_info{"));
    let times: Vec<f64> = infos
        .map(|line| {
            line.rsplit(' ')
                .next()
                .expect("a time")
                .parse()
                .expect("a number")
        })
        .collect();
    assert_eq!(times.len(), 25);
    assert!(
        times
            .windows(2)
            .all(|pair| (149.9..150.1).contains(&(pair[1] - pair[0]))),
        "{times:?}"
    );
}

#[test]
fn history_rejects_deltas_and_colliding_metric_names() {
    let delta = json!({"name": "d", "sum": {"isMonotonic": true, "aggregationTemporality": 1,
        "dataPoints": [{"timeUnixNano": TIME.to_string(), "asInt": "1"}]}});
    let points = [(TIME, json!(1))];
    let mut history = OpenMetricsHistory::new(&PrometheusConfig::default(), MemoryBudget::default());
    let refused = history
        .add(&message(&json!([
            delta,
            gauge("a.b", &points),
            gauge("a_b", &points)
        ])))
        .expect("OTLP");
    let Delivery::Partial { rejected, problem } = refused else {
        panic!("{refused:?}")
    };
    let message = problem.to_string();
    assert_eq!(rejected, 2);
    for rejection in [Rejection::NameCollision, Rejection::Temporality] {
        assert!(message.contains(&format!("1 points: {rejection}")), "{message}");
    }
}

#[test]
fn written_timestamps_parse_to_the_same_millisecond() {
    let mut text = String::new();
    for start in [1_100_000_000_000, TIME / MILLI, 2_147_000_000_000] {
        for millis in start..start + 20_000 {
            write_time(millis, &mut text);
            let seconds: f64 = text.parse().expect("a number");
            assert_eq!((seconds * 1000.0) as u64, millis, "{text}");
        }
    }
}
