//! Converts one series of Prometheus to an OTLP message.
//!
//! A metric of the registry gets its original name and unit. Any other metric keeps its name, and gets the unit of its
//! metadata or of the suffix of its name.

use std::collections::{BTreeMap, HashMap};

use pulsetrain_otlp::write::Buffer;
use pulsetrain_semconv::{attribute, metric};
use serde::Deserialize;

use super::Metadata;
use crate::jaeger_json::tag;

const NAME: &str = "__name__";
const JOB: &str = "job";
const INSTANCE: &str = "instance";

/// Suffixes of a series name that the name in the metadata lacks.
const ENDINGS: [&str; 4] = ["_total", "_bucket", "_sum", "_count"];

/// Names of units in Prometheus, with their UCUM codes.
const UNITS: [(&str, &str); 14] = [
    ("seconds", "s"),
    ("milliseconds", "ms"),
    ("bytes", "By"),
    ("ratio", "1"),
    ("percent", "%"),
    ("watts", "W"),
    ("joules", "J"),
    ("celsius", "Cel"),
    ("volts", "V"),
    ("amperes", "A"),
    ("hertz", "Hz"),
    ("meters", "m"),
    ("grams", "g"),
    ("days", "d"),
];

/// Cumulative temporality (`AggregationTemporality`).
const CUMULATIVE: u64 = 2;

/// A series in the API; a sample is its time in seconds and its value as text.
#[derive(Deserialize)]
pub(super) struct Series {
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
    #[serde(default)]
    histograms: Vec<serde::de::IgnoredAny>,
}

/// The metadata of the metrics of a store, by name.
#[derive(Default)]
pub(super) struct MetadataByName(HashMap<String, Metadata>);

/// The name, description, unit and type of a metric.
struct MetricIdentity<'a> {
    name: &'a str,
    description: &'a str,
    unit: &'a str,
    is_counter: bool,
}

impl MetadataByName {
    pub(super) fn new(all: impl Iterator<Item = (String, Metadata)>) -> Self {
        Self(all.collect())
    }

    fn about<'a>(&'a self, name: &'a str) -> MetricIdentity<'a> {
        let base = ENDINGS
            .iter()
            .find_map(|ending| name.strip_suffix(ending))
            .unwrap_or(name);
        let metadata = self.0.get(name).or_else(|| self.0.get(base));
        let is_counter = metadata.map_or(base.len() < name.len(), |metadata| {
            metadata.kind == "counter" || (metadata.kind != "gauge" && base.len() < name.len())
        });
        let defined = metric::ALL.iter().find(|metric| metric.prometheus_name == name);
        if let Some(metric) = defined {
            return MetricIdentity {
                name: metric.name,
                description: metric.brief,
                unit: metric.unit,
                is_counter,
            };
        }
        let unit = metadata
            .map(|metadata| metadata.unit.as_str())
            .filter(|unit| !unit.is_empty());
        let ending = base.rsplit('_').next().unwrap_or_default();
        let word = unit.unwrap_or(ending);
        let ucum = UNITS
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, ucum)| *ucum);
        MetricIdentity {
            name,
            description: metadata.map_or("", |metadata| metadata.help.as_str()),
            unit: ucum.or(unit).unwrap_or_default(),
            is_counter,
        }
    }
}

impl Series {
    /// Returns the labels, including the name of the metric.
    pub(super) fn into_labels(self) -> BTreeMap<String, String> {
        self.metric
    }

    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        self.metric.clone()
    }

    /// Returns the same series without samples.
    pub(super) fn without_samples(&self) -> Self {
        Self {
            metric: self.metric.clone(),
            values: Vec::new(),
            histograms: Vec::new(),
        }
    }

    /// Appends later samples; samples at the border that the series already has are skipped.
    pub(super) fn append(&mut self, later: Self) {
        let last = self.values.last().map_or(f64::NEG_INFINITY, |(time, _)| *time);
        self.values
            .extend(later.values.into_iter().filter(|(time, _)| *time > last));
        self.histograms.extend(later.histograms);
    }

    /// Returns a problem if the series has native histograms, which are not converted.
    pub(super) fn problem(&self) -> Option<String> {
        let count = self.histograms.len();
        (count > 0).then(|| {
            let name = self.name();
            format!("{count} native histograms of {name} are left out; ask for histogram_quantile(0.5, {name}) instead")
        })
    }

    fn name(&self) -> &str {
        self.metric.get(NAME).map_or("value", String::as_str)
    }

    fn label(&self, name: &str) -> &str {
        self.metric.get(name).map_or("", String::as_str)
    }

    /// Encodes a `MetricsData` message, or returns `None` if the series has no samples.
    pub(super) fn encode(
        &self,
        known: &MetadataByName,
        resource: &impl Fn(&str, &str) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if self.values.is_empty() {
            return None;
        }
        let (job, instance) = (self.label(JOB), self.label(INSTANCE));
        let resource = resource(job, instance).unwrap_or_else(|| own_resource(job, instance));
        let scope_metrics = tag::message(2, self.metric(known).as_slice());
        let mut resource_metrics = tag::message(1, &resource);
        resource_metrics.delimited(2, scope_metrics.as_slice());
        Some(tag::message(1, resource_metrics.as_slice()).into_vec())
    }

    /// Encodes a `Metric` message.
    fn metric(&self, known: &MetadataByName) -> Buffer {
        let about = known.about(self.name());
        let mut data = self.points();
        if about.is_counter {
            data.uint(2, CUMULATIVE);
            data.uint(3, 1);
        }
        let mut metric = Buffer::default();
        metric.text(1, about.name);
        metric.text(2, about.description);
        metric.text(3, about.unit);
        metric.delimited(if about.is_counter { 7 } else { 5 }, data.as_slice());
        metric
    }

    /// Encodes the samples as `NumberDataPoint` messages in field 1.
    fn points(&self) -> Buffer {
        let mut attributes = Buffer::default();
        for (key, value) in &self.metric {
            if ![NAME, JOB, INSTANCE].contains(&key.as_str()) {
                tag::text(7, key, value, &mut attributes);
            }
        }
        let mut points = Buffer::default();
        for (seconds, value) in &self.values {
            let Ok(value) = value.parse::<f64>() else { continue };
            let mut point = Buffer::default();
            point.append(attributes.as_slice());
            point.fixed64(3, (seconds * 1000.0).round() as u64 * 1_000_000);
            point.double(4, value);
            points.delimited(1, point.as_slice());
        }
        points
    }
}

