//! Every value of every sample arrives once, in our unit and at its own time; what does not is left out by a rule.
//!
//! A row of [`LOGS`] is a file of the corpus: what reads it here, what its names are to become, how much it says.

mod samples;

use std::collections::BTreeMap;

use pulsetrain_record::SkipReason;

use self::samples::{LOGS, Log, NO_LOGS, UNKNOWN_TRAINERS};
use crate::{
    Imported,
    expected::{ExpectedLog, ExpectedValue, Value},
    imported::{Point, all_samples, sample},
    series::{self, Series},
};

/// Metrics that the number of a step makes.
const OF_STEPS: [&str; 2] = ["train.global_step", "train.steps"];

#[test]
fn every_file_of_the_corpus_has_a_row() {
    let is_no_log = |name: &String| NO_LOGS.iter().any(|(place, ..)| is_at(name, place));
    // The samples of mapping files have expectations in `trainers.rs`.
    let samples = all_samples()
        .into_iter()
        .filter(|name| !name.starts_with("trainers/"));
    let (others, logs): (Vec<String>, Vec<String>) = samples.partition(is_no_log);
    let rows: Vec<&str> = LOGS.iter().map(|(name, _)| *name).collect();
    assert_eq!(logs, rows, "a row a log, in their order");
    for (place, files, _) in NO_LOGS {
        let found = others.iter().filter(|name| is_at(name, place)).count();
        assert_eq!(found, *files, "files at {place}");
    }
}

#[test]
fn the_table_says_how_much_every_sample_says() {
    for (name, log) in LOGS {
        let told = (log.reader)(&sample(name));
        let rules: Vec<(&str, u64)> = told
            .left_out
            .iter()
            .map(|(rule, count)| (rule.as_str(), *count))
            .collect();
        assert_eq!(
            (told.values.len(), &rules[..]),
            (log.values, log.left_out),
            "{name}"
        );
    }
}

#[test]
fn every_value_of_every_sample_arrives_once_in_our_unit() {
    for (name, log) in LOGS {
        arrives(name, log);
    }
}

#[test]
fn what_is_no_log_of_training_is_read_by_no_format() {
    for name in all_samples() {
        let Some((place, _, why)) = NO_LOGS.iter().find(|(place, ..)| is_at(&name, place)) else {
            continue;
        };
        if *place == UNKNOWN_TRAINERS {
            continue;
        }
        let head = sample(&name);
        let found = pulsetrain_formats::detect(&name, &head[..head.len().min(64 << 10)]);
        let found = found.map(|(format, _)| format.name);
        assert!(found.is_err(), "{name}, {why}, was taken for {found:?}");
    }
}

/// Whether a file is the one at `place`, or in the folder there.
fn is_at(name: &str, place: &str) -> bool {
    name == place || (place.ends_with('/') && name.starts_with(place))
}

fn arrives(name: &str, log: &Log) {
    let told = (log.reader)(&sample(name));
    let imported = Imported::by(log.format, name);
    let mut found = Found::new(name, &imported, log.derived);
    for (series, values) in by_series(log.table, &told) {
        found.holds(&series, &values);
    }
    found.counts_steps(&told.steps);
    found.nothing_is_left();
    assert_eq!(
        (imported.spans.len(), imported.events.len()),
        (told.spans, told.events),
        "spans and events of {name}"
    );
    let skipped = imported.skipped.counts();
    let skipped = skipped.filter(|(reason, _)| *reason != SkipReason::UnknownName);
    let skipped: BTreeMap<String, u64> = skipped
        .map(|(reason, count)| (reason.as_str().to_owned(), count))
        .collect();
    assert_eq!(skipped, told.left_out, "what was skipped of {name}");
    imported.lost_nothing();
}

