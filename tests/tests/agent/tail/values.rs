//! Items without their times: a log without timestamps gets the time of its reading, which always differs.

use std::collections::BTreeMap;

use pulsetrain_tests::{Items, otlp::text_of};
use serde_json::{Map, Value};

/// Counts points and log records by run, name, attributes and value.
pub(crate) fn values(items: &Items) -> BTreeMap<String, usize> {
    let points = items.of_kind("point").into_iter().map(point);
    let logs = items.of_kind("log").into_iter();
    let logs = logs.map(|item| format!("{} {}", run(item), timeless(&item["log"])));
    let mut counts = BTreeMap::new();
    for value in points.chain(logs) {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

/// Panics if a value is missing on one side, or occurs less often. Returns the number of exemplars on both sides.
#[track_caller]
pub(crate) fn assert_same_values(found: &Items, expected: &Items) -> usize {
    let exemplars = assert_same_exemplars(found, expected);
    let (found, expected) = (values(found), values(expected));
    let shown = |these: &BTreeMap<String, usize>, those: &BTreeMap<String, usize>| {
        let other = these
            .iter()
            .filter(|(value, count)| those.get(*value).is_none_or(|there| there < *count));
        let lines: Vec<String> = other.map(|(value, count)| format!("{count}x {value}")).collect();
        (
            lines.len(),
            lines.iter().take(4).cloned().collect::<Vec<_>>().join("\n"),
        )
    };
    let (extra, missing) = (shown(&found, &expected), shown(&expected, &found));
    assert!(
        extra.0 + missing.0 == 0,
        "{} too many:\n{}\n{} missing:\n{}",
        extra.0,
        extra.1,
        missing.0,
        missing.1
    );
    exemplars
}

/// Panics if a point has different exemplars on both sides, and returns the number of exemplars on both sides.
#[track_caller]
fn assert_same_exemplars(found: &Items, expected: &Items) -> usize {
    let (found, expected) = (exemplars(found), exemplars(expected));
    let on_both = found.iter().filter_map(|(point, exemplars)| {
        let others = expected.get(point)?;
        assert_eq!(exemplars, others, "the exemplars of {point}");
        Some(exemplars.len())
    });
    on_both.sum()
}

/// Returns the exemplars of each point that has any, by the point's content.
fn exemplars(items: &Items) -> BTreeMap<String, Vec<String>> {
    let mut exemplars = BTreeMap::<_, Vec<_>>::new();
    for item in items.of_kind("point") {
        let here = item["point"]["exemplars"].as_array().into_iter().flatten();
        let here: Vec<_> = here.map(|exemplar| timeless(exemplar).to_string()).collect();
        if !here.is_empty() {
            exemplars.entry(point(item)).or_default().extend(here);
        }
    }
    exemplars.values_mut().for_each(|all| all.sort());
    exemplars
}

/// Returns the content of a point.
fn point(item: &Value) -> String {
    let name = &item["metric"]["name"];
    format!("{name} {} {}", run(item), timeless(&item["point"]))
}

fn run(item: &Value) -> &str {
    text_of(&item["resource"], "service.instance.id").expect("every resource has an instance")
}

/// Exemplars are excluded: they refer to spans, and a line without a timestamp makes a span only if it is read while it is
/// written.
fn timeless(item: &Value) -> Value {
    let fields = item.as_object().expect("an item is an object");
    let printed = fields
        .iter()
        .filter(|(key, _)| !key.contains("UnixNano") && *key != "exemplars");
    Value::Object(
        printed
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<Map<_, _>>(),
    )
}
