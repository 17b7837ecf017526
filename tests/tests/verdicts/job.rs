//! Drives a simulated job through the stage in simulated time, and reads the output.

use std::collections::BTreeMap;

use pulsetrain_demo::{Demo, DemoConfig, Truth};
use pulsetrain_derive::{SignalsConfig, SignalsStage};
use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::{AnyValue, KeyValue, LogsData, Message, Metric, MetricData, MetricsData, NumberPoint, Repeated},
};
use pulsetrain_pipeline::{Batch, Stage, clock};
use pulsetrain_semconv::{attribute, event, metric};

/// A verdict, as decoded from its event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) kind: String,
    pub(crate) subject: String,
    pub(crate) is_open: bool,
    pub(crate) severity_number: i32,
    pub(crate) time_unix_nanos: UnixNanos,
    /// The simulated time at which the stage emitted the event.
    pub(crate) seen_unix_nanos: UnixNanos,
    pub(crate) step: Option<i64>,
    pub(crate) rank: Option<i64>,
    pub(crate) gpu: Option<String>,
    pub(crate) reason: String,
}

/// The results of a job.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    pub(crate) truths: Vec<Truth>,
    pub(crate) verdicts: Vec<Verdict>,
    /// The last value of each series of `train.verdicts`, by its resource and attributes; series that have ended are left out.
    pub(crate) open_series: BTreeMap<String, f64>,
    has_wall_time: bool,
    /// The last value of each series of `train.wall_time`, by its attributes.
    pub(crate) wall_time: BTreeMap<String, f64>,
    /// The time from the first telemetry to the last, in seconds.
    pub(crate) wall_secs: f64,
}

/// A simulated job with its stage.
pub(crate) struct Job;

impl Job {
    /// Runs a job to its end.
    pub(crate) fn run(config: &DemoConfig) -> Finished {
        Self::drive(config, Finished::default())
    }

    /// Runs a job to its end, and reads its wall time as well.
    pub(crate) fn run_with_wall_time(config: &DemoConfig) -> Finished {
        let finished = Finished {
            has_wall_time: true,
            ..Finished::default()
        };
        Self::drive(config, finished)
    }

    fn drive(config: &DemoConfig, mut finished: Finished) -> Finished {
        let mut demo = Demo::new(config.clone()).expect("a job that can be simulated");
        let mut stage = SignalsStage::new(SignalsConfig::default());
        let (begin, mut out) = (clock::now(), Vec::new());
        let mut end = config.start_unix_nanos;
        while let Some((time_unix_nanos, batches)) = demo.next_batches() {
            end = time_unix_nanos;
            let now = begin + time_unix_nanos.saturating_duration_since(config.start_unix_nanos);
            while stage.due().is_some_and(|due| due <= now) {
                stage.release(now, &mut out);
            }
            for batch in batches {
                let bytes = batch.bytes().clone();
                stage.pass(batch, now, &mut out);
                out.retain(|passed| *passed.bytes() != bytes);
            }
            finished.read(&out, end);
            out.clear();
        }
        stage.finish(&mut out);
        finished.read(&out, end);
        finished.truths = demo.truth().to_vec();
        finished.wall_secs = end.secs_since(config.start_unix_nanos);
        finished
    }
}

impl Finished {
    /// Returns the verdicts that were opened.
    pub(crate) fn opened(&self) -> Vec<Verdict> {
        self.verdicts
            .iter()
            .filter(|verdict| verdict.is_open)
            .cloned()
            .collect()
    }

    fn read(&mut self, derived: &[Batch], now_unix_nanos: UnixNanos) {
        for batch in derived {
            match batch.signal() {
                Signal::Logs => self.read_verdicts(batch, now_unix_nanos),
                Signal::Metrics => self.read_sums(batch),
                Signal::Traces => {}
            }
        }
    }