/// The values by the series that they are to be in, in the order of the sample.
fn by_series<'t>(table: &str, told: &'t ExpectedLog) -> Vec<(Series, Vec<&'t ExpectedValue>)> {
    let mut all: Vec<(Series, Vec<&ExpectedValue>)> = Vec::new();
    for said in &told.values {
        let mut series = series::of(table, &said.key);
        // A sum takes no negative time, so such a number keeps its own name.
        if series.metric.ends_with("_gap_time") && matches!(said.value, Value::Number(number) if number < 0.0)
        {
            series = series::custom(&said.key);
        }
        let own = said.attributes.iter();
        series
            .attributes
            .extend(own.map(|(key, value)| ((*key).to_owned(), value.clone())));
        match all
            .iter_mut()
            .find(|(known, _)| known.metric == series.metric && known.attributes == series.attributes)
        {
            Some((known, values)) => {
                assert_eq!(known.is_total, series.is_total, "{}", said.key);
                values.push(said);
            }
            None => all.push((series, vec![said])),
        }
    }
    all
}

/// The points of an import, of which each is looked for once.
struct Found<'i> {
    name: &'i str,
    left: Vec<&'i Point>,
    derived: &'static [&'static str],
}

impl<'i> Found<'i> {
    fn new(name: &'i str, imported: &'i Imported, derived: &'static [&'static str]) -> Self {
        Self {
            name,
            left: imported.points.iter().collect(),
            derived,
        }
    }

    /// Takes out the points of a series; a GPU's id says its index again, or is its own.
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

    fn holds(&mut self, series: &Series, said: &[&ExpectedValue]) {
        let points = self.take(series);
        let context = format!("{} {:?} of {}", series.metric, series.attributes, self.name);
        if let Some(states) = &series.states {
            return holds_states(&points, states, said, &context);
        }
        assert_eq!(points.len(), said.len(), "{context}");
        let mut sum = 0.0;
        for (point, said) in points.iter().zip(said) {
            let Value::Number(number) = said.value else {
                panic!("{context}: {said:?} is no number");
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
            is_in_time(point, said, &context);
        }
    }

    /// A step is told once, however often it is said, and counted by how far it is from the one before.
    fn counts_steps(&mut self, steps: &[f64]) {
        let mut steps = steps.to_vec();
        steps.dedup();
        let [told, counted] = OF_STEPS.map(|metric| {
            let points = self.left.iter().filter(|point| point.metric == metric);
            points.map(|point| point.value).collect::<Vec<_>>()
        });
        assert_eq!(told, steps, "steps of {}", self.name);
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

    fn nothing_is_left(&self) {
        let is_derived = |point: &Point| self.derived.iter().any(|begin| point.metric.starts_with(begin));
        let left: Vec<_> = self.left.iter().filter(|point| !is_derived(point)).collect();
        assert!(left.is_empty(), "{} does not say {left:?}", self.name);
    }
}

/// At each change one state holds, and every other one is said not to.
fn holds_states(points: &[&Point], attribute: &str, said: &[&ExpectedValue], context: &str) {
    let mut changes = said.to_vec();
    changes.dedup_by(|said, before| said.value == before.value);
    let holding = points.iter().filter(|point| point.value == 1.0);
    let holding: Vec<&&Point> = holding.collect();
    assert_eq!(holding.len(), changes.len(), "{context}");
    for (point, said) in holding.iter().zip(&changes) {
        let Value::State(state) = &said.value else {
            panic!("{context}: {said:?} is no state");
        };
        let state = if state == "no cap" { "none" } else { state };
        assert_eq!(point.attributes[attribute], state.replace(' ', "_"), "{context}");
        is_in_time(point, said, context);
    }
    let mut states: Vec<&String> = points.iter().map(|point| &point.attributes[attribute]).collect();
    states.sort();
    states.dedup();
    assert!(states.len() > 2, "{context}");
    assert_eq!(points.len(), changes.len() * states.len(), "{context}");
}

/// Sums come together with an error in the last digit; a metric of whole numbers has no fraction.
fn is_same(point: &Point, expected: f64) -> bool {
    let apart = (point.value - expected).abs();
    let is_cut = point.is_integer && apart < 1.0;
    is_cut || apart <= 1e-12 * expected.abs() || (point.value.is_nan() && expected.is_nan())
}

/// A float of seconds has a quarter of a microsecond.
fn is_in_time(point: &Point, said: &ExpectedValue, context: &str) {
    if let Some(time) = said.time {
        assert!(
            point.time.abs_diff(time) <= 250,
            "{context}: {} and {time}",
            point.time
        );
    }
}
