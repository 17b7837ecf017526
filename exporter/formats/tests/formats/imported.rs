//! Imports a sample and parses the output with a JSON parser.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    env, fs, mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use pulsetrain_formats::{LogFormat, LogReader, Mapping, ReadLimits, ReadTime, detect, format_by_name};
use pulsetrain_otlp::{UnixNanos, frames, write::Encoded};
use pulsetrain_record::{Counts, ParseReport, Recorder, Run, SkipReason};
use serde_json::Value;

/// The time near which every sample was written: 2026-11-21 00:00:00 UTC.
pub(crate) const NEAR: u64 = 1_795_219_200_000_000_000;

/// A point of any metric.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) metric: String,
    /// The value, or the cumulative sum of a histogram.
    pub(crate) value: f64,
    pub(crate) attributes: BTreeMap<String, String>,
    /// In nanoseconds since 1970.
    pub(crate) time: u64,
    /// Whether the value is cumulative.
    pub(crate) is_sum: bool,
    /// Whether the values are integers.
    pub(crate) is_integer: bool,
}

impl Point {
    /// Returns the series of the point, such as `rl.trajectory_reward{rl.statistic=mean}`.
    pub(crate) fn series(&self) -> String {
        let attributes = self
            .attributes
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        let attributes: Vec<String> = attributes.collect();
        match attributes.is_empty() {
            true => self.metric.clone(),
            false => format!("{}{{{}}}", self.metric, attributes.join(",")),
        }
    }
}

/// Returns the values of points in order of time; of a sum or a histogram, the increases.
fn increases<'p>(points: impl Iterator<Item = &'p Point>) -> Vec<f64> {
    let mut before = 0.0;
    let increase = |point: &Point| match point.is_sum {
        true => point.value - mem::replace(&mut before, point.value),
        false => point.value,
    };
    points.map(increase).collect()
}

/// The output of an import.
pub(crate) struct Imported {
    pub(crate) skipped: ParseReport,
    pub(crate) points: Vec<Point>,
    pub(crate) spans: Vec<Value>,
    pub(crate) events: Vec<Value>,
}

/// The bytes of a file of the corpus.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    fs::read(folder("corpus").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The text of a file of the corpus.
pub(crate) fn sample_text(name: &str) -> String {
    String::from_utf8_lossy(&sample(name)).into_owned()
}

/// Returns all logs of the corpus by their paths. Lists of keys are not logs.
pub(crate) fn all_samples() -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder("corpus")];
    while let Some(folder_path) = folders.pop() {
        for entry in fs::read_dir(folder_path).expect("the corpus is a folder") {
            let path = entry.expect("the corpus can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder("corpus")).expect("it is inside");
                if !name.ends_with("keys.txt") {
                    names.push(name.to_string_lossy().into_owned());
                }
            }
        }
    }
    names.sort();
    names
}

/// Returns the first bytes of an input, from which its format is recognised.
pub(crate) fn head(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(64 << 10)]
}

/// Returns the samples of known formats: their names, their bytes and their formats.
pub(crate) fn recognised() -> impl Iterator<Item = (String, Vec<u8>, &'static LogFormat)> {
    all_samples().into_iter().filter_map(|name| {
        let bytes = sample(&name);
        let (format, _) = detect(&name, head(&bytes)).ok()?;
        Some((name, bytes, format))
    })
}

pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests")
        .join(name)
}

impl Imported {
    /// Imports a sample that must be detected as `format`, and compares it with its golden file.
    pub(crate) fn new(format: &str, name: &str) -> Self {
        let bytes = sample(name);
        let (found, sign) = detect(name, head(&bytes)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.name, format, "{name} was recognised by {sign}");
        Self::by(format, name)
    }

    /// Imports a sample as a format that is not detected, and compares it with its golden file.
    pub(crate) fn by(format: &str, name: &str) -> Self {
        Self::read(format, name, |text| {
            is_golden(folder("golden").join(format!("{name}.jsonl")), text);
        })
    }

    /// Imports a sample without its golden file.
    pub(crate) fn without_golden(format: &str, name: &str) -> Self {
        Self::read(format, name, |_| ())
    }

    /// Imports bytes.
    pub(crate) fn from_bytes(format: &LogFormat, bytes: &[u8]) -> Self {
        Self::from_bytes_by(format, &Arc::default(), bytes)
    }

