//! The limits of the history, and the content of an update stream.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value},
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
    metrics::v1::{
        Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
        number_data_point,
    },
    resource::v1::Resource,
};
use prost::Message;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Sink};
use pulsetrain_semconv::{attribute, metric};
use serde_json::Value;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn text(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(any_value::Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

/// Returns the losses of a run, one per second from a given time on.
fn losses(run: &str, from: u64, values: &[f64]) -> Batch {
    points(run, metric::TRAIN_LOSS.name, from, values)
}

fn points(run: &str, metric: &str, from: u64, values: &[f64]) -> Batch {
    let point = |(place, value): (usize, &f64)| NumberDataPoint {
        time_unix_nano: (from + place as u64) * SECOND,
        value: Some(number_data_point::Value::AsDouble(*value)),
        ..NumberDataPoint::default()
    };
    let data = MetricsData {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![text(attribute::TRAIN_RUN_ID.name, run)],
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                metrics: vec![Metric {
                    name: metric.to_owned(),
                    data: Some(Data::Gauge(Gauge {
                        data_points: values.iter().enumerate().map(point).collect(),
                    })),
                    ..Metric::default()
                }],
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    };
    Batch::new(Signal::Metrics, values.len() as u32, data.encode_to_vec())
}

async fn deliver(sink: &mut PageSink, batch: Batch) {
    assert_eq!(sink.deliver(&batch).await, Delivery::Delivered);
}

/// Returns the data of the queued updates of a kind.
fn waiting(updates: &mut tokio::sync::mpsc::Receiver<bytes::Bytes>, kind: &str) -> Vec<Value> {
    std::iter::from_fn(|| updates.try_recv().ok())
        .filter_map(|update| {
            let update = String::from_utf8(update.to_vec()).unwrap();
            let data = update
                .strip_prefix(&format!("event: {kind}\ndata: "))?
                .trim_end()
                .to_owned();
            Some(serde_json::from_str(&data).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn new_run_replaces_a_silent_run_and_never_a_reporting_one() {
    let config = PageConfig {
        runs: 2,
        ..PageConfig::default()
    };
    let store = PageStore::new(config);
    let mut sink = PageSink::new(store.clone());
    for run in ["a", "b", "c"] {
        deliver(&mut sink, losses(run, 1, &[1.0])).await;
    }
    assert_eq!(
        store.history().runs.keys().map(|id| &**id).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!(store.rejected_items().get(PageRejection::Runs), 1);
    store.history().runs.get_mut("a").unwrap().arrived_millis -= 3_600_000;
    deliver(&mut sink, losses("c", 1, &[1.0])).await;
    assert_eq!(
        store.history().runs.keys().map(|id| &**id).collect::<Vec<_>>(),
        ["b", "c"]
    );
    assert_eq!(store.counts().runs_replaced, 1);
}

#[tokio::test]
async fn series_beyond_the_limit_are_counted_and_not_kept() {
    let config = PageConfig {
        series_per_run: 3,
        ..PageConfig::default()
    };
    let store = PageStore::new(config);
    let mut sink = PageSink::new(store.clone());
    for number in 0..10 {
        deliver(
            &mut sink,
            points("a", &format!("own.metric_{number}"), 1, &[1.0, 2.0]),
        )
        .await;
    }
    assert_eq!(store.history().runs["a"].curves().len(), 3);
    assert_eq!(store.rejected_items().get(PageRejection::SeriesOfRun), 14);
    // The live page shows the same number in its table of dropped items.
    let mut updates = store.subscribe(Vec::new()).unwrap();
    store.update();
    let news = waiting(&mut updates, "news");
    assert_eq!(
        news[0]["page"]["refused"],
        serde_json::json!([["more than 3 series in a run (limit `series_per_run`)", 14]])
    );
}

#[tokio::test]
async fn memory_stays_within_its_limit_and_silent_runs_are_downsampled_first() {
    let config = PageConfig {
        bytes: 400_000,
        ..PageConfig::default()
    };
    let store = PageStore::new(config.clone());
    let mut sink = PageSink::new(store.clone());
    let values: Vec<f64> = (0..3_000).map(f64::from).collect();
    for (silent_hours, run) in ["new", "older", "oldest"].into_iter().enumerate() {
        for metric in ["one", "two", "three"] {
            deliver(&mut sink, points(run, metric, 1, &values)).await;
        }
        store.history().runs.get_mut(run).unwrap().arrived_millis -= silent_hours as i64 * 3_600_000;
    }
    let now_millis = store.history().runs["new"].arrived_millis;
    store.history().keep_within_bytes(now_millis);
    let counts = store.counts();
    assert!(
        counts.bytes <= config.bytes && counts.runs_thinned > 0,
        "{counts:?}"
    );
    let history = store.history();
    let thinned = |run: &str| history.runs[run].thinned;
    assert!(thinned("oldest") > 0, "{counts:?}");
    assert!(
        thinned("oldest") >= thinned("older") && thinned("older") >= thinned("new"),
        "{counts:?}"
    );
    // The remaining points cover all of the time.
    let curves = history.runs["oldest"].curves();
    let series = curves[0].series;
    let times: Vec<i64> = series.points().1.map(|point| point.time_millis).collect();
    assert!(
        times[0] < 200_000 && times.last() == Some(&3_000_000),
        "{times:?}"
    );
}

#[tokio::test]
async fn update_has_the_changes_and_a_slow_stream_is_closed() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    deliver(&mut sink, losses("a", 1, &[3.0, 2.0])).await;
    let (mut read, unread) = (
        store.subscribe(vec!["a".into()]).unwrap(),
        store.subscribe(vec!["a".into()]).unwrap(),
    );
    deliver(&mut sink, losses("a", 3, &[f64::NAN, 1.0])).await;
    store.update();
    let deltas = waiting(&mut read, "delta");
    let series = &deltas[0]["series"][0];
    assert_eq!(
        (&series["from"], &series["v"], &series["bad"]),
        (
            &2.into(),
            &serde_json::json!([null, 1.0]),
            &serde_json::json!([0])
        )
    );
    for _ in 0..40 {
        store.update();
        waiting(&mut read, "news");
    }
    assert!(unread.is_closed(), "it holds {} updates", unread.len());
    assert!(!read.is_closed());
    drop(unread);
}

#[tokio::test]
async fn streams_beyond_the_limit_are_rejected() {
    let config = PageConfig {
        clients: 2,
        ..PageConfig::default()
    };
    let store = PageStore::new(config);
    let first = store.subscribe(Vec::new());
    let _second = store.subscribe(Vec::new());
    assert!(store.subscribe(Vec::new()).is_none());
    drop(first);
    assert!(
        store.subscribe(Vec::new()).is_some(),
        "a stream that has ended makes room"
    );
}

#[tokio::test]
async fn a_batch_that_is_not_otlp_is_refused_and_counted() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    let broken = Batch::new(Signal::Metrics, 1, b"\xff\xff\xff".to_vec());
    assert!(matches!(sink.deliver(&broken).await, Delivery::Refused(_)));
    assert_eq!(store.counts().malformed, 1);
}

/// Returns a batch with one loss of each rank.
fn ranks(run: &str, ranks: std::ops::Range<i64>, second: u64) -> Batch {
    let mut data = MetricsData::default();
    for rank in ranks {
        let batch = losses(run, second, &[1.0]);
        let mut of_rank = MetricsData::decode(&batch.bytes()[..]).unwrap();
        let resource = of_rank.resource_metrics[0].resource.as_mut().unwrap();
        resource
            .attributes
            .push(text(attribute::TRAIN_RANK.name, &rank.to_string()));
        data.resource_metrics.append(&mut of_rank.resource_metrics);
    }
    Batch::new(Signal::Metrics, 1, data.encode_to_vec())
}

#[tokio::test]
async fn ranks_beyond_the_limit_are_counted_and_not_kept() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    deliver(&mut sink, ranks("a", 0..4_100, 1)).await;
    assert_eq!(store.history().runs["a"].ranks(), 4_096);
    assert_eq!(store.rejected_items().get(PageRejection::Ranks), 4);
}

#[tokio::test]
async fn update_contains_only_changed_ranks_and_displayed_series() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    deliver(&mut sink, ranks("a", 0..8, 1)).await;
    let mut updates = store.subscribe(vec!["a".into()]).unwrap();
    store.update();
    deliver(&mut sink, ranks("a", 0..3, 9)).await;
    store.update();
    let deltas = waiting(&mut updates, "delta");
    let changed = deltas[1]["ranks"].as_array().unwrap();
    assert_eq!(changed.len(), 3, "{changed:?}");
    // The loss is a curve of the lowest rank alone, and no column of the rank table.
    assert_eq!(deltas[1]["series"].as_array().unwrap().len(), 1);
}

/// Returns a loss of a rank at a second, with the step that ends then. Without a value the rank ends its
/// series.
fn loss_of_rank(rank: i64, second: u64, value: Option<f64>) -> Batch {
    let mut data = MetricsData::decode(&ranks("a", rank..rank + 1, second).bytes()[..]).unwrap();
    let metrics = &mut data.resource_metrics[0].scope_metrics[0].metrics;
    let Some(Data::Gauge(gauge)) = &mut metrics[0].data else {
        panic!("a gauge")
    };
    let point = &mut gauge.data_points[0];
    match value {
        Some(value) => point.value = Some(number_data_point::Value::AsDouble(value)),
        // DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK of metrics.proto.
        None => point.flags = 1,
    }
    let mut step = metrics[0].clone();
    metric::TRAIN_GLOBAL_STEP.name.clone_into(&mut step.name);
    if let (Some(Data::Gauge(gauge)), Some(_)) = (&mut step.data, value) {
        gauge.data_points[0].value = Some(number_data_point::Value::AsDouble(second as f64));
    }
    metrics.push(step);
    Batch::new(Signal::Metrics, 2, data.encode_to_vec())
}

/// The time of the last point before another rank continued a curve, and that rank.
type Change = (i64, Option<i64>);

/// Returns the losses of the curve, its rank, and its changes of rank.
fn curve_of_loss(store: &PageStore) -> (Vec<f32>, Option<i64>, Vec<Change>) {
    let history = store.history();
    let loss = history.catalogue.find(metric::TRAIN_LOSS.name);
    let curve = history.runs["a"]
        .first_curve(|metric| Some(metric) == loss)
        .unwrap();
    let losses = curve.points().1.map(|point| point.last).collect();
    (losses, curve.rank, curve.changes().collect())
}

#[tokio::test]
async fn curve_of_an_ended_rank_passes_to_the_lowest_reporting_rank() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    let value = |rank: i64, second: u64| Some(rank as f64 * 100.0 + second as f64);
    for second in 1..=3 {
        for rank in 0..3 {
            deliver(&mut sink, loss_of_rank(rank, second, value(rank, second))).await;
        }
    }
    deliver(&mut sink, loss_of_rank(0, 3, None)).await;
    assert_eq!(curve_of_loss(&store), (vec![1.0, 2.0, 3.0], Some(0), vec![]));
    // Rank 2 arrives first, but rank 1 reports, so the curve belongs to rank 1.
    for (rank, second) in [(2, 4), (1, 4), (2, 5), (1, 5)] {
        deliver(&mut sink, loss_of_rank(rank, second, value(rank, second))).await;
    }
    let expected = (vec![1.0, 2.0, 3.0, 104.0, 105.0], Some(1), vec![(3_000, Some(1))]);
    assert_eq!(curve_of_loss(&store), expected);
    // The value of the tile and the updates belong to rank 1.
    let mut updates = store.subscribe(vec!["a".into()]).unwrap();
    store.update();
    deliver(&mut sink, loss_of_rank(1, 6, value(1, 6))).await;
    store.update();
    let delta = waiting(&mut updates, "delta").pop().unwrap();
    let sent = delta["series"].as_array().unwrap().iter();
    let sent: Vec<&Value> = sent.filter(|series| series["latest"] == 106.0).collect();
    assert_eq!((sent.len(), &sent[0]["v"]), (1, &serde_json::json!([106.0])));
    let text = store.text(TextStyle::default());
    assert!(text.contains("Loss 106"), "{text}");
    // A rank that returns has its curve again.
    deliver(&mut sink, loss_of_rank(0, 7, value(0, 7))).await;
    let (losses, rank, changes) = curve_of_loss(&store);
    assert_eq!((losses.len(), losses[6], rank), (7, 7.0, Some(0)));
    assert_eq!(changes, [(3_000, Some(1)), (6_000, Some(0))]);
}

#[tokio::test]
async fn curve_of_a_silent_rank_passes_to_a_reporting_rank() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    for (rank, second) in [(0, 1), (1, 1), (1, 61), (1, 62)] {
        deliver(&mut sink, loss_of_rank(rank, second, Some(second as f64))).await;
    }
    assert_eq!(
        curve_of_loss(&store),
        (vec![1.0, 61.0, 62.0], Some(1), vec![(1_000, Some(1))])
    );
}

#[tokio::test]
async fn curve_keeps_its_owner_when_ranks_end_at_the_same_step() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    for second in 1..=3 {
        deliver(&mut sink, loss_of_rank(0, second, Some(1.0))).await;
    }
    deliver(&mut sink, loss_of_rank(0, 3, None)).await;
    for second in 1..=3 {
        deliver(&mut sink, loss_of_rank(1, second, Some(2.0))).await;
    }
    deliver(&mut sink, loss_of_rank(1, 3, None)).await;
    assert_eq!(curve_of_loss(&store), (vec![1.0; 3], Some(0), vec![]));
}

