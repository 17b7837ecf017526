//! Finds the keys of labelled numbers: the part of a label, or the unit after a number, that the mapping knows.

use pulsetrain_mapping::{Field, FieldValue, Mapping, unit};
use std::{borrow::Cow, collections::HashMap, sync::Arc};

use pulsetrain_semconv::{Metric, metric};

use super::labelled::{COUNT, Labelled, LabelledNumber, is_rate};
use super::phrase::{qualified, tails, tails_of_same_meaning, without_message, without_noise};
use super::record_keys::MAX_KEYS;
use super::section::{
    BATCHES, EVAL_PREFIX, Section, is_evaluation, is_one_of, names_evaluation, names_training,
};

/// Labels of a rate whose unit names the quantity: `Speed: 1010.9 samples/sec`.
const SPEEDS: [&str; 8] = [
    "speed",
    "ips",
    "throughput",
    "rate",
    "avg",
    "average",
    "mean",
    "current",
];

/// Words in brackets after a label that leave its metric as it is: `Loss (avg)`.
const AGGREGATES: [&str; 5] = ["avg", "average", "mean", "total", "smoothed"];

/// Fields that distinguish records of training from those of an evaluation.
const SPLITS: [&str; 9] = [
    "split", "mode", "phase", "stage", "type", "subset", "set", "kind", "event",
];

/// The key of a time of day or of a duration.
pub(super) const TIME: &str = "time";

/// The unit of steps, which can be printed as `1k`.
const STEPS: &str = "{step}";

/// The metrics of the speed of training.
const SPEED_METRICS: [&Metric; 7] = [
    &metric::TRAIN_STEP_DURATION,
    &metric::TRAIN_THROUGHPUT_TOKENS,
    &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE,
    &metric::TRAIN_THROUGHPUT_STEPS,
    &metric::TRAIN_THROUGHPUT_SAMPLES,
    &metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE,
    &metric::TRAIN_MFU,
];

/// The unit of metrics that are durations.
const SECONDS: &str = "s";

/// The unit of metrics that are amounts of data.
const BYTES: &str = "By";

/// The word of labels that can have an index: `Train loss 3 10.5`.
const LOSS: &str = "loss";

/// Finds the keys of labels. A log repeats its labels, so each is looked up once.
#[derive(Debug)]
pub(super) struct LabelKeys {
    mapping: Arc<Mapping>,
    /// The keys of labels by section.
    labels: [HashMap<String, Option<String>>; 3],
    facts: HashMap<String, Facts>,
}

/// The properties of a key in a mapping.
#[derive(Clone, Copy, Debug)]
struct Facts {
    is_known: bool,
    is_step: bool,
    is_epoch: bool,
    is_duration: bool,
    /// Whether it is the speed of training, which an evaluation does not have.
    is_training_speed: bool,
    is_time: bool,
}

impl Facts {
    fn for_key(key: &str, mapping: &Mapping) -> Self {
        let is_step = mapping.step_rank(key).is_some();
        let resolved = mapping.resolve(None, key);
        let metric = resolved
            .as_ref()
            .and_then(|resolved| resolved.mapping.target.metric());
        Self {
            is_known: is_step || resolved.is_some(),
            is_step,
            is_epoch: metric.is_some_and(|metric| metric.ordinal == metric::TRAIN_EPOCH.ordinal),
            is_duration: metric.is_some_and(|metric| metric.unit == SECONDS),
            is_training_speed: metric
                .is_some_and(|metric| SPEED_METRICS.iter().any(|speed| speed.ordinal == metric.ordinal)),
            is_time: mapping.spelling(key) == TIME,
        }
    }
}

impl LabelKeys {
    pub(super) fn new(mapping: &Arc<Mapping>) -> Self {
        Self {
            mapping: Arc::clone(mapping),
            labels: Default::default(),
            facts: HashMap::new(),
        }
    }