    /// Imports bytes with a mapping.
    pub(crate) fn from_bytes_by(format: &LogFormat, mapping: &Arc<Mapping>, bytes: &[u8]) -> Self {
        let (batches, _, skipped) = read_mapped(format, mapping, bytes, 0, CHUNK);
        Self::parse(&json(&batches), skipped)
    }

    fn read(format: &str, name: &str, check: impl FnOnce(&str)) -> Self {
        let format = format_by_name(format).expect("the format has a row");
        let (batches, _, skipped) = read_in_chunks(format, &sample(name), start_in_name(name), CHUNK);
        let text = json(&batches);
        check(&text);
        Self::parse(&text, skipped)
    }

    /// Imports a text as a format.
    pub(crate) fn from_text(format: &str, text: &str) -> Self {
        let format = format_by_name(format).expect("the format has a row");
        Self::from_bytes(format, text.as_bytes())
    }

    fn parse(text: &str, skipped: ParseReport) -> Self {
        let mut imported = Self {
            skipped,
            points: Vec::new(),
            spans: Vec::new(),
            events: Vec::new(),
        };
        text.lines().for_each(|line| imported.add_json_line(line));
        imported
    }

    /// Returns the values of a metric in order of time; for a histogram or a sum, the increases.
    pub(crate) fn values(&self, metric: &str) -> Vec<f64> {
        self.values_with(metric, &[])
    }

    /// Returns the values of a series such as `rl.trajectory_reward{rl.statistic=mean}`.
    pub(crate) fn series(&self, series: &str) -> Vec<f64> {
        increases(self.points.iter().filter(|point| point.series() == series))
    }

    /// The values of the points that have these attributes.
    pub(crate) fn values_with(&self, metric: &str, attributes: &[(&str, &str)]) -> Vec<f64> {
        let has_all = |point: &&Point| {
            attributes
                .iter()
                .all(|(key, value)| point.attributes.get(*key).is_some_and(|found| found == value))
        };
        let points = self
            .points
            .iter()
            .filter(|point| point.metric == metric)
            .filter(has_all);
        increases(points)
    }

    /// Panics if anything was lost.
    pub(crate) fn assert_no_losses(&self) {
        assert!(!self.skipped.has_losses(), "{:?}", self.skipped.problems());
    }

    /// The names that no table of the format knows.
    pub(crate) fn unknown_names(&self) -> Vec<&str> {
        self.skipped
            .problems()
            .iter()
            .filter(|problem| problem.reason == SkipReason::UnknownName)
            .map(|problem| problem.message.as_str())
            .collect()
    }

    fn add_json_line(&mut self, line: &str) {
        let message: Value = serde_json::from_str(line).expect("a line is JSON");
        for (resources, scopes, items) in [
            ("resourceMetrics", "scopeMetrics", "metrics"),
            ("resourceSpans", "scopeSpans", "spans"),
            ("resourceLogs", "scopeLogs", "logRecords"),
        ] {
            for resource in list(&message[resources]) {
                for item in list(&resource[scopes])
                    .iter()
                    .flat_map(|scope| list(&scope[items]))
                {
                    match items {
                        "metrics" => self.take_metric(item),
                        "spans" => self.spans.push(item.clone()),
                        _ => self.events.push(item.clone()),
                    }
                }
            }
        }
    }

    fn take_metric(&mut self, metric: &Value) {
        for kind in ["gauge", "sum", "histogram"] {
            for point in list(&metric[kind]["dataPoints"]) {
                self.points.push(Point {
                    metric: metric["name"].as_str().expect("a metric has a name").to_owned(),
                    value: number(point),
                    attributes: list(&point["attributes"]).iter().map(attribute).collect(),
                    time: time(point, "timeUnixNano"),
                    is_sum: kind == "histogram" || metric[kind]["isMonotonic"] == true,
                    is_integer: point.get("asInt").is_some(),
                });
            }
        }
    }
}

/// The batches, a line each.
pub(crate) fn json(batches: &[Encoded]) -> String {
    let mut lines = Vec::new();
    for batch in batches {
        frames::append_json_line(batch.signal, &batch.bytes, &mut lines).expect("what we wrote can be read");
    }
    String::from_utf8(lines).expect("JSON is text")
}