#[tokio::test]
async fn silent_runs_are_evicted_if_downsampling_does_not_free_enough_memory() {
    let config = PageConfig {
        bytes: 20_000,
        ..PageConfig::default()
    };
    let store = PageStore::new(config.clone());
    let mut sink = PageSink::new(store.clone());
    for (silent_minutes, run) in [(0, "reports"), (60, "silent"), (90, "longer")] {
        for number in 0..40 {
            let label = format!("own.metric_{number}");
            deliver(&mut sink, points(run, &label, 1, &[1.0, 2.0])).await;
        }
        store.history().runs.get_mut(run).unwrap().arrived_millis -= silent_minutes * 60_000;
    }
    let now_millis = store.history().runs["reports"].arrived_millis;
    store.history().keep_within_bytes(now_millis);
    assert!(store.counts().bytes <= config.bytes, "{:?}", store.counts());
    let history = store.history();
    assert!(history.runs.contains_key("reports") && !history.runs.contains_key("longer"));
}

#[tokio::test]
async fn ended_run_is_evicted_before_a_silent_one() {
    let config = PageConfig {
        runs: 2,
        ..PageConfig::default()
    };
    let store = PageStore::new(config);
    let mut sink = PageSink::new(store.clone());
    for run in ["silent", "ended"] {
        deliver(&mut sink, losses(run, 1, &[1.0])).await;
    }
    {
        let mut history = store.history();
        history.runs.get_mut("silent").unwrap().arrived_millis -= 3_600_000;
        history.runs.get_mut("ended").unwrap().member(None).is_ended = true;
    }
    deliver(&mut sink, losses("new", 1, &[1.0])).await;
    assert_eq!(
        store.history().runs.keys().map(|id| &**id).collect::<Vec<_>>(),
        ["new", "silent"]
    );
}

