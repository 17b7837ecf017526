//! The content of an OTLP/JSON file as a multiset of points, spans and log records, each with its resource and scope.
//!
//! The comparison ignores batching, grouping and order, and nothing else. It uses plain serde_json, so that it is independent
//! of the code under test.

mod canonical;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::Path,
};

use serde_json::{Map, Value};

use canonical::{canonical, is_default};

use crate::otlp::{list, text_of, time};

/// The names of the nested lists in OTLP/JSON (resource, scope, item), and the name of one item here.
const SIGNALS: [[&str; 4]; 3] = [
    ["resourceSpans", "scopeSpans", "spans", "span"],
    ["resourceMetrics", "scopeMetrics", "metrics", "point"],
    ["resourceLogs", "scopeLogs", "logRecords", "log"],
];

const POINT_KINDS: [&str; 5] = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"];

/// Items in canonical form.
#[derive(Clone, Debug, Default)]
pub struct Items(Vec<Value>);

impl Items {
    /// Reads a file of JSON lines.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text)
    }

    /// Reads the complete lines of a file that is being written; returns no items if the file does not exist. The items are in
    /// the order of the file, as tests read it again and again until they are complete.
    pub fn read_complete_lines(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        Self::parse_unsorted(&text[..complete])
    }

    /// Reads JSON lines; panics if a line is not OTLP/JSON.
    pub fn parse(text: &str) -> Self {
        let Self(mut items) = Self::parse_unsorted(text);
        items.sort_by_cached_key(Value::to_string);
        Self(items)
    }

    fn parse_unsorted(text: &str) -> Self {
        let mut items = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let message = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
            flatten(&message, &mut items);
        }
        Self(items)
    }

    /// Returns the number of points, spans and log records together.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of points of each metric.
    pub fn points_by_metric(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for name in self.0.iter().filter_map(|item| item["metric"]["name"].as_str()) {
            *counts.entry(name).or_default() += 1;
        }
        counts
    }

    /// Returns all items that have a `point`, a `span` or a `log`, with their resource and scope.
    pub fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.0.iter().filter(|item| item.get(kind).is_some()).collect()
    }

    /// Returns the points of a metric, with their resource and scope.
    pub fn points_of(&self, metric: &str) -> Vec<&Value> {
        let mut points = self.of_kind("point");
        points.retain(|item| item["metric"]["name"] == metric);
        points
    }

    /// Returns the spans with this name, with their resource and scope.
    pub fn spans_of(&self, name: &str) -> Vec<&Value> {
        let mut spans = self.of_kind("span");
        spans.retain(|item| item["span"]["name"] == name);
        spans
    }

    /// Returns the number of spans of each trace, by its id.
    pub fn spans_by_trace(&self) -> BTreeMap<String, usize> {
        let mut traces = BTreeMap::new();
        for item in self.of_kind("span") {
            let id = item["span"]["traceId"].as_str().expect("a span has a trace");
            *traces.entry(id.to_owned()).or_default() += 1;
        }
        traces
    }

    /// Returns the points of a metric as (Unix nanoseconds, value), by time; the value of a histogram is its sum.
    pub fn values(&self, metric: &str) -> Vec<(u64, f64)> {
        let points = self.points_of(metric).into_iter();
        let mut values: Vec<_> = points
            .map(|item| (time(&item["point"], "timeUnixNano"), number(&item["point"])))
            .collect();
        values.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        values
    }

    /// Returns the items of one service, and those of all others.
    pub fn divide_by_service(self, service: &str) -> (Self, Self) {
        let of_service = |item: &Value| text_of(&item["resource"], "service.name") == Some(service);
        let (these, others) = self.0.into_iter().partition(of_service);
        (Self(these), Self(others))
    }

    /// Separates the points that only end their series (flag "no recorded value") from the others.
    pub fn divide_ends(self) -> (Self, Self) {
        let is_end = |item: &Value| item["point"]["flags"] == 1;
        let (ends, others) = self.0.into_iter().partition(is_end);
        (Self(ends), Self(others))
    }

    /// Returns the items without the derived ones.
    #[must_use]
    pub fn without_derived(self) -> Self {
        self.changed(|item| item["scope"]["name"] != "pulsetrain.derive", |_| {})
    }

    /// Returns the items that `is_wanted` selects, each modified by `change`.
    pub fn changed(self, is_wanted: impl Fn(&Value) -> bool, change: impl Fn(&mut Value)) -> Self {
        let mut items: Vec<Value> = self.0.into_iter().filter(is_wanted).collect();
        items.iter_mut().for_each(change);
        items.sort_by_cached_key(Value::to_string);
        Self(items)
    }

    /// Returns the items without the name of the host that read them.
    pub fn without_hosts(self) -> Self {
        self.changed(
            |_| true,
            |item| item["resource"] = without_host(item["resource"].take()),
        )
    }

    /// Panics with the first items that `other` has and `self` lacks, or has less often.
    pub fn assert_holds(&self, other: &Self) {
        let missing = other.without(self);
        assert!(
            missing.is_empty(),
            "{} items are missing, such as\n{}",
            missing.len(),
            missing[0]
        );
    }

    /// Returns the distinct items.
    pub fn distinct(&self) -> BTreeSet<String> {
        self.0.iter().map(comparable).collect()
    }

    /// Panics with the first differences if the two multisets are not equal.
    pub fn assert_same(&self, other: &Self) {
        if let Some(difference) = self.difference(other) {
            panic!("{difference}");
        }
    }

    /// Returns the first differences of the two multisets, or `None` if they are equal.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (missing, extra) = (self.without(other), other.without(self));
        if missing.is_empty() && extra.is_empty() {
            return None;
        }
        let shown = |items: &[String]| {
            items
                .iter()
                .take(3)
                .map(|item| format!("\n    {item}"))
                .collect::<String>()
        };
        Some(format!(
            "{} items only on the left:{}\n{} items only on the right:{}",
            missing.len(),
            shown(&missing),
            extra.len(),
            shown(&extra)
        ))
    }

    /// Returns the items that `self` has more often than `other`.
    fn without(&self, other: &Self) -> Vec<String> {
        let mut counts = BTreeMap::<String, usize>::new();
        for item in &other.0 {
            *counts.entry(comparable(item)).or_default() += 1;
        }
        let mut left = Vec::new();
        for item in self.0.iter().map(comparable) {
            match counts.get_mut(&item) {
                Some(count) if *count > 0 => *count -= 1,
                _ => left.push(item),
            }
        }
        left
    }
}