    /// Returns the field of a number, or `None` if it has no key.
    pub(super) fn field<'a>(&mut self, number: &Labelled<'a>, section: Section) -> Option<Field<'a>> {
        // `Epoch(test) [50/250]` is not an epoch.
        if section == Section::EvaluationBatches && number.is_progress && names_evaluation(number.label) {
            return None;
        }
        if let Some(key) = self.of_label(number.label, section) {
            let value = self.value(number, &key)?;
            return Some((Cow::Owned(key), value));
        }
        if section == Section::EvaluationBatches {
            return unknown(number, section).filter(|_| !number.is_progress);
        }
        if is_count(number) {
            let value = self.value(number, COUNT)?;
            return self.is_step(COUNT).then_some((Cow::Borrowed(COUNT), value));
        }
        self.by_measure(number, section)
            .or_else(|| unknown(number, section))
    }

    /// Returns whether a number is the index of the next number, as 3 in `Train loss 3 10.5`. The label is that of the next.
    pub(super) fn is_index(&mut self, number: &Labelled<'_>, next: &Labelled<'_>, section: Section) -> bool {
        // The rare condition is first: this is asked of every number.
        let is_value = next.is_adjacent && !next.is_integer && !next.measure.contains('/');
        is_value
            && number.is_integer
            && !number.is_assigned
            && number.label.to_ascii_lowercase().ends_with(LOSS)
            && matches!(next.number, LabelledNumber::Value(_, ""))
            && self.of_label(number.label, section.after(number)).is_some()
    }

    /// Renames the fields of a record that is marked as an evaluation, as by `"split": "val"`, to the keys of an evaluation.
    pub(super) fn rename_if_marked(&mut self, fields: &mut [Field<'_>]) {
        let is_mark = |(key, value): &Field<'_>| match value {
            FieldValue::Text(text) => {
                let key = key.rsplit(['.', '/']).next().unwrap_or(key);
                SPLITS.iter().any(|split| split.eq_ignore_ascii_case(key))
                    && is_evaluation(text) == Some(true)
            }
            FieldValue::Number(_) => false,
        };
        if fields.iter().any(is_mark) {
            self.rename_to_evaluation(fields);
        }
    }

    /// Renames the fields of a record to the keys of an evaluation.
    pub(super) fn rename_to_evaluation(&mut self, fields: &mut [Field<'_>]) {
        for (key, _) in fields {
            // A record of an evaluation can have values of training: `train_loss`.
            if self.is_step(key) || names_training(key) {
                continue;
            }
            if let Some(of_evaluation) = self.of_evaluation(key) {
                *key = Cow::Owned(of_evaluation);
            }
        }
    }

    /// Returns the key of an evaluation for a value in one, if a rule knows it or the value would be of training.
    fn of_evaluation(&mut self, key: &str) -> Option<String> {
        let mapping = Arc::clone(&self.mapping);
        let spelling = mapping.spelling(key);
        let names = std::iter::once(key).chain(mapping.without_prefixes(&spelling));
        let mut keys = names.map(|name| [EVAL_PREFIX, name].concat());
        keys.find(|key| self.facts(key).is_known).or_else(|| {
            self.facts(key)
                .is_training_speed
                .then(|| [EVAL_PREFIX, key].concat())
        })
    }

    /// Returns whether a key can be the step.
    pub(super) fn is_step(&mut self, key: &str) -> bool {
        self.facts(key).is_step
    }

    /// Returns whether a key is that of the epoch.
    pub(super) fn is_epoch(&mut self, key: &str) -> bool {
        self.facts(key).is_epoch
    }

    /// Returns the key of a label that a rule knows.
    fn of_label(&mut self, label: &str, section: Section) -> Option<String> {
        if label.is_empty() {
            return None;
        }
        if let Some(found) = self.labels[section as usize].get(label) {
            return found.clone();
        }
        let key = self.known_key(label, section);
        let labels = &mut self.labels[section as usize];
        if labels.len() >= MAX_KEYS {
            labels.clear();
        }
        labels.insert(label.to_owned(), key.clone());
        key
    }

    /// Returns the label itself, or the part of it after the words of a logger or a sentence.
    fn known_key(&mut self, label: &str, section: Section) -> Option<String> {
        if let Some((name, qualifier)) = qualified(label) {
            let split = is_evaluation(qualifier);
            return match split {
                Some(true) => self.known_key(name, Section::Evaluation),
                _ if split.is_some() || is_one_of(&AGGREGATES, qualifier) => self.known_key(name, section),
                _ => None,
            };
        }
        let without_noise = without_noise(label);
        if section != Section::Training {
            let key = [EVAL_PREFIX, without_noise].concat();
            if self.facts(&key).is_known {
                return Some(key);
            }
            let facts = self.facts(without_noise);
            let is_of_both = facts.is_epoch || facts.is_step || names_evaluation(without_noise);
            if section == Section::EvaluationBatches && !is_of_both {
                return None;
            }
        }
        let exact = [label, without_noise, without_message(label), without_rate(label)]
            .into_iter()
            .find(|key| self.facts(key).is_known);
        let key = exact.or_else(|| {
            tails_of_same_meaning(label).find(|tail| {
                let facts = self.facts(tail);
                facts.is_step || facts.is_epoch
            })
        })?;
        Some(key.to_owned())
    }

    /// Names a number by the words after it: `1200 tok/s`, `45.6% bf16 MFU`.
    fn by_measure<'a>(&mut self, number: &Labelled<'a>, section: Section) -> Option<Field<'a>> {
        let LabelledNumber::Value(value, unit) = number.number else {
            return None;
        };
        // The unit of a rate names its quantity. The unit of `250 ms` does not; other words name it.
        let is_named = number.label.is_empty() || unit.contains('/');
        if is_named && self.facts(unit).is_known {
            return Some((Cow::Borrowed(unit), FieldValue::Number(value)));
        }
        // If the label is unknown, only a rate names the quantity: `Speed: 1010.9 samples/sec`.
        let name = qualified(number.label).map_or(number.label, |(name, _)| name);
        let is_speed = section == Section::Training && is_speed(without_noise(name));
        let is_name = |key: &&str| number.label.is_empty() || is_speed && key.contains('/');
        let key = tails(number.measure)
            .filter(is_name)
            .find(|key| self.facts(key).is_known)?;
        Some((Cow::Borrowed(key), value_of(number)))
    }

    /// Returns the value under a key that a rule knows.
    fn value<'a>(&mut self, number: &Labelled<'a>, key: &str) -> Option<FieldValue<'a>> {
        match number.number {
            LabelledNumber::Value(count, unit) if !unit.is_empty() && self.is_step(key) => {
                let conversion = unit::conversion(unit, STEPS)?;
                Some(FieldValue::Number(conversion.apply(count)))
            }
            LabelledNumber::Value(value, "") => {
                // With its unit, `412 GB/sec` does not fit a duration.
                let rate = data_rate(number).filter(|_| self.facts(key).is_duration);
                Some(match rate {
                    Some(rate) => FieldValue::Text(Cow::Owned(format!("{value}{rate}"))),
                    None => value_of(number),
                })
            }
            LabelledNumber::Value(..) => Some(value_of(number)),
            LabelledNumber::Fraction(done, _) => {
                let facts = self.facts(key);
                let is_location = facts.is_step || facts.is_epoch;
                Some(if is_location {
                    FieldValue::Number(done)
                } else {
                    value_of(number)
                })
            }
            // A clock is a duration; the time of a day is not.
            LabelledNumber::Clock(_) => {
                let facts = self.facts(key);
                (facts.is_duration && !facts.is_time).then(|| value_of(number))
            }
        }
    }

    fn facts(&mut self, key: &str) -> Facts {
        if let Some(facts) = self.facts.get(key) {
            return *facts;
        }
        if self.facts.len() >= MAX_KEYS {
            self.facts.clear();
        }
        let facts = Facts::for_key(key, &self.mapping);
        self.facts.insert(key.to_owned(), facts);
        facts
    }
}