/// Returns the resource of a target: the reverse of Prometheus's own rule for OTLP (`job` is the service's name, after
/// its namespace and a slash if it has a namespace).
fn own_resource(job: &str, instance: &str) -> Vec<u8> {
    let mut out = Buffer::default();
    let (namespace, name) = job.split_once('/').unwrap_or(("", job));
    for (key, value) in [
        ("service.namespace", namespace),
        (attribute::SERVICE_NAME.name, name),
        (attribute::SERVICE_INSTANCE_ID.name, instance),
    ] {
        if !value.is_empty() {
            tag::text(1, key, value, &mut out);
        }
    }
    out.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_otlp::{Signal, json};

    fn otlp(series: &str, metadata: &str) -> String {
        let series: Series = serde_json::from_str(series).expect("the series is JSON");
        let known: HashMap<String, Metadata> = serde_json::from_str(metadata).expect("the metadata is JSON");
        let bytes = series
            .encode(&MetadataByName::new(known.into_iter()), &|_, _| None)
            .expect("there are samples");
        let mut out = Vec::new();
        json::encode(Signal::Metrics, &bytes, &mut out).expect("a message is OTLP");
        String::from_utf8(out).expect("OTLP/JSON is UTF-8")
    }

    #[test]
    fn registry_metric_gets_its_original_name_and_unit_back() {
        let text = otlp(
            r#"{"metric":{"__name__":"train_step_duration_seconds_sum","job":"ml/trainer","instance":"i"},"values":[[1.5,"2"]]}"#,
            "{}",
        );
        assert!(
            text.contains(r#""name":"train_step_duration_seconds_sum","unit":"s","sum""#),
            "{text}"
        );
        let text = otlp(
            r#"{"metric":{"__name__":"train_loss","job":"ml/trainer","instance":"i","rank":"3"},"values":[[1795220320.125,"NaN"],[1795220321.125,"+Inf"]]}"#,
            "{}",
        );
        for part in [
            r#"{"key":"service.namespace","value":{"stringValue":"ml"}},{"key":"service.name","value":{"stringValue":"trainer"}}"#,
            r#""name":"train.loss""#,
            r#""attributes":[{"key":"rank","value":{"stringValue":"3"}}]"#,
            r#""timeUnixNano":"1795220320125000000","asDouble":"NaN""#,
            r#""asDouble":"Infinity""#,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn unit_is_derived_from_the_metadata_or_the_metric_name() {
        let series = |name: &str| format!(r#"{{"metric":{{"__name__":"{name}"}},"values":[[1,"1"]]}}"#);
        let counter = otlp(
            &series("node_disk_read_bytes_total"),
            r#"{"node_disk_read_bytes_total":{"type":"counter","help":"Read.","unit":""}}"#,
        );
        assert!(
            counter.contains(r#""description":"Read.","unit":"By","sum""#)
                && counter.contains(r#""isMonotonic":true"#),
            "{counter}"
        );
        let gauge = otlp(
            &series("temp_celsius"),
            r#"{"temp_celsius":{"type":"gauge","unit":"celsius"}}"#,
        );
        assert!(gauge.contains(r#""unit":"Cel","gauge""#), "{gauge}");
        let plain = otlp(&series("up"), "{}");
        assert!(plain.contains(r#""name":"up","gauge""#), "{plain}");
    }

    #[test]
    fn samples_shared_by_two_adjacent_responses_are_deduplicated() {
        let read = |text: &str| serde_json::from_str::<Series>(text).expect("the series is JSON");
        let mut first = read(r#"{"metric":{},"values":[[1,"a"],[2,"b"]]}"#);
        first.append(read(r#"{"metric":{},"values":[[2,"b"],[3,"c"]]}"#));
        let times: Vec<f64> = first.values.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [1.0, 2.0, 3.0]);
    }
}