/// The attributes of a span or an event, as text.
pub(crate) fn attributes(item: &Value) -> BTreeMap<String, String> {
    list(&item["attributes"]).iter().map(attribute).collect()
}

/// The time at `key` of a span or an event.
pub(crate) fn time(item: &Value, key: &str) -> u64 {
    item[key]
        .as_str()
        .expect("a time is text")
        .parse()
        .expect("a time is a number")
}

/// Returns the time at the end of a name like `trace_1795219880.pb` in nanoseconds, or 0.
fn start_in_name(name: &str) -> u64 {
    let digits = name.strip_suffix(".pb").and_then(|name| name.rsplit('_').next());
    let seconds: Option<u64> = digits.and_then(|digits| digits.parse().ok());
    seconds.unwrap_or_default() * 1_000_000_000
}

pub(crate) fn read(format: &LogFormat, bytes: &[u8]) -> (Vec<Encoded>, Counts, ParseReport) {
    read_in_chunks(format, bytes, 0, CHUNK)
}

/// The usual size of a chunk.
const CHUNK: usize = 4099;

/// Reads a run that began at a time, in chunks of `size` bytes.
pub(crate) fn read_in_chunks(
    format: &LogFormat,
    bytes: &[u8],
    start_unix_nanos: u64,
    size: usize,
) -> (Vec<Encoded>, Counts, ParseReport) {
    read_mapped(format, &Arc::default(), bytes, start_unix_nanos, size)
}

/// Reads a run with a mapping.
fn read_mapped(
    format: &LogFormat,
    mapping: &Arc<Mapping>,
    bytes: &[u8],
    start_unix_nanos: u64,
    size: usize,
) -> (Vec<Encoded>, Counts, ParseReport) {
    let batches = RefCell::new(Vec::new());
    let run = Run {
        id: "golden".to_owned(),
        framework: format.framework.to_owned(),
        name: (format.identify)(bytes).run_name.unwrap_or_default(),
        start_unix_nanos: UnixNanos(start_unix_nanos),
        ..Run::default()
    };
    let mut recorder = Recorder::new(run, |batch| batches.borrow_mut().push(batch));
    let mut reader = LogReader::mapped(format, mapping, ReadLimits::default());
    reader.set_time(ReadTime {
        unix_nanos: UnixNanos(NEAR),
        is_live: false,
    });
    bytes
        .chunks(size)
        .for_each(|chunk| reader.push(chunk, &mut recorder));
    reader.finish(&mut recorder);
    let (counts, skipped) = recorder.finish();
    (batches.into_inner(), counts, skipped)
}

/// The command that writes the golden files and the generated pages.
pub(crate) const WRITE_GOLDEN: &str =
    "UPDATE_GOLDEN=1 cargo test --workspace --all-features --locked --test formats";

/// Panics unless a file has the text. [`WRITE_GOLDEN`] writes it.
pub(crate) fn is_golden(path: impl AsRef<Path>, actual: &str) {
    let path = path.as_ref();
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
        fs::write(path, actual).expect("a golden file can be written");
    }
    let expected = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{}: {error}; write it with `{WRITE_GOLDEN}`", path.display()));
    if expected != actual {
        let at = expected
            .bytes()
            .zip(actual.bytes())
            .take_while(|(expected, actual)| expected == actual)
            .count();
        let around = |text: &str| {
            String::from_utf8_lossy(
                &text.as_bytes()[at.saturating_sub(200).min(text.len())..(at + 200).min(text.len())],
            )
            .into_owned()
        };
        panic!(
            "{} is out of date; write it with `{WRITE_GOLDEN}`. It differs at byte {at}:\n{}\n{}",
            path.display(),
            around(&expected),
            around(actual)
        );
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn attribute(attribute: &Value) -> (String, String) {
    let value = attribute["value"]
        .as_object()
        .and_then(|value| value.values().next());
    let text = match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    (attribute["key"].as_str().unwrap_or_default().to_owned(), text)
}

fn number(point: &Value) -> f64 {
    let value = ["asDouble", "asInt", "sum"]
        .iter()
        .find_map(|key| point.get(*key));
    match value {
        Some(Value::String(text)) => text.parse().expect("a number as text"),
        Some(value) => value.as_f64().expect("a number"),
        None => panic!("no number in {point}"),
    }
}