/// Returns whether a number counts the steps of an epoch: `[10/100]`, or `Batch 10/100` and `Train: [10/100]` if no rule knows
/// the label.
pub(super) fn is_count(number: &Labelled<'_>) -> bool {
    let is_of_epoch = number.label.is_empty()
        || is_batch(number.label)
        || is_evaluation(without_noise(number.label)) == Some(false);
    is_of_epoch && matches!(number.number, LabelledNumber::Fraction(..))
}

/// Returns whether a label names the batches of an epoch.
pub(super) fn is_batch(label: &str) -> bool {
    let last = label.rsplit(char::is_whitespace).next();
    last.is_some_and(|word| is_one_of(&BATCHES, word))
}

/// Returns the rate of data after a number: `GB/sec`.
fn data_rate<'a>(number: &Labelled<'a>) -> Option<&'a str> {
    let (counted, _) = number.measure.split_once('/')?;
    let is_of_bytes = unit::conversion(counted, BYTES).is_some();
    (is_of_bytes && !number.measure.contains(' ')).then_some(number.measure)
}

/// Strips the unit of the number before a label: `images/s` in `ips : 1231.7 images/s data_time : 0.01`.
fn without_rate(label: &str) -> &str {
    let words = label.split_once(char::is_whitespace);
    words
        .filter(|(unit, _)| is_rate(unit))
        .map_or(label, |(_, rest)| rest.trim_start())
}

