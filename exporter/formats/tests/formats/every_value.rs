//! Every value of every sample arrives once, in our unit and at its own time, or a rule leaves it out.
//!
//! A row of `samples` is a file of the corpus with its reader, its table of series and its number of values.

mod samples;

use std::collections::BTreeMap;

use pulsetrain_record::SkipReason;
use serde_json::Value as Json;

use self::samples::{Log, NO_LOGS, UNKNOWN_TRAINERS, all_logs};
use crate::{
    Imported,
    expected::{ExpectedLog, ExpectedValue, Value},
    imported::{Point, all_samples, attributes, head, sample},
    series::{self, Series},
};

/// Metrics derived from the number of a step.
const OF_STEPS: [&str; 2] = ["train.global_step", "train.steps"];

#[test]
fn every_corpus_log_has_a_row_of_expected_values() {
    let is_no_log = |name: &String| NO_LOGS.iter().any(|(place, ..)| is_at(name, place));
    // The samples of mapping files have expectations in `trainers.rs`.
    let samples = all_samples()
        .into_iter()
        .filter(|name| !name.starts_with("trainers/"));
    let (others, logs): (Vec<String>, Vec<String>) = samples.partition(is_no_log);
    let rows: Vec<&str> = all_logs().iter().map(|log| log.name).collect();
    assert_eq!(logs, rows, "a row a log, in their order");
    for (place, files, _) in NO_LOGS {
        let found = others.iter().filter(|name| is_at(name, place)).count();
        assert_eq!(found, *files, "files at {place}");
    }
}

#[test]
fn the_table_has_the_number_of_values_of_every_sample() {
    for log in all_logs() {
        let expected = (log.reader)(&sample(log.name));
        let rules: Vec<(&str, u64)> = expected
            .left_out
            .iter()
            .map(|(rule, count)| (rule.as_str(), *count))
            .collect();
        assert_eq!(
            (expected.values.len(), rules),
            (log.values, log.left_out),
            "{}",
            log.name
        );
    }
}

#[test]
fn every_sample_value_is_exported_once_in_the_registry_unit() {
    for log in all_logs() {
        arrives(&log);
    }
}

#[test]
fn files_that_are_not_training_logs_have_no_format() {
    for name in all_samples() {
        let Some((place, _, why)) = NO_LOGS.iter().find(|(place, ..)| is_at(&name, place)) else {
            continue;
        };
        if *place == UNKNOWN_TRAINERS {
            continue;
        }
        let found = pulsetrain_formats::detect(&name, head(&sample(&name)));
        let found = found.map(|(format, _)| format.name);
        assert!(found.is_err(), "{name}, {why}, was taken for {found:?}");
    }
}

/// Returns whether a file is the one at `place`, or in the folder there.
fn is_at(name: &str, place: &str) -> bool {
    name == place || (place.ends_with('/') && name.starts_with(place))
}

fn arrives(log: &Log) {
    let name = log.name;
    let expected = (log.reader)(&sample(name));
    let imported = Imported::by(log.format, name);
    let mut found = Found::new(name, &imported, &log.derived);
    for (series, values) in by_series(log.table, &expected) {
        found.assert_series(&series, &values);
    }
    found.counts_steps(&expected.steps);
    found.assert_all_points_matched();
    // Other lines can be messages.
    let is_of_record = |event: &&Json| !attributes(event).contains_key("run.message.kind");
    let events = imported.events.iter().filter(is_of_record).count();
    assert_eq!(
        (imported.spans.len(), events),
        (expected.spans, expected.events),
        "spans and events of {name}"
    );
    let skipped = imported.skipped.counts();
    // The numbers of other lines are in `accounts`.
    let is_of_record =
        |reason: SkipReason| !reason.is_recorded() && !matches!(reason.as_str(), "unread_line" | "setting");
    let skipped = skipped.filter(|(reason, _)| is_of_record(*reason));
    let skipped: BTreeMap<String, u64> = skipped
        .map(|(reason, count)| (reason.as_str().to_owned(), count))
        .collect();
    assert_eq!(skipped, expected.left_out, "what was skipped of {name}");
    imported.assert_no_losses();
}

/// Groups the values by their expected series, in the order of the sample.
fn by_series<'t>(table: &str, expected: &'t ExpectedLog) -> Vec<(Series, Vec<&'t ExpectedValue>)> {
    let mut all: Vec<(Series, Vec<&ExpectedValue>)> = Vec::new();
    for expected_value in &expected.values {
        let mut series = series::series(table, &expected_value.key);
        // A sum accepts no negative time, so such a number keeps its own name.
        if series.metric.ends_with("_gap_time")
            && matches!(expected_value.value, Value::Number(number) if number < 0.0)
        {
            series = series::custom(&expected_value.key);
        }
        let own = expected_value.attributes.iter();
        series
            .attributes
            .extend(own.map(|(key, value)| ((*key).to_owned(), value.clone())));
        match all
            .iter_mut()
            .find(|(known, _)| known.metric == series.metric && known.attributes == series.attributes)
        {
            Some((known, values)) => {
                assert_eq!(known.is_total, series.is_total, "{}", expected_value.key);
                values.push(expected_value);
            }
            None => all.push((series, vec![expected_value])),
        }
    }
    all
}

