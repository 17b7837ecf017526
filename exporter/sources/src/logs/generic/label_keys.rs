//! The keys of labelled numbers: the part of a label, or the unit behind a number, that a mapping knows.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use super::{
    known::REMEMBERED,
    labelled::{COUNT, Labelled, Printed},
    mapping::Mapping,
    rule::Meaning,
};
use crate::logs::fields::{Field, Value};

/// Words at the beginning of a line whose values are of an evaluation.
const EVALUATION: [&str; 6] = ["eval", "evaluation", "val", "valid", "validation", "test"];

/// The prefix of the keys of such a line.
const EVAL_PREFIX: &str = "eval ";

/// Labels of the counters of an epoch.
const BATCHES: [&str; 4] = ["batch", "minibatch", "mini-batch", "mini_batch"];

/// The most words of a label that no rule knows.
const MOST_WORDS: usize = 3;

/// The unit of metrics that are durations.
const SECONDS: &str = "s";

/// Finds the keys of labels. A log repeats its labels, so each is looked up once.
#[derive(Debug)]
pub(super) struct LabelKeys {
    mapping: Arc<Mapping>,
    /// The keys of labels, in lines of training and of an evaluation.
    labels: [HashMap<String, Option<String>>; 2],
    facts: HashMap<String, Facts>,
}

/// What a mapping knows of a key.
#[derive(Clone, Copy, Debug)]
struct Facts {
    is_known: bool,
    is_step: bool,
    is_epoch: bool,
    is_duration: bool,
}

impl Facts {
    fn of(key: &str, mapping: &Mapping) -> Self {
        let is_step = mapping.step_rank(key).is_some();
        let meaning = mapping.meaning(key);
        let metric = meaning.as_ref().and_then(|meaning| meaning.rule.becomes.metric());
        Self {
            is_known: is_step || meaning.is_some(),
            is_step,
            is_epoch: meaning.as_ref().is_some_and(Meaning::is_epoch),
            is_duration: metric.is_some_and(|metric| metric.unit == SECONDS),
        }
    }
}

impl LabelKeys {
    pub(super) fn of(mapping: &Arc<Mapping>) -> Self {
        Self {
            mapping: Arc::clone(mapping),
            labels: Default::default(),
            facts: HashMap::new(),
        }
    }