    fn read_verdicts(&mut self, batch: &Batch, now_unix_nanos: UnixNanos) {
        let data = LogsData::decode(batch.bytes()).expect("log records");
        for resource in data.resource_logs {
            for scope in resource.expect("a resource").scope_logs {
                for record in scope.expect("a scope").log_records {
                    let record = record.expect("a record");
                    if record.event_name != event::TRAIN_VERDICT.name {
                        continue;
                    }
                    let attributes = texts(record.attributes);
                    let get =
                        |attribute: &pulsetrain_semconv::Attribute| attributes.get(attribute.name).cloned();
                    let number = |attribute| get(attribute).map(|text| text.parse().expect("a number"));
                    self.verdicts.push(Verdict {
                        kind: get(&attribute::TRAIN_VERDICT_KIND).expect("a kind"),
                        subject: get(&attribute::TRAIN_VERDICT_SUBJECT).unwrap_or_default(),
                        is_open: get(&attribute::TRAIN_VERDICT_STATE).expect("a state") == "open",
                        severity_number: record.severity_number,
                        time_unix_nanos: UnixNanos(record.time_unix_nano),
                        seen_unix_nanos: now_unix_nanos,
                        step: number(&attribute::TRAIN_STEP),
                        rank: number(&attribute::TRAIN_RANK),
                        gpu: get(&attribute::GPU_ID),
                        reason: record.body.map(text).unwrap_or_default(),
                    });
                }
            }
        }
    }

    /// Reads the sums that tests compare: `train.verdicts` and `train.wall_time`.
    fn read_sums(&mut self, batch: &Batch) {
        let data = MetricsData::decode(batch.bytes()).expect("points");
        for resource in data.resource_metrics {
            let resource = resource.expect("a resource");
            for scope in resource.scope_metrics {
                for metric in scope.expect("a scope").metrics {
                    let metric = metric.expect("a metric");
                    if metric.name == metric::TRAIN_VERDICTS.name {
                        let attributes = resource.resource.map(|resource| resource.attributes);
                        let attributes = texts(attributes.unwrap_or_default());
                        self.read_open(&metric, &format!("{attributes:?}"));
                    } else if self.has_wall_time && metric.name == metric::TRAIN_WALL_TIME.name {
                        self.read_wall_time(&metric);
                    }
                }
            }
        }
    }

    fn read_open(&mut self, metric: &Metric<'_>, resource: &str) {
        for point in points_of(metric) {
            let key = format!("{:?} of {resource}", texts(point.attributes));
            match point.value() {
                Some(value) => self.open_series.insert(key, value.as_f64()),
                None => self.open_series.remove(&key),
            };
        }
    }

    fn read_wall_time(&mut self, metric: &Metric<'_>) {
        for point in points_of(metric) {
            let key = texts(point.attributes)
                .into_values()
                .collect::<Vec<_>>()
                .join("/");
            // The end of a series has no value.
            let Some(value) = point.value() else { continue };
            let value = value.as_f64();
            let last = self.wall_time.insert(key.clone(), value);
            assert!(last.is_none_or(|last| last <= value), "{key} fell");
        }
    }
}

fn points_of<'a>(metric: &Metric<'a>) -> impl Iterator<Item = NumberPoint<'a>> + use<'a> {
    let Some(MetricData::Sum(sum)) = metric.data() else {
        panic!("{} is a sum", metric.name);
    };
    sum.data_points.into_iter().map(|point| point.expect("a point"))
}

fn texts(attributes: Repeated<'_, KeyValue<'_>>) -> BTreeMap<String, String> {
    let entries = attributes.into_iter().map(|entry| entry.expect("an attribute"));
    entries
        .map(|entry| (entry.key.to_string(), text(entry.value.unwrap_or_default())))
        .collect()
}

fn text(value: AnyValue<'_>) -> String {
    match value {
        AnyValue::String(text) => text.to_string(),
        AnyValue::Int(number) => number.to_string(),
        AnyValue::Double(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}