/// The points of an import that no expectation has matched yet.
struct Found<'i> {
    name: &'i str,
    left: Vec<&'i Point>,
    derived: &'i [&'static str],
}

impl<'i> Found<'i> {
    fn new(name: &'i str, imported: &'i Imported, derived: &'i [&'static str]) -> Self {
        Self {
            name,
            left: imported.points.iter().collect(),
            derived,
        }
    }

    /// Removes the points of a series. The id of a GPU is ignored, since it repeats its index.
    fn take(&mut self, series: &Series) -> Vec<&'i Point> {
        let is_of_series = |point: &&Point| {
            let mut attributes = point.attributes.clone();
            if attributes.contains_key("gpu.index") {
                attributes.remove("gpu.id");
            }
            if let Some(states) = &series.states {
                attributes.remove(states);
            }
            let expected: BTreeMap<_, _> = series.attributes.iter().cloned().collect();
            point.metric == series.metric && attributes == expected
        };
        let (taken, left) = self.left.iter().copied().partition(is_of_series);
        self.left = left;
        taken
    }

    fn assert_series(&mut self, series: &Series, expected_values: &[&ExpectedValue]) {
        let points = self.take(series);
        let context = format!("{} {:?} of {}", series.metric, series.attributes, self.name);
        if let Some(states) = &series.states {
            return assert_states(&points, states, expected_values, &context);
        }
        assert_eq!(points.len(), expected_values.len(), "{context}");
        let mut sum = 0.0;
        for (point, expected_value) in points.iter().zip(expected_values) {
            let Value::Number(number) = expected_value.value else {
                panic!("{context}: expected a number, found {expected_value:?}");
            };
            let value = number * series.factor;
            sum += value;
            let is_growth = point.is_sum && !series.is_total;
            let expected = if is_growth { sum } else { value };
            assert!(
                is_same(point, expected),
                "{context}: {} and {expected}",
                point.value
            );
            is_in_time(point, expected_value, &context);
        }
    }

    /// Each step is recorded once, however often the sample has it, and counted by its distance from the previous step.
    fn counts_steps(&mut self, steps: &[f64]) {
        let mut steps = steps.to_vec();
        steps.dedup();
        let [recorded, counted] = OF_STEPS.map(|metric| {
            let points = self.left.iter().filter(|point| point.metric == metric);
            points.map(|point| point.value).collect::<Vec<_>>()
        });
        assert_eq!(recorded, steps, "steps of {}", self.name);
        if !counted.is_empty() {
            let mut last = None;
            let grown = steps.iter().map(|step| {
                let before = last.replace(*step);
                before
                    .map(|before| step - before)
                    .filter(|grown| *grown > 0.0)
                    .unwrap_or(1.0)
            });
            let sums = grown.scan(0.0, |sum, grown| {
                *sum += grown;
                Some(*sum)
            });
            assert_eq!(counted, sums.collect::<Vec<_>>(), "steps of {}", self.name);
        }
        self.left
            .retain(|point| !OF_STEPS.contains(&point.metric.as_str()));
    }

    fn assert_all_points_matched(&self) {
        let is_derived = |point: &Point| self.derived.iter().any(|begin| point.metric.starts_with(begin));
        let left: Vec<_> = self.left.iter().filter(|point| !is_derived(point)).collect();
        assert!(left.is_empty(), "{} does not have {left:?}", self.name);
    }
}

/// At each change one state is active and all others are inactive.
fn assert_states(points: &[&Point], attribute: &str, expected_values: &[&ExpectedValue], context: &str) {
    let mut changes = expected_values.to_vec();
    changes.dedup_by(|expected_value, before| expected_value.value == before.value);
    let holding = points.iter().filter(|point| point.value == 1.0);
    let holding: Vec<&&Point> = holding.collect();
    assert_eq!(holding.len(), changes.len(), "{context}");
    for (point, expected_value) in holding.iter().zip(&changes) {
        let Value::State(state) = &expected_value.value else {
            panic!("{context}: expected a state, found {expected_value:?}");
        };
        let state = if state == "no cap" { "none" } else { state };
        assert_eq!(point.attributes[attribute], state.replace(' ', "_"), "{context}");
        is_in_time(point, expected_value, context);
    }
    let mut states: Vec<&String> = points.iter().map(|point| &point.attributes[attribute]).collect();
    states.sort();
    states.dedup();
    assert!(states.len() > 2, "{context}");
    assert_eq!(points.len(), changes.len() * states.len(), "{context}");
}

/// Sums have an error in the last digit. An integer metric has no fraction.
fn is_same(point: &Point, expected: f64) -> bool {
    let apart = (point.value - expected).abs();
    let is_cut = point.is_integer && apart < 1.0;
    is_cut || apart <= 1e-12 * expected.abs() || (point.value.is_nan() && expected.is_nan())
}

/// A float of seconds has a precision of a quarter of a microsecond.
fn is_in_time(point: &Point, expected_value: &ExpectedValue, context: &str) {
    if let Some(time) = expected_value.time {
        assert!(
            point.time.abs_diff(time) <= 250,
            "{context}: {} and {time}",
            point.time
        );
    }
}