    /// Returns the field that a number is, or `None` if nothing names it.
    pub(super) fn field<'a>(&mut self, number: &Labelled<'a>, is_eval: bool) -> Option<Field<'a>> {
        if let Some(key) = self.of_label(number.label, is_eval) {
            let value = self.value(number, &key)?;
            return Some((Cow::Owned(key), value));
        }
        if is_count(number) {
            let value = self.value(number, COUNT)?;
            return self.is_step(COUNT).then_some((Cow::Borrowed(COUNT), value));
        }
        self.by_measure(number).or_else(|| unknown(number))
    }

    /// Whether a key can be the step.
    pub(super) fn is_step(&mut self, key: &str) -> bool {
        self.facts(key).is_step
    }

    /// Returns the key of a label that a rule knows.
    fn of_label(&mut self, label: &str, is_eval: bool) -> Option<String> {
        if label.is_empty() {
            return None;
        }
        if let Some(found) = self.labels[usize::from(is_eval)].get(label) {
            return found.clone();
        }
        let key = self.known_key(label, is_eval);
        let labels = &mut self.labels[usize::from(is_eval)];
        if labels.len() >= REMEMBERED {
            labels.clear();
        }
        labels.insert(label.to_owned(), key.clone());
        key
    }

    /// Returns the label itself, or what follows the words of a logger or a sentence in it.
    fn known_key(&mut self, label: &str, is_eval: bool) -> Option<String> {
        let without_noise = without_noise(label);
        if is_eval {
            let key = [EVAL_PREFIX, without_noise].concat();
            if self.facts(&key).is_known {
                return Some(key);
            }
        }
        let exact = [label, without_noise]
            .into_iter()
            .find(|key| self.facts(key).is_known);
        let key = exact.or_else(|| {
            tails(label).find(|tail| {
                let facts = self.facts(tail);
                facts.is_step || facts.is_epoch
            })
        })?;
        Some(key.to_owned())
    }

    /// Names a number by the words after it: `1200 tok/s`, `45.6% bf16 MFU`.
    fn by_measure<'a>(&mut self, number: &Labelled<'a>) -> Option<Field<'a>> {
        let Printed::Value(value, unit) = number.number else {
            return None;
        };
        if self.facts(unit).is_known {
            return Some((Cow::Borrowed(unit), Value::Number(value)));
        }
        if !number.label.is_empty() {
            return None;
        }
        let key = tails(number.measure).find(|key| self.facts(key).is_known)?;
        Some((Cow::Borrowed(key), value_of(number)))
    }

    /// Returns the value under a key that a rule knows.
    fn value<'a>(&mut self, number: &Labelled<'a>, key: &str) -> Option<Value<'a>> {
        match number.number {
            Printed::Value(..) => Some(value_of(number)),
            Printed::Fraction(done, _) => {
                let facts = self.facts(key);
                let is_place = facts.is_step || facts.is_epoch;
                Some(if is_place {
                    Value::Number(done)
                } else {
                    value_of(number)
                })
            }
            // A clock is a duration; the time of a day is not.
            Printed::Clock(_) => self.facts(key).is_duration.then(|| value_of(number)),
        }
    }

    fn facts(&mut self, key: &str) -> Facts {
        if let Some(facts) = self.facts.get(key) {
            return *facts;
        }
        if self.facts.len() >= REMEMBERED {
            self.facts.clear();
        }
        let facts = Facts::of(key, &self.mapping);
        self.facts.insert(key.to_owned(), facts);
        facts
    }
}

/// Whether a line is of an evaluation: its first words have the name of one.
pub(super) fn is_evaluation(first: &Labelled<'_>) -> bool {
    let words = [first.context, first.label].into_iter().flat_map(words);
    words
        .into_iter()
        .any(|word| EVALUATION.iter().any(|name| name.eq_ignore_ascii_case(word)))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric())
}

/// Whether a number counts the steps of an epoch: `[10/100]`, or `Batch 10/100` where no rule knows the label.
fn is_count(number: &Labelled<'_>) -> bool {
    let last = number
        .label
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let is_of_epoch = last.is_empty() || BATCHES.iter().any(|batch| batch.eq_ignore_ascii_case(last));
    is_of_epoch && matches!(number.number, Printed::Fraction(..))
}

/// A label without the words before it that are no names: levels, times, places in source code.
fn without_noise(label: &str) -> &str {
    let is_noise = |word: &str| {
        let is_level = word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        is_level || word.contains(|letter: char| letter.is_ascii_digit() || letter == ':')
    };
    let mut rest = label;
    while let Some((word, after)) = rest.split_once(char::is_whitespace) {
        if !is_noise(word) {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

/// A text, and what is left of it without its first word, its first two, ...
fn tails(text: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(text), |rest| {
        let (_, after) = rest.split_once(char::is_whitespace)?;
        Some(after.trim_start())
    })
}

/// A number that no rule knows, under its label.
fn unknown<'a>(number: &Labelled<'a>) -> Option<Field<'a>> {
    let key = without_noise(number.label);
    let is_name = key.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let is_place = key.contains(".py") || key.contains("://");
    let is_short = key.split_whitespace().count() <= MOST_WORDS;
    let is_key = is_name && is_short && !is_place && !matches!(number.number, Printed::Clock(_));
    is_key.then(|| (Cow::Borrowed(key), value_of(number)))
}

fn value_of<'a>(number: &Labelled<'a>) -> Value<'a> {
    match number.number {
        Printed::Value(value, "") | Printed::Clock(value) => Value::Number(value),
        Printed::Fraction(done, total) => Value::Number(done / total),
        Printed::Value(..) => Value::Text(number.text()),
    }
}
