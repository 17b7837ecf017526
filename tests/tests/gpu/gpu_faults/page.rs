//! Our names in Prometheus: a second implementation, independent of the translator under test.

use std::collections::BTreeMap;

use pulsetrain_tests::http::metrics;

use crate::point::Point;

/// Returns the Prometheus name of a point's metric.
pub(crate) fn name_of(point: &Point) -> String {
    let mut name = point.name.replace('.', "_");
    let unit = match point.unit.as_str() {
        // Only gauges have the suffix `ratio` in Prometheus.
        "1" if point.instrument != "gauge" => "",
        "1" => "ratio",
        "W" => "watts",
        "J" => "joules",
        "By" => "bytes",
        "By/s" => "bytes_per_second",
        "s" => "seconds",
        "Cel" => "celsius",
        "Hz" => "hertz",
        "{revolution}/s" | "{flop}/s" => "per_second",
        unit if unit.starts_with('{') => "",
        unit => panic!("{} has the unknown unit {unit:?}", point.name),
    };
    if !unit.is_empty() && !name.ends_with(unit) {
        name = format!("{name}_{unit}");
    }
    if point.histogram.is_some() {
        name.push_str("_count");
    }
    if point.instrument == "counter" && !name.ends_with("_total") {
        name.push_str("_total");
    }
    name
}

/// Returns a selector of a series by attributes of a point.
pub(crate) fn selector(name: &str, attributes: &[(&str, &str)]) -> String {
    let labels = attributes
        .iter()
        .map(|(key, value)| format!("{}=\"{value}\"", label(key)));
    format!("{name}{{{}}}", labels.collect::<Vec<_>>().join(","))
}

/// Returns the Prometheus label of an attribute.
pub(crate) fn label(attribute: &str) -> String {
    attribute.replace('.', "_")
}

/// Returns the page in text, over a new connection, as in Prometheus' first scrape.
pub(crate) fn fetch(port: u16) -> String {
    metrics(port).expect("the page is answered in time")
}

/// Returns the samples of a page in text: name and labels, and the value.
pub(crate) fn samples(page: &str) -> BTreeMap<(String, BTreeMap<String, String>), f64> {
    let lines = page
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(sample).collect()
}

fn sample(line: &str) -> ((String, BTreeMap<String, String>), f64) {
    let (series, value) = line.rsplit_once(' ').expect("a line ends with its value");
    let value = value.replace("Inf", "inf").parse().expect("a value is a number");
    let Some((name, labels)) = series.split_once('{') else {
        return ((series.to_owned(), BTreeMap::new()), value);
    };
    let labels = labels.strip_suffix('}').expect("labels are in braces");
    let pairs = labels.split("\",").filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (key, value) = pair.split_once("=\"").expect("a label is quoted");
        (
            key.to_owned(),
            value.strip_suffix('"').unwrap_or(value).to_owned(),
        )
    });
    ((name.to_owned(), pairs.collect()), value)
}