#[tokio::test]
async fn a_late_point_changes_neither_the_curve_nor_the_last_value() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    deliver(&mut sink, losses("a", 10, &[2.0, 1.0])).await;
    deliver(&mut sink, losses("a", 5, &[9.0])).await;
    let history = store.history();
    let curves = history.runs["a"].curves();
    let series = curves[0].series;
    assert_eq!((series.latest, series.count), (1.0, 2));
    assert_eq!(history.counts.rejected.get(PageRejection::Late), 1);
}

#[tokio::test]
async fn points_without_a_value_or_a_metric_name_are_counted() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    let mut data = MetricsData::decode(&losses("a", 1, &[1.0, 2.0]).bytes()[..]).unwrap();
    let metrics = &mut data.resource_metrics[0].scope_metrics[0].metrics;
    let mut nameless = metrics[0].clone();
    nameless.name.clear();
    metrics.push(nameless);
    let Some(Data::Gauge(gauge)) = &mut metrics[0].data else {
        panic!("a gauge")
    };
    gauge.data_points[1].value = None;
    deliver(&mut sink, Batch::new(Signal::Metrics, 4, data.encode_to_vec())).await;
    let refused: Vec<_> = store.rejected_items().by_reason().collect();
    assert_eq!(
        refused,
        [(PageRejection::Metrics, 2), (PageRejection::NoValue, 1)]
    );
}

