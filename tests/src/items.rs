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

use canonical::canonical;

/// The names of the nested lists in OTLP/JSON (resource, scope, item), and the name of one item here.
const SIGNALS: [[&str; 4]; 3] = [
    ["resourceSpans", "scopeSpans", "spans", "span"],
    ["resourceMetrics", "scopeMetrics", "metrics", "point"],
    ["resourceLogs", "scopeLogs", "logRecords", "log"],
];

const POINT_KINDS: [&str; 5] = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"];

/// Items in canonical form, sorted.
#[derive(Clone, Debug, Default)]
pub struct Items(Vec<Value>);

impl Items {
    /// Reads a file of JSON lines.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text)
    }

    /// Reads the complete lines of a file that is being written; returns no items if the file does not exist.
    pub fn read_complete_lines(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        Self::parse(&text[..complete])
    }

    /// Reads JSON lines; panics if a line is not OTLP/JSON.
    pub fn parse(text: &str) -> Self {
        let mut items = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let message = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
            flatten(&message, &mut items);
        }
        items.sort_by_cached_key(Value::to_string);
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
        let points = self
            .of_kind("point")
            .into_iter()
            .filter(|item| item["metric"]["name"] == metric);
        let mut values: Vec<_> = points
            .map(|item| (time(&item["point"]), number(&item["point"])))
            .collect();
        values.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        values
    }

    /// Returns the items of one service, and those of all others.
    pub fn divide_by_service(self, service: &str) -> (Self, Self) {
        let of_service = |item: &Value| {
            list(&item["resource"], "attributes").iter().any(|attribute| {
                attribute["key"] == "service.name" && attribute["value"]["stringValue"] == service
            })
        };
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
        let (missing, extra) = (self.without(other), other.without(self));
        let shown = |items: &[String]| {
            items
                .iter()
                .take(3)
                .map(|item| format!("\n    {item}"))
                .collect::<String>()
        };
        assert!(
            missing.is_empty() && extra.is_empty(),
            "{} items only on the left:{}\n{} items only on the right:{}",
            missing.len(),
            shown(&missing),
            extra.len(),
            shown(&extra)
        );
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
        for resource in list(message, resources) {
            for scope in list(resource, scopes) {
                for record in list(scope, records) {
                    let around = Around { resource, scope };
                    match kind {
                        "point" => around.push_points(record, items),
                        _ => items.push(around.item([(kind, record.clone())])),
                    }
                }
            }
        }
    }
}

/// The resource and the scope of an item.
struct Around<'a> {
    resource: &'a Value,
    scope: &'a Value,
}

impl Around<'_> {
    fn push_points(&self, metric: &Value, items: &mut Vec<Value>) {
        for kind in POINT_KINDS {
            for point in list(&metric[kind], "dataPoints") {
                let mut head = metric.clone();
                head["kind"] = kind.into();
                head[kind]["dataPoints"].take();
                items.push(self.item([("metric", head), ("point", point.clone())]));
            }
        }
    }

    fn item<const N: usize>(&self, parts: [(&str, Value); N]) -> Value {
        let around = [
            ("resource", self.resource["resource"].clone()),
            ("resourceSchema", self.resource["schemaUrl"].clone()),
            ("scope", self.scope["scope"].clone()),
            ("scopeSchema", self.scope["schemaUrl"].clone()),
        ];
        let fields = around
            .into_iter()
            .chain(parts)
            .map(|(key, value)| (key.to_owned(), value));
        canonical(&Value::Object(fields.collect::<Map<_, _>>()))
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn time(point: &Value) -> u64 {
    let text = point["timeUnixNano"]
        .as_str()
        .unwrap_or_else(|| panic!("no time in {point}"));
    text.parse().unwrap_or_else(|error| panic!("{error}: {point}"))
}

fn number(point: &Value) -> f64 {
    let text = ["asDouble", "asInt", "sum"]
        .iter()
        .find_map(|key| point[key].as_str());
    text.and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("no number in {point}"))
}

/// Returns the number of spans in a trace that a backend returned in OTLP/JSON.
pub fn spans_in_trace(trace: &Value) -> usize {
    let lists = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let resources = lists(trace, "resourceSpans");
    let scopes = resources
        .iter()
        .flat_map(|resource| lists(resource, "scopeSpans"));
    scopes.map(|scope| lists(&scope, "spans").len()).sum()
}
