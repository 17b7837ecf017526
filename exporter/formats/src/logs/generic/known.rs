//! What is known of the keys of a log, found out when each comes first; and the keys of the record that is read now.

use super::{field, label_keys::TIME, mapping::Mapping, rule::Meaning};
use crate::logs::fields::{Field, Value};
use pulsetrain_record::{PreparedSeries, in_order::InOrder};
use pulsetrain_semconv::Metric;

/// The keys that are the step where the mapping names none.
const STEPS: [&str; 4] = ["step", "global_step", "iteration", "iter"];

/// The keys that are the time where the mapping names none.
const TIMES: [&str; 4] = ["time", "timestamp", "ts", "_timestamp"];

/// Of how many keys it is remembered what they mean; of more it is found out anew.
pub(super) const REMEMBERED: usize = 4096;

/// What is known of a key.
#[derive(Debug)]
pub(super) struct Known {
    /// Nothing where nobody knows.
    pub(super) meaning: Option<Meaning>,
    /// The series of its values, where no other field says what belongs to it and it is more than a metric's only one.
    pub(super) series: Option<PreparedSeries>,
    /// Whether it was said that nobody knows.
    pub(super) is_told: bool,
    /// The first value of the key in a record.
    pub(super) example: Option<String>,
    /// Whether a value is kept as `train.custom` although a rule knows the key.
    pub(super) is_unmapped: bool,
    /// Whether the first value is a text without a number.
    pub(super) is_text: bool,
    /// Whether a value of the key was the time of a record.
    pub(super) was_time: bool,
    /// Whether values of the key are attributes of other values.
    pub(super) is_attribute: bool,
    /// Whether the key is `time`, without words that the mapping ignores.
    pub(super) is_time: bool,
    /// The place among the keys that may be the time, those that are more likely first.
    time: Option<usize>,
    /// The same of the step.
    step: Option<usize>,
}

/// The keys of a log.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: InOrder<Known>,
    /// Of each field of the record where in `known` its key is.
    places: Vec<usize>,
    /// The fields of the record that may say the time, by their likelihood.
    times: [Option<usize>; TIMES.len()],
    /// The fields whose keys may be the step, with their likelihood, and those of them that may say it.
    step_keys: Vec<(usize, usize)>,
    steps: Vec<Option<usize>>,
}

impl Keys {
    /// Looks up the keys of a record's fields.
    pub(super) fn look_up(&mut self, fields: &[Field<'_>], mapping: &Mapping) {
        self.find(fields, mapping);
        self.steps.clear();
        self.steps.resize(mapping.steps.len().max(STEPS.len()), None);
        for (number, rank) in &self.step_keys {
            if self.steps[*rank].is_none() && whole(&fields[*number].1).is_some() {
                self.steps[*rank] = Some(*number);
            }
        }
    }

    fn find(&mut self, fields: &[Field<'_>], mapping: &Mapping) {
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.places.clear();
        self.step_keys.clear();
        self.times = [None; TIMES.len()];
        for (number, (key, _)) in fields.iter().enumerate() {
            let place = match self.known.place(key) {
                Some(place) => place,
                None => self.known.add(key, Known::find(key, mapping)),
            };
            self.places.push(place);
            let Known { time, step, .. } = *self.known.at(place);
            if let Some(rank) = time {
                self.times[rank].get_or_insert(number);
            }
            self.step_keys.extend(step.map(|rank| (number, rank)));
        }
    }

    /// Whether a field is a step, or something whose meaning is known.
    pub(super) fn are_of_record(&mut self) -> bool {
        let known = &mut self.known;
        self.steps.iter().any(Option::is_some)
            || self.places.iter().any(|place| known.at(*place).meaning.is_some())
    }

    /// Whether one of the fields of the record, of which there are `count`, has a metric.
    pub(super) fn has_metric(&mut self, count: usize, metric: &Metric) -> bool {
        (0..count).any(|field| {
            let meaning = self.of(field).meaning.as_ref();
            let found = meaning.and_then(|meaning| meaning.rule.becomes.metric());
            found.is_some_and(|found| found.ordinal == metric.ordinal)
        })
    }

    /// The fields that may say the time, likely ones first.
    pub(super) fn times(&self) -> impl Iterator<Item = usize> + '_ {
        self.times.iter().flatten().copied()
    }

    /// The field that says the step; of a key that comes twice, the first.
    pub(super) fn step(&self) -> Option<usize> {
        let found = self.steps.iter().flatten().next()?;
        self.places.iter().position(|place| *place == self.places[*found])
    }

    /// Whether two fields have the same key, if there is a second one.
    pub(super) fn are_same(&self, field: usize, other: Option<usize>) -> bool {
        other.is_some_and(|other| self.places[field] == self.places[other])
    }

    /// Iterates over all keys that were looked up.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Known)> {
        self.known.iter_mut()
    }

    /// What is known of the key of a field.
    pub(super) fn of(&mut self, field: usize) -> &mut Known {
        self.known.at(self.places[field])
    }
}

impl Known {
    /// Returns the place of the key among those that can be the step.
    pub(super) fn step(&self) -> Option<usize> {
        self.step
    }

    /// Keeps the first value of a record.
    pub(super) fn note(&mut self, value: &Value<'_>, is_time: bool) {
        self.was_time |= is_time;
        if self.example.is_none() {
            self.is_text = field::is_text(value);
            self.example = Some(match value {
                Value::Number(number) => number.to_string(),
                Value::Text(text) => text.to_string(),
            });
        }
    }

    fn find(key: &str, mapping: &Mapping) -> Self {
        let spelling = mapping.spelling(key);
        let meaning = mapping.meaning(key);
        Self {
            series: meaning.as_ref().and_then(Meaning::series),
            meaning,
            is_told: false,
            example: None,
            is_unmapped: false,
            is_text: false,
            was_time: false,
            is_attribute: mapping.is_attribute(key),
            is_time: spelling == TIME || mapping.without_prefixes(&spelling).any(|key| key == TIME),
            time: match &mapping.time {
                Some(time) => (*time == spelling).then_some(0),
                None => TIMES.iter().position(|usual| *usual == spelling),
            },
            step: mapping.step_rank(key),
        }
    }
}

impl Mapping {
    /// Returns the place of a key among those that can be the step, or `None` if it cannot.
    pub(super) fn step_rank(&self, key: &str) -> Option<usize> {
        let spelling = self.spelling(key);
        let rank = |key: &str| match &self.steps[..] {
            [] => STEPS.iter().position(|step| *step == key),
            steps => steps.iter().position(|step| *step == key),
        };
        rank(&spelling).or_else(|| self.without_prefixes(&spelling).find_map(rank))
    }
}

/// A value that is a whole number.
pub(super) fn whole(value: &Value<'_>) -> Option<i64> {
    let number = value.number()?;
    let whole = number as i64;
    // Not by its fraction: to round a number may take a call.
    (whole as f64 == number && number.abs() < 9e15).then_some(whole)
}
