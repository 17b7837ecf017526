//! The points and events of OTLP/JSON.

use std::{collections::BTreeMap, fs, path::Path};

use pulsetrain_tests::otlp::{below, list, metrics};
use serde_json::Value;

/// A point or an event.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The name of the metric or the event.
    pub(crate) name: String,
    /// Its attributes.
    pub(crate) attributes: BTreeMap<String, String>,
    /// The unit of the metric.
    pub(crate) unit: String,
    /// The instrument of the metric, in the terms of the conventions; empty for an event.
    pub(crate) instrument: &'static str,
    /// The type of the value, in the terms of the conventions.
    pub(crate) value_type: &'static str,
    /// The value; the count for a histogram, NaN for an event.
    pub(crate) value: f64,
    /// The sum of a histogram.
    pub(crate) sum: f64,
    /// The buckets of a histogram.
    pub(crate) histogram: Option<Histogram>,
    /// The start time, in Unix nanoseconds.
    pub(crate) start: u64,
    /// The time of the measurement, in Unix nanoseconds.
    pub(crate) time: u64,
    /// Whether it only ends its series.
    pub(crate) ends: bool,
}

/// The buckets of a histogram.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// The bounds between the buckets.
    pub(crate) bounds: Vec<f64>,
    /// The count of each bucket.
    pub(crate) counts: Vec<f64>,
}

impl Point {
    /// Returns whether it belongs to that metric and has all of these attributes.
    pub(crate) fn is(&self, name: &str, attributes: &[(&str, &str)]) -> bool {
        let has = |(key, value): &(&str, &str)| self.attributes.get(*key).is_some_and(|own| own == value);
        self.name == name && attributes.iter().all(has)
    }

    /// Returns an identifier of its series.
    pub(crate) fn series(&self) -> String {
        format!("{} {:?}", self.name, self.attributes)
    }
}

/// Returns the points in the complete lines of a file after an offset, and the offset after those lines.
pub(crate) fn read(path: &Path, from: usize) -> (Vec<Point>, usize) {
    let text = fs::read(path).unwrap_or_default();
    let new = text.get(from..).unwrap_or_default();
    let complete = new
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let lines = new[..complete]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let messages = lines.map(|line| serde_json::from_slice(line).expect("a line is OTLP/JSON"));
    (
        messages.flat_map(|message: Value| points_of(&message)).collect(),
        from + complete,
    )
}

/// Returns the points and events of a message.
pub(crate) fn points_of(message: &Value) -> Vec<Point> {
    let mut points = Vec::new();
    for metric in metrics(message) {
        for kind in ["gauge", "sum", "histogram"] {
            let instrument = match (kind, metric[kind]["isMonotonic"] == true) {
                ("sum", true) => "counter",
                ("sum", false) => "updowncounter",
                (kind, _) => kind,
            };
            points.extend(list(&metric[kind]["dataPoints"]).iter().map(|point| Point {
                unit: text(&metric["unit"]),
                instrument,
                histogram: (kind == "histogram").then(|| histogram_of(point)),
                ..point_of(text(&metric["name"]), point)
            }));
        }
    }
    let records = below(message, ["resourceLogs", "scopeLogs", "logRecords"]);
    points.extend(records.map(|record| point_of(text(&record["eventName"]), record)));
    points
}

fn point_of(name: String, point: &Value) -> Point {
    let attribute = |attribute: &Value| {
        let value = attribute["value"]
            .as_object()
            .and_then(|value| value.values().next());
        (text(&attribute["key"]), value.map(text).unwrap_or_default())
    };
    let value = ["asDouble", "asInt", "count"]
        .iter()
        .find_map(|field| point.get(*field));
    let time = |field: &str| text(&point[field]).parse().unwrap_or_default();
    Point {
        name,
        attributes: list(&point["attributes"]).iter().map(attribute).collect(),
        unit: String::new(),
        instrument: "",
        value_type: match (point.get("asInt"), point.get("asDouble")) {
            (Some(_), _) => "int",
            (_, Some(_)) => "double",
            _ => "",
        },
        value: value
            .and_then(|value| text(value).parse().ok())
            .unwrap_or(f64::NAN),
        sum: point["sum"].as_f64().unwrap_or(f64::NAN),
        histogram: None,
        start: time("startTimeUnixNano"),
        time: time("timeUnixNano"),
        ends: point["flags"] == 1,
    }
}

fn histogram_of(point: &Value) -> Histogram {
    let number = |value: &Value| text(value).parse().expect("a histogram is of numbers");
    Histogram {
        bounds: list(&point["explicitBounds"]).iter().map(number).collect(),
        counts: list(&point["bucketCounts"]).iter().map(number).collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