/// Returns an item as text without the host name: a followed log has it in its resource, an imported one does not.
fn comparable(item: &Value) -> String {
    let mut text = String::from("{");
    for (key, value) in item.as_object().expect("an item is an object") {
        let comma = if text.len() > 1 { "," } else { "" };
        let _ = match value["attributes"].as_array().filter(|_| key == "resource") {
            // A message without a time of its own has that of its reading, which differs.
            None if key == "log" && value.get("timeUnixNano").is_none() => {
                let mut record = value.clone();
                record
                    .as_object_mut()
                    .expect("a record is an object")
                    .remove("observedTimeUnixNano");
                write!(text, "{comma}\"{key}\":{record}")
            }
            None => write!(text, "{comma}\"{key}\":{value}"),
            Some(_) => write!(text, "{comma}\"{key}\":{}", without_host(value.clone())),
        };
    }
    text + "}"
}

fn without_host(mut resource: Value) -> Value {
    if let Some(attributes) = resource["attributes"].as_array_mut() {
        attributes.retain(|attribute| attribute["key"] != "host.name");
    }
    resource
}

fn flatten(message: &Value, items: &mut Vec<Value>) {
    for key in message.as_object().expect("a line is an object").keys() {
        assert!(
            SIGNALS.iter().any(|signal| signal[0] == key),
            "{key} is no signal of OTLP"
        );
    }
    for [resources, scopes, records, kind] in SIGNALS {
        for resource in list(&message[resources]) {
            for scope in list(&resource[scopes]) {
                let around = Around::new(resource, scope);
                for record in list(&scope[records]) {
                    match kind {
                        "point" => around.push_points(record, items),
                        _ => items.push(around.item([(kind, canonical(record))])),
                    }
                }
            }
        }
    }
}

/// The resource and the scope of items, in canonical form.
struct Around([(&'static str, Value); 4]);

impl Around {
    fn new(resource: &Value, scope: &Value) -> Self {
        Self([
            ("resource", canonical(&resource["resource"])),
            ("resourceSchema", resource["schemaUrl"].clone()),
            ("scope", canonical(&scope["scope"])),
            ("scopeSchema", scope["schemaUrl"].clone()),
        ])
    }

    fn push_points(&self, metric: &Value, items: &mut Vec<Value>) {
        for kind in POINT_KINDS {
            let points = list(&metric[kind]["dataPoints"]);
            if points.is_empty() {
                continue;
            }
            let head = head(metric, kind);
            for point in points {
                items.push(self.item([("metric", head.clone()), ("point", canonical(point))]));
            }
        }
    }

    fn item<const N: usize>(&self, parts: [(&'static str, Value); N]) -> Value {
        let fields: BTreeMap<_, _> = self.0.iter().cloned().chain(parts).collect();
        let kept = fields.into_iter().filter(|(_, value)| !is_default(value));
        Value::Object(kept.map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

/// Returns a metric without its points, with the name of their kind.
fn head(metric: &Value, kind: &str) -> Value {
    let mut head = Map::new();
    for (key, value) in metric.as_object().expect("a metric is an object") {
        let value = match value.as_object().filter(|_| key == kind) {
            Some(fields) => {
                let others = fields.iter().filter(|(key, _)| *key != "dataPoints");
                others.map(|(key, value)| (key.clone(), value.clone())).collect()
            }
            None => value.clone(),
        };
        head.insert(key.clone(), value);
    }
    head.insert("kind".to_owned(), kind.into());
    canonical(&Value::Object(head))
}

fn number(point: &Value) -> f64 {
    let text = ["asDouble", "asInt", "sum"]
        .iter()
        .find_map(|key| point[key].as_str());
    text.and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("no number in {point}"))
}
