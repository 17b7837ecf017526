//! Records that are printed over several lines below the line with their step: `Step 1/200`, `=== METRICS STEP 1 ===`, `Epoch 0`.
//!
//! A heading has a step or an epoch and no result. The values after it belong to it until the next line with a step. A line of a
//! block has one value with its label, also with a bullet, or a mean in brackets after it: `• Loss: 2.5`, `| > loss: 2.5  (2.6)`.
//! After a record with its own step, a line with one value that the dictionary knows belongs to that step: `SPS: 4521`.

use pulsetrain_mapping::{Field, FieldValue};
use std::borrow::Cow;

use super::{
    labelled::{COUNT, Labelled, LabelledNumber},
    section::is_one_of,
    text::{TextLines, is_context},
};
use pulsetrain_semconv::metric;

/// The most words of the label of the step in a heading: `Learning iteration 3/1500`.
const MAX_WORDS_OF_STEP: usize = 2;

/// The most words of the label of a value in a block. A longer label is a sentence.
const MAX_WORDS_OF_VALUE: usize = 6;

/// The most values of a heading that are kept until its block begins.
const MAX_REST: usize = 256;

/// Words before a number of steps that is not the current step.
const LIMITS: [&str; 24] = [
    "warmup",
    "max",
    "maximum",
    "min",
    "total",
    "num",
    "number",
    "save",
    "saved",
    "saving",
    "start",
    "best",
    "every",
    "last",
    "per",
    "final",
    "resume",
    "until",
    "eval",
    "stop",
    "checkpoint",
    "loaded",
    "decay",
    "of",
];

/// The state of a log between lines.
#[derive(Debug, Default)]
pub(super) enum Headings {
    /// No step or epoch is in force.
    #[default]
    Nothing,
    /// Lines of a block follow.
    Block(Heading),
    /// The last record has its own step.
    Record,
}

/// The heading of a block.
#[derive(Debug, Default)]
pub(super) struct Heading {
    step: Option<BlockProgress>,
    /// The epoch, until it is recorded.
    epoch: Option<BlockProgress>,
    /// The other values in the line of the step, until they are recorded.
    rest: Vec<(String, f64)>,
}

/// A step or an epoch.
#[derive(Debug)]
struct BlockProgress {
    key: String,
    value: f64,
    total: Option<f64>,
}

impl Headings {
    /// Returns whether lines of a block follow.
    pub(super) fn is_in_block(&self) -> bool {
        matches!(self, Self::Block(_))
    }

    /// Ends the block after a record with its own step.
    pub(super) fn end_at_record(&mut self) {
        *self = Self::Record;
    }

    /// Drops the values of the heading that were recorded.
    fn end_of_first_record(&mut self) {
        if let Self::Block(heading) = self {
            heading.epoch = None;
            heading.rest.clear();
        }
    }
}

impl TextLines {
    /// Adds the step of the heading to a line after it, and its other values to the first one. Returns whether the line is a
    /// record for that.
    pub(super) fn add_heading(
        &mut self,
        text: &str,
        numbers: &[Labelled<'_>],
        fields: &mut Vec<Field<'_>>,
        totals: &mut Vec<Option<f64>>,
    ) -> bool {
        let is_value = self.is_value_line(text, numbers, fields);
        match &self.headings {
            Headings::Nothing => return false,
            Headings::Record => return is_value && self.is_known_value(&fields[0]),
            Headings::Block(_) => {}
        }
        if !self.records.mapping.is_loose()
            && !is_value
            && !numbers.is_empty()
            && !text.starts_with(char::is_whitespace)
        {
            self.headings = Headings::Nothing;
            return false;
        }
        let keys = &mut self.keys;
        if fields.iter().any(|(key, _)| key != COUNT && keys.is_step(key)) {
            self.headings = Headings::Nothing;
            return false;
        }
        let has_count = fields.iter().any(|(key, _)| key == COUNT);
        if fields.is_empty() || has_count {
            return false;
        }
        self.add_place(fields, totals);
        is_value
    }

    /// Adds the step and the epoch of the heading, and the values next to them.
    pub(super) fn add_place(&mut self, fields: &mut Vec<Field<'_>>, totals: &mut Vec<Option<f64>>) {
        let Headings::Block(heading) = &self.headings else {
            return;
        };
        let keys = &mut self.keys;
        let has_epoch = fields.iter().any(|(key, _)| keys.is_epoch(key));
        let epoch = heading.epoch.as_ref().filter(|_| !has_epoch);
        for progress in epoch.into_iter().chain(&heading.step) {
            let key = Cow::Owned(progress.key.clone());
            fields.insert(0, (key, FieldValue::Number(progress.value)));
            totals.insert(0, progress.total);
        }
        let rest = heading.rest.iter();
        fields.extend(rest.map(|(key, value)| (Cow::Owned(key.clone()), FieldValue::Number(*value))));
    }

    /// Ends the part of a block that only its first record has.
    pub(super) fn end_of_record(&mut self, has_own_step: bool) {
        match has_own_step {
            true => self.headings.end_at_record(),
            false => self.headings.end_of_first_record(),
        }
    }

    /// Returns whether a line has one value with its label.
    fn is_value_line(&mut self, text: &str, numbers: &[Labelled<'_>], fields: &[Field<'_>]) -> bool {
        let [(key, _)] = fields else { return false };
        // The time of day at the beginning of a line has no name.
        let is_of_clock = |number: &Labelled<'_>| {
            matches!(number.number, LabelledNumber::Clock(_)) && !number.label.contains(char::is_alphabetic)
        };
        let mut labelled = numbers
            .iter()
            .filter(|number| !number.label.is_empty() && !is_of_clock(number));
        let (Some(number), None) = (labelled.next(), labelled.next()) else {
            return false;
        };
        let are_remarks = numbers
            .iter()
            .all(|other| other.label == number.label || other.is_remark || is_of_clock(other));
        let words = number.label.split_whitespace().count();
        let is_bound = is_bound(text, number.label);
        let is_name = words == 1 && self.records.mapping.resolve(None, key).is_some();
        are_remarks && words <= MAX_WORDS_OF_VALUE && (is_bound || is_name)
    }

