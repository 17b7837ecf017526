//! A demo as a user runs it, and the counts in its summary and its file.

use std::{collections::BTreeMap, ffi::OsStr, path::Path, process::Command};

use pulsetrain_tests::{Finished, Items, command};
use serde_json::Value;

/// Returns a demo that ends after a second or two: steps of 20 ms.
pub(crate) fn demo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut demo = command(["demo", "--json"]);
    demo.args(["--rate", "25"]).args(arguments);
    demo
}

/// Runs such a demo until it exits.
pub(crate) fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Finished {
    Finished::run(&mut demo(arguments))
}

/// The counts of a demo: its own items and the derived ones.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) points: u64,
    pub(crate) series: u64,
    pub(crate) spans: u64,
    pub(crate) events: u64,
}

impl Counts {
    /// Returns the counts of the summary.
    pub(crate) fn of_summary(summary: &Value) -> Self {
        let count = |name: &str| {
            let of = |part: &str| summary[part][name].as_u64().expect("the summary counts it");
            of("sent") + of("derived")
        };
        Self {
            points: count("points"),
            series: count("series"),
            spans: count("spans"),
            events: count("events"),
        }
    }

    /// Returns the counts of the items in a file.
    pub(crate) fn of_items(items: &Items) -> Self {
        let count = |kind| items.of_kind(kind).len() as u64;
        Self {
            points: count("point"),
            series: series(items).values().map(|(series, _)| *series as u64).sum(),
            spans: count("span"),
            events: count("log"),
        }
    }
}

/// Returns the number of series and of points of every metric in a file, by name, unit and kind. A series is identified as in
/// Prometheus: by service and instance, and by its own attributes.
pub(crate) fn series(items: &Items) -> BTreeMap<Family, (usize, usize)> {
    let mut families = BTreeMap::<Family, BTreeMap<String, usize>>::new();
    for item in items.of_kind("point") {
        let metric = &item["metric"];
        let kind = metric["kind"].as_str().expect("a metric is of a kind").to_owned();
        let family = Family {
            name: metric["name"].as_str().expect("a metric has a name").to_owned(),
            unit: metric["unit"].as_str().unwrap_or_default().to_owned(),
            kind,
            is_monotonic: metric["sum"]["isMonotonic"] == true,
        };
        let resource = item["resource"]["attributes"].as_array().expect("a list");
        let own = resource
            .iter()
            .filter(|pair| pair["key"] == "service.name" || pair["key"] == "service.instance.id");
        let own: Vec<_> = own.map(|pair| &pair["value"]).collect();
        let key = format!("{own:?} {}", item["point"]["attributes"]);
        *families.entry(family).or_default().entry(key).or_default() += 1;
    }
    let counted = families.into_iter().map(|(family, series)| {
        let points = series.values().sum();
        (family, (series.len(), points))
    });
    counted.collect()
}

/// The properties of a metric that determine its name in Prometheus.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Family {
    name: String,
    unit: String,
    kind: String,
    is_monotonic: bool,
}

impl Family {
    /// Returns the name in Prometheus of the series with one sample per point: for a histogram, the count.
    pub(crate) fn sample_name(&self) -> String {
        use pulsetrain_semconv::{Instrument, prometheus_name};
        let instrument = match (self.kind.as_str(), self.is_monotonic) {
            ("histogram", _) => Instrument::Histogram,
            ("sum", true) => Instrument::Counter,
            ("sum", false) => Instrument::UpDownCounter,
            _ => Instrument::Gauge,
        };
        let name = prometheus_name(&self.name, &self.unit, instrument);
        if self.kind == "histogram" {
            format!("{name}_count")
        } else {
            name
        }
    }
}

/// Checks that a file has the counts of the summary, and returns the counts and the items.
pub(crate) fn same_in_file(finished: &Finished, file: &Path) -> (Counts, Items) {
    let counts = Counts::of_summary(&finished.summary());
    let items = Items::read(file);
    assert_eq!(counts, Counts::of_items(&items));
    (counts, items)
}