#[tokio::test]
async fn an_event_of_a_gpu_without_a_run_is_listed_with_the_runs_of_its_host() {
    let store = PageStore::new(PageConfig::default());
    let mut sink = PageSink::new(store.clone());
    for (run, host) in [("a", "node-1"), ("b", "node-2")] {
        let mut data = MetricsData::decode(&losses(run, 1, &[1.0]).bytes()[..]).unwrap();
        let resource = data.resource_metrics[0].resource.as_mut().unwrap();
        resource.attributes.push(text(attribute::HOST_NAME.name, host));
        deliver(&mut sink, Batch::new(Signal::Metrics, 1, data.encode_to_vec())).await;
    }
    let xid = LogRecord {
        time_unix_nano: SECOND,
        severity_number: 17,
        attributes: vec![
            text(attribute::GPU_ID.name, "GPU-1"),
            text(attribute::GPU_XID_CODE.name, "79"),
        ],
        ..LogRecord::default()
    };
    let data = LogsData {
        resource_logs: vec![ResourceLogs {
            resource: Some(Resource {
                attributes: vec![text(attribute::HOST_NAME.name, "node-1")],
                ..Resource::default()
            }),
            scope_logs: vec![ScopeLogs {
                log_records: vec![xid],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    deliver(&mut sink, Batch::new(Signal::Logs, 1, data.encode_to_vec())).await;
    let history = store.history();
    let texts = |run: &str| -> Vec<String> {
        let events = history.runs[run].events.iter();
        events.map(|event| event.text.to_string()).collect()
    };
    assert_eq!((texts("a"), texts("b")), (vec!["XID 79".to_owned()], vec![]));
}