    /// Returns whether the dictionary knows a value that can be in a line of its own.
    fn is_known_value(&self, (key, _): &Field<'_>) -> bool {
        let resolved = self.records.mapping.resolve(None, key);
        let metric = resolved.and_then(|resolved| resolved.mapping.target.metric());
        self.records.mapping.is_loose()
            && metric.is_some_and(|metric| {
                !is_context(metric) || metric.ordinal == metric::TRAIN_THROUGHPUT_STEPS.ordinal
            })
    }

    /// Begins a block if the line can be its heading: it has a step or an epoch, and no sentence before it.
    pub(super) fn record_heading(
        &mut self,
        text: &str,
        numbers: &[Labelled<'_>],
        fields: &[Field<'_>],
        totals: &[Option<f64>],
    ) {
        let mut fractions = numbers
            .iter()
            .filter(|number| matches!(number.number, LabelledNumber::Fraction(..)));
        if fractions.any(|number| number.label.split_whitespace().count() > MAX_WORDS_OF_STEP) {
            return;
        }
        let progress = |field: usize| {
            let (key, value) = &fields[field];
            Some(BlockProgress {
                key: key.to_string(),
                value: value.number()?,
                total: totals.get(field).copied().flatten(),
            })
        };
        let step = self.records.keys.step().filter(|step| fields[*step].0 != COUNT);
        let epoch = (0..fields.len()).find(|field| self.keys.is_epoch(&fields[*field].0));
        let is_place = |field: &usize| Some(*field) == step || Some(*field) == epoch;
        let has_total = step.and_then(progress).is_some_and(|step| step.total.is_some());
        if !has_total && !self.is_heading(text, numbers) {
            return;
        }
        let keys = &mut self.keys;
        let rest = (0..fields.len()).filter(|field| !is_place(field) && !keys.is_step(&fields[*field].0));
        let rest = rest.filter_map(|field| Some((fields[field].0.to_string(), fields[field].1.number()?)));
        self.headings = Headings::Block(Heading {
            rest: match step.is_some() && self.records.mapping.is_loose() {
                true => rest.take(MAX_REST).collect(),
                false => Vec::new(),
            },
            step: step.and_then(progress),
            epoch: epoch.and_then(progress),
        });
    }

    /// Returns whether a line without a total is a heading: it has a step or an epoch under a short label in the singular, and is
    /// no sentence.
    fn is_heading(&mut self, text: &str, numbers: &[Labelled<'_>]) -> bool {
        let mut is_place = |number: &Labelled<'_>| {
            let words: Vec<&str> = number.label.split_whitespace().collect();
            let Some(last) = words.last().filter(|_| words.len() <= MAX_WORDS_OF_STEP) else {
                return false;
            };
            let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '/' | '.');
            let is_other = last.ends_with(['s', 'S']) || !last.chars().all(is_word);
            let is_limit = number.label.split(|letter: char| !letter.is_alphanumeric());
            let mut is_limit = is_limit.map(|word| is_one_of(&LIMITS, word));
            let is_value = matches!(
                number.number,
                LabelledNumber::Value(_, "") | LabelledNumber::Fraction(..)
            );
            is_value
                && !is_other
                && !is_limit.any(|is_limit| is_limit)
                && (self.keys.is_step(last) || self.keys.is_epoch(last))
        };
        let is_sentence = |number: &Labelled<'_>| {
            number.label.contains(char::is_alphabetic) && !is_bound(text, number.label)
        };
        let (places, others): (Vec<_>, Vec<_>) = numbers.iter().partition(|number| is_place(number));
        let ends = numbers.last().is_some_and(|last| last.measure.is_empty());
        self.records.mapping.is_loose() && !places.is_empty() && ends && !others.into_iter().any(is_sentence)
    }
}

/// Returns whether `:` or `=` follows a label in a line.
fn is_bound(text: &str, label: &str) -> bool {
    let after = text.find(label).map(|at| text[at + label.len()..].trim_start());
    after.is_some_and(|after| after.starts_with([':', '=']))
}
