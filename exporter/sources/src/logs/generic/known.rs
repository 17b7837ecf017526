//! What is known of the keys of a log, found out when each comes first; and the keys of the record that is read now.

use super::{mapping::Mapping, rule::Meaning};
use crate::{
    in_order::InOrder,
    logs::fields::{Field, Value},
};

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
    /// Whether it was said that nobody knows.
    pub(super) is_told: bool,
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
    /// The fields of the record that may say the time, and those that may say the step, by their likelihood.
    times: [Option<usize>; TIMES.len()],
    steps: [Option<usize>; STEPS.len()],
}

impl Keys {
    /// Looks up the keys of a record's fields.
    pub(super) fn look_up(&mut self, fields: &[Field<'_>], mapping: &Mapping) {
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.places.clear();
        (self.times, self.steps) = ([None; TIMES.len()], [None; STEPS.len()]);
        for (number, (key, value)) in fields.iter().enumerate() {
            let place = match self.known.place(key) {
                Some(place) => place,
                None => self.known.add(key, Known::find(key, mapping)),
            };
            self.places.push(place);
            let Known { time, step, .. } = *self.known.at(place);
            if let Some(rank) = time {
                self.times[rank].get_or_insert(number);
            }
            if let Some(rank) = step.filter(|_| whole(value).is_some()) {
                self.steps[rank].get_or_insert(number);
            }
        }
    }

    /// The number of fields of the record.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether a field is a step, or something whose meaning is known.
    pub(super) fn are_of_record(&mut self) -> bool {
        let known = &mut self.known;
        self.steps.iter().any(Option::is_some)
            || self.places.iter().any(|place| known.at(*place).meaning.is_some())
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

    /// What is known of the key of a field.
    pub(super) fn of(&mut self, field: usize) -> &mut Known {
        self.known.at(self.places[field])
    }
}

impl Known {
    fn find(key: &str, mapping: &Mapping) -> Self {
        let among = |named: &Option<String>, usual: &[&str]| match named {
            Some(named) => (named == key).then_some(0),
            None => usual.iter().position(|usual| *usual == key),
        };
        Self {
            meaning: mapping.meaning(key),
            is_told: false,
            time: among(&mapping.time, &TIMES),
            step: among(&mapping.step, &STEPS),
        }
    }
}

/// A value that is a whole number.
pub(super) fn whole(value: &Value<'_>) -> Option<i64> {
    let number = value.number()?;
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}