/// Returns whether all words of a label are words for a rate.
fn is_speed(label: &str) -> bool {
    let mut words = label
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.all(|word| is_one_of(&SPEEDS, word) || is_evaluation(word) == Some(false))
}

/// Returns the epoch before a count: 3 in `Train: 3 [10/100]`.
pub(super) fn epoch_before_count(number: &Labelled<'_>, next: Option<&Labelled<'_>>) -> Option<f64> {
    let is_of_training = is_evaluation(number.label) == Some(false);
    let is_counted = next.is_some_and(|next| next.label.is_empty() && is_count(next));
    match number.number {
        LabelledNumber::Value(epoch, "") if is_of_training && is_counted && epoch.fract() == 0.0 => {
            Some(epoch)
        }
        _ => None,
    }
}

/// Returns the step between the place in the source and the values, as clu prints it: 100 in
/// `logging_writer.py:48] [100] loss=2.5`.
pub(super) fn step_after_place(numbers: &[Labelled<'_>], at: usize) -> Option<f64> {
    let [place, number, value] = numbers.get(at.checked_sub(1)?..at + 2)? else {
        return None;
    };
    let is_between =
        place.label.ends_with(".py") && number.label.is_empty() && number.context == "]" && value.is_assigned;
    match number.number {
        LabelledNumber::Value(step, "") if is_between && number.is_integer => Some(step),
        _ => None,
    }
}

/// Returns the step at the beginning of a line: 100 in `100: loss 2.5`.
pub(super) fn step_at_start(numbers: &[Labelled<'_>], at: usize) -> Option<f64> {
    let [number, value, ..] = numbers.get(at..)? else {
        return None;
    };
    let is_start = at == 0 && number.label.is_empty() && number.context.trim().is_empty();
    match number.number {
        LabelledNumber::Value(step, "")
            if is_start && number.is_integer && value.context.starts_with(':') =>
        {
            Some(step)
        }
        _ => None,
    }
}

/// Returns a number without a row under its label, or under the key of an evaluation.
fn unknown<'a>(number: &Labelled<'a>, section: Section) -> Option<Field<'a>> {
    let key = without_noise(number.label);
    let is_name = key.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let is_location = key.contains(".py") || key.contains("://");
    // The percentage of a bar repeats its count.
    let is_of_bar = number.is_progress && matches!(number.number, LabelledNumber::Value(..));
    let is_value = !is_of_bar && !matches!(number.number, LabelledNumber::Clock(_));
    if !is_name || is_location || !is_value {
        return None;
    }
    let key = match section == Section::Training || names_evaluation(key) {
        true => Cow::Borrowed(key),
        false => Cow::Owned([EVAL_PREFIX, key].concat()),
    };
    Some((key, value_of(number)))
}

fn value_of<'a>(number: &Labelled<'a>) -> FieldValue<'a> {
    match number.number {
        LabelledNumber::Value(value, "") | LabelledNumber::Clock(value) => FieldValue::Number(value),
        LabelledNumber::Fraction(done, total) => FieldValue::Number(done / total),
        LabelledNumber::Value(..) => FieldValue::Text(number.text()),
    }
}
