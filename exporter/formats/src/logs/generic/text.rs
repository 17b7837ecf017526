//! Parses printed text: the object in a line, else its labelled numbers. `labelled` finds the numbers, this file their keys.

use pulsetrain_mapping::{DICTIONARY, Field, FieldValue, Mapping, MappingTarget, trainer};
use std::{borrow::Cow, sync::Arc};

use pulsetrain_semconv::{Metric, metric};

use super::{
    blocks::Blocks,
    epoch_steps::EpochSteps,
    evaluation_line::{are_of_evaluation, is_averaged, is_result_of_evaluation},
    heading::Headings,
    key_use::KeyUse,
    label_keys::{LabelKeys, epoch_before_count, is_batch, is_count, step_after_place, step_at_start},
    labelled::{COUNT, Labelled, LabelledNumber, is_rate, labelled},
    objects::{PrintedLine, is_truncated, split_of_object},
    part::Parts,
    phrase::{PHASE, are_only_values, phase_of},
    printed_number::DecimalMark,
    record::Records,
    record_keys::RecordKeys,
    section::{
        EVAL_PREFIX, Section, counts_evaluation, ends_with_evaluation, names_evaluation, names_training,
    },
};
use crate::logs::leading_time::without_source_line;
use crate::logs::lines::{Line, LineFormat};
use pulsetrain_record::{Rank, Recorder, SkipReason};

/// Metrics that a line without a result can also have: progress bars and settings.
static CONTEXT: &[&Metric] = &[
    &metric::TRAIN_EPOCH,
    &metric::TRAIN_PROGRESS,
    &metric::TRAIN_ETA,
    &metric::TRAIN_ELAPSED_TIME,
    &metric::TRAIN_PLANNED_STEPS,
    &metric::TRAIN_BATCH_SIZE,
    &metric::TRAIN_THROUGHPUT_STEPS,
];

/// Metrics that make a line a record only together with a step.
static WITH_STEP: &[&Metric] = &[
    &metric::TRAIN_LEARNING_RATE,
    &metric::TRAIN_STEP_DURATION,
    &metric::TRAIN_TOKENS,
    &metric::TRAIN_SAMPLES,
    &metric::TRAIN_THROUGHPUT_SAMPLES,
    &metric::MEMORY_FRAMEWORK_ALLOCATED,
    &metric::MEMORY_FRAMEWORK_PEAK,
    &metric::MEMORY_FRAMEWORK_RESERVED,
];

/// The ends of the names of Python classes for settings.
const SETTINGS: [&str; 6] = ["Namespace", "Config", "Args", "Arguments", "Settings", "Options"];

/// Words for the steps of reinforcement learning, before an object with their values.
const ROUNDS: [&str; 4] = ["rollout", "rollouts", "round", "eval"];

/// The key of an epoch without a label.
const EPOCH: &str = "epoch";

/// Parses printed text.
#[derive(Debug)]
pub(super) struct TextLines {
    pub(super) records: Records,
    pub(super) keys: LabelKeys,
    pub(super) blocks: Blocks,
    pub(super) headings: Headings,
    epochs: EpochSteps,
    /// The section of indented lines.
    section: Section,
    /// Whether the last numbers are of an evaluation.
    is_in_evaluation: bool,
    /// Whether a record was an object.
    has_objects: bool,
    /// The numbers without a label in the newest line, after its first value.
    unlabelled: u64,
    pub(super) mark: DecimalMark,
    pub(super) parts: Parts,
    /// Whether words of other languages are replaced: no key of the mapping is one.
    has_english_keys: bool,
}

impl TextLines {
    pub(super) fn new(mapping: &Arc<Mapping>) -> Self {
        Self {
            records: Records::new(mapping),
            keys: LabelKeys::new(mapping),
            blocks: Blocks::default(),
            headings: Headings::default(),
            epochs: EpochSteps::default(),
            section: Section::Training,
            is_in_evaluation: false,
            has_objects: false,
            unlabelled: 0,
            mark: DecimalMark::default(),
            parts: Parts::default(),
            has_english_keys: trainer(DICTIONARY).mapping().words().fits(mapping),
        }
    }

    /// Reports a line whose object is incomplete, as a killed writer leaves it, in a log of objects. Returns whether it is one.
    pub(super) fn report_truncated(&self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let can_be = self.has_objects && self.records.mapping.lines().is_empty();
        let is_truncated = can_be && is_truncated(line.text);
        if is_truncated {
            recorder.report(SkipReason::MalformedRecord, line.position(), || {
                "the object in the line is incomplete; the line is skipped".to_owned()
            });
        }
        is_truncated
    }

    /// Returns whether a record was an object.
    pub(super) fn has_objects(&self) -> bool {
        self.has_objects
    }

    /// Returns the fields of a line that is a record.
    pub(super) fn fields<'a>(&mut self, text: &'a str) -> Option<Vec<Field<'a>>> {
        if let Some(row) = self.blocks.row(text) {
            let fields = vec![row];
            self.records.look_up(&fields);
            return Some(fields);
        }
        let section = match ends_with_evaluation(text) {
            true => Section::Evaluation,
            false => self.section_of(text),
        };
        let (mut fields, body) = self.records.match_line(text)?;
        if is_settings(body) {
            return None;
        }
        let mut line = PrintedLine::parse(body);
        let printed = without_source_line(line.texts[0]);
        line.texts[0] = printed;
        self.mark.observe(body);
        let numbers: Vec<_> = line
            .texts
            .iter()
            .flat_map(|text| labelled(text, self.mark))
            .collect();
        let is_summary = self.is_summary_of_evaluation(&numbers);
        let section = match is_summary {
            true => Section::Evaluation,
            false if self.is_bar_of_evaluation(&numbers) => Section::EvaluationBatches,
            false => section,
        };
        let mut totals = self.add_labelled(&numbers, section, &mut fields);
        self.is_in_evaluation &= !is_summary;
        if line.has_object
            && let Some(number) = numbers.last()
        {
            name_step_of_object(number, printed, &mut fields);
        }
        fields.append(&mut line.fields);
        let is_of_evaluation = are_of_evaluation(&numbers, section);
        let split = line.has_object.then(|| split_of_object(printed)).flatten();
        match split {
            Some(true) => self.keys.rename_to_evaluation(&mut fields),
            None if is_of_evaluation => self.keys.rename_to_evaluation(&mut fields),
            _ => self.keys.rename_if_marked(&mut fields),
        }
        self.records.name_role(&mut fields);
        let values = fields.len();
        let is_value_of_block = self.add_heading(text, &numbers, &mut fields, &mut totals);
        let has_heading = fields.len() > values;
        self.records.look_up(&fields);
        self.records.observe_totals(&fields, &totals);
        self.record_epoch(&fields, &totals);
        let is_record = is_value_of_block || is_result_of_evaluation(&numbers) || self.is_record(&fields);
        if !is_record && !self.has_evaluation(&numbers, &fields) {
            if !has_heading {
                self.record_heading(text, &numbers, &fields, &totals);
            }
            if !self.has_only_values(&numbers, &fields, body) {
                self.records.count_unused(&numbers, &fields);
                return None;
            }
        }
        self.name_parts(body, &mut fields);
        if is_of_evaluation || !is_record {
            self.remove_count_of_evaluation(&mut fields);
        }
        self.place_step(&mut fields, &totals);
        self.has_objects |= line.has_object;
        if has_heading || self.records.keys.step().is_some() {
            self.end_of_record(!has_heading);
        }
        self.records.unlabelled = self.unlabelled;
        Some(fields)
    }

    /// Replaces the count of an epoch by the step of training, and removes the count of another loop.
    fn place_step(&mut self, fields: &mut Vec<Field<'_>>, totals: &[Option<f64>]) {
        if let Some(step) = self.records.keys.step()
            && let Some(done) = fields[step].1.number()
        {
            let total = totals.get(step).copied().flatten();
            let total = total.filter(|total| *total > 0.0);
            let is_count = fields[step].0 == COUNT && total.is_some();
            let is_other = is_count && total.is_some_and(|total| self.epochs.is_other_loop(total));
            self.records.is_of_other_loop = is_other;
            let done = match is_other {
                true => None,
                false => self.epochs.step(done, total, is_count),
            };
            match done {
                Some(done) => fields[step].1 = FieldValue::Number(done),
                None => {
                    fields.remove(step);
                    self.records.look_up(fields);
                }
            }
        }
    }

    /// Removes a step below the last one from a line of an evaluation: the number of a batch does not restart the training.
    fn remove_count_of_evaluation(&mut self, fields: &mut Vec<Field<'_>>) {
        let step = self.records.keys.step();
        let step = step.and_then(|step| fields[step].1.number());
        if step.is_some_and(|step| self.records.is_below_last_step(step)) {
            fields.retain(|(key, _)| !self.keys.is_step(key));
            self.records.look_up(fields);
        }
    }

    /// Returns whether a line such as ` * Acc@1 71.2 Acc@5 90.1` sums up the evaluation before it.
    fn is_summary_of_evaluation(&mut self, numbers: &[Labelled<'_>]) -> bool {
        // The time and the level of a logger can be before the star.
        let is_after_star = |number: &Labelled<'_>| {
            let before = number.context.trim_end().strip_suffix('*');
            before.is_some_and(|before| before.is_empty() || before.ends_with(char::is_whitespace))
        };
        self.is_in_evaluation
            && numbers.iter().any(is_after_star)
            && !numbers.iter().any(|number| {
                let label = number.label;
                is_count(number) || self.keys.is_step(label) || self.keys.is_epoch(label)
            })
    }

    /// Returns whether a line is the bar of an evaluation without a label: it has another total than the finished bar of training
    /// before it, and no epoch has begun since then.
    fn is_bar_of_evaluation(&mut self, numbers: &[Labelled<'_>]) -> bool {
        let mut counts = numbers
            .iter()
            .filter(|number| is_count(number) && !number.is_remark);
        let (Some(count), None) = (counts.next(), counts.next()) else {
            return false;
        };
        let LabelledNumber::Fraction(_, total) = count.number else {
            return false;
        };
        if !self.epochs.has_epochs() || !self.epochs.is_other_loop(total) {
            return false;
        }
        let keys = &mut self.keys;
        !numbers.iter().any(|number| {
            let mut words = number.label.split_whitespace();
            names_training(number.context)
                || names_training(number.label)
                || words.any(|word| keys.is_epoch(word))
        })
    }

    /// Returns the section in which a line begins: that of the heading above indented lines.
    fn section_of(&mut self, text: &str) -> Section {
        if text.starts_with(char::is_whitespace) {
            return self.section;
        }
        self.section = Section::of_heading(text);
        Section::Training
    }

    /// Adds the fields of labelled numbers, and returns the total of each field that is a fraction.
    pub(super) fn add_labelled<'a>(
        &mut self,
        numbers: &[Labelled<'a>],
        mut section: Section,
        fields: &mut Vec<Field<'a>>,
    ) -> Vec<Option<f64>> {
        self.unlabelled = 0;
        let mut totals = vec![None; fields.len()];
        // `(4500/10000)` explains the number before it if the line has another count.
        let has_count = numbers.iter().any(|number| is_count(number) && !number.is_remark);
        let mut indexed = None;
        let (mut group, mut phase) = ("", "");
        for (at, number) in numbers.iter().enumerate() {
            if number.is_remark && is_count(number) && has_count {
                continue;
            }
            if let Some(next) = numbers.get(at + 1)
                && (self.keys.is_index(number, next, section) || is_averaged(number, next, section))
            {
                indexed = Some(Labelled {
                    label: number.label,
                    context: number.context,
                    ..next.clone()
                });
                continue;
            }
            let indexed = indexed.take();
            let number = indexed.as_ref().unwrap_or(number);
            section = section.after(number);
            group = group_of(number.context, group);
            if section == Section::Training && self.add_batch(number, has_count, fields) {
                totals.resize(fields.len(), None);
                continue;
            }
            let epoch = epoch_before_count(number, numbers.get(at + 1)).filter(|_| self.keys.is_epoch(EPOCH));
            let step = step_after_place(numbers, at).or_else(|| step_at_start(numbers, at));
            let step = step.filter(|_| self.keys.is_step(COUNT));
            let field = match (epoch, step) {
                (Some(epoch), _) => Some((Cow::Borrowed(EPOCH), FieldValue::Number(epoch))),
                (None, Some(step)) => Some((Cow::Borrowed(COUNT), FieldValue::Number(step))),
                (None, None) => self.keys.field(number, section),
            };
            let are_rates = are_rates(number, numbers.get(at + 1));
            phase = phase_of(number.context).unwrap_or(phase);
            let Some(mut field) = field.filter(|_| !are_rates) else {
                self.unlabelled += u64::from(are_rates || !fields.is_empty() && is_unlabelled(number));
                continue;
            };
            if !group.is_empty() && fields.iter().any(|(key, _)| *key == field.0) {
                field.0 = Cow::Owned([group, ".", &field.0].concat());
            }
            if !phase.is_empty() {
                field.0 = Cow::Owned([phase, PHASE, &field.0].concat());
            }
            totals.push(match number.number {
                LabelledNumber::Fraction(_, total) => Some(total),
                LabelledNumber::Value(..) | LabelledNumber::Clock(_) => None,
            });
            fields.push(field);
        }
        if !numbers.is_empty() {
            self.is_in_evaluation = section != Section::Training;
        }
        self.name_epoch(fields);
        let keys = &mut self.keys;
        let has_step = fields.iter().any(|(key, _)| key != COUNT && keys.is_step(key));
        if has_step {
            let mut kept = fields.iter().map(|(key, _)| key != COUNT);
            totals.retain(|_| kept.next().unwrap_or(true));
            fields.retain(|(key, _)| key != COUNT);
        }
        totals
    }

    /// Adds the fields of a batch in an epoch: of `Epoch 1, batch 50`, or of `Batch 0/100` if 0 is the epoch. Returns whether the
    /// number is such a batch.
    fn add_batch(&mut self, number: &Labelled<'_>, has_count: bool, fields: &mut Vec<Field<'_>>) -> bool {
        let keys = &mut self.keys;
        if !is_batch(number.label) || !keys.is_step(COUNT) {
            return false;
        }
        let is_after_epoch = fields.last().is_some_and(|(key, _)| keys.is_epoch(key));
        let batch = match number.number {
            LabelledNumber::Value(batch, "") if is_after_epoch && number.is_integer && !has_count => batch,
            LabelledNumber::Fraction(epoch, batch)
                if !fields.iter().any(|(key, _)| keys.is_epoch(key))
                    && keys.is_epoch(EPOCH)
                    && self.epochs.is_epoch_and_batch(epoch, batch) =>
            {
                fields.push((Cow::Borrowed(EPOCH), FieldValue::Number(epoch)));
                batch
            }
            _ => return false,
        };
        fields.push((Cow::Borrowed(COUNT), FieldValue::Number(batch)));
        true
    }

    /// Names the first of two counts, as in `[0/5][50/1583]`, the epoch.
    fn name_epoch(&mut self, fields: &mut [Field<'_>]) {
        let mut counts = fields.iter_mut().filter(|(key, _)| key == COUNT);
        if let (Some(first), Some(_)) = (counts.next(), counts.next())
            && self.keys.is_epoch(EPOCH)
        {
            first.0 = Cow::Borrowed(EPOCH);
        }
    }

    /// Notes the epoch of a line, which need not be a record: steps may start over with it.
    fn record_epoch(&mut self, fields: &[Field<'_>], totals: &[Option<f64>]) {
        for (number, (_, value)) in fields.iter().enumerate() {
            let known = self.records.keys.info_mut(number);
            if known
                .state
                .metric()
                .is_some_and(|metric| metric.ordinal == metric::TRAIN_EPOCH.ordinal)
                && let Some(epoch) = value.number()
            {
                known.record(value);
                known.outcome.is_used = true;
                self.epochs.begin(epoch, totals.get(number).copied().flatten());
            }
        }
    }

    /// Returns which fields of a record are results: those that a rule knows, losses of any name, and values of runs.
    pub(super) fn results(&mut self, fields: &[Field<'_>]) -> Vec<usize> {
        let mut is_result = |field: &usize| {
            let metric = self.records.keys.info_mut(*field).state.metric();
            metric.map_or_else(
                || is_loss(&fields[*field]) || self.records.has_runs,
                |metric| !is_context(metric) && !is_one_of(metric, WITH_STEP),
            )
        };
        (0..fields.len()).filter(|field| is_result(field)).collect()
    }

    /// Returns whether a line has the step or epoch and a value of an evaluation, of any name: `[eval] step 100 bleu=31.5`,
    /// `Epoch(val) [1][500] bbox_mAP: 0.41`. A line with another count is of a batch.
    fn has_evaluation(&mut self, numbers: &[Labelled<'_>], fields: &[Field<'_>]) -> bool {
        let keys = &mut self.keys;
        let mut is_place = |key: &str| key != COUNT && (keys.is_step(key) || keys.is_epoch(key));
        let is_batch = numbers.iter().any(|number| {
            matches!(number.number, LabelledNumber::Fraction(..))
                && (counts_evaluation(number.label).is_some() || !is_place(number.label))
        });
        let is_value = |(key, value): &Field<'_>| {
            let name = key.strip_prefix(EVAL_PREFIX);
            let is_named = name.is_some() || names_evaluation(key);
            // A longer label is a sentence.
            is_named && !name.unwrap_or(key).contains(' ') && value.number().is_some()
        };
        let (mut has_place, mut has_value) = (false, false);
        for field in fields {
            match is_place(&field.0) {
                true => has_place = true,
                false => has_value |= is_value(field),
            }
        }
        !is_batch && has_place && has_value
    }

    /// Returns whether a line between records has only numbers under keys: `SPS: 4521`, `[Evaluator] Episode Return = -21`.
    fn has_only_values(&mut self, numbers: &[Labelled<'_>], fields: &[Field<'_>], line: &str) -> bool {
        let is_value = |field: usize, keys: &mut RecordKeys| {
            let metric = keys.info_mut(field).state.metric();
            let is_speed = |metric: &Metric| metric.ordinal == metric::TRAIN_THROUGHPUT_STEPS.ordinal;
            metric.is_none_or(|metric| is_speed(metric) || !is_context(metric))
        };
        let keys = &mut self.keys;
        self.records.has_records()
            && !fields.is_empty()
            && fields.len() == numbers.len()
            && (are_only_values(numbers, line) || fields.iter().all(|(key, _)| key.contains(PHASE)))
            && !fields
                .iter()
                .any(|(key, _)| keys.is_step(key) || keys.is_epoch(key))
            && (0..fields.len()).all(|field| is_value(field, &mut self.records.keys))
    }

    /// Returns whether the fields have a result of training, or a step and a measurement.
    fn is_record(&mut self, fields: &[Field<'_>]) -> bool {
        let has_step = self
            .records
            .keys
            .step()
            .is_some_and(|step| fields[step].0 != COUNT);
        (0..fields.len()).any(|field| {
            let resolved = self.records.keys.info_mut(field).state.resolved.as_ref();
            match resolved.map(|resolved| &resolved.mapping.target) {
                Some(MappingTarget::Metric(metric) | MappingTarget::State(metric, _)) => {
                    !is_context(metric) && (has_step || !is_one_of(metric, WITH_STEP))
                }
                Some(MappingTarget::Custom(_)) => true,
                Some(MappingTarget::Option(_) | MappingTarget::Step | MappingTarget::Dropped(_)) => false,
                None => is_loss(&fields[field]),
            }
        })
    }
}

/// Returns whether a number has no label. Progress, and a number in brackets after another one, repeat or explain a value.
fn is_unlabelled(number: &Labelled<'_>) -> bool {
    let is_value = matches!(number.number, LabelledNumber::Value(..));
    let is_labelled = number.label.contains(char::is_alphabetic);
    is_value && !is_labelled && !number.is_remark && !number.is_progress
}

/// Returns whether a fraction is two rates instead of a count, as `1200/900 tok/s` of OpenNMT.
fn are_rates(number: &Labelled<'_>, next: Option<&Labelled<'_>>) -> bool {
    let is_label = next.is_some_and(|next| next.label == number.measure);
    let is_fraction = matches!(number.number, LabelledNumber::Fraction(..));
    is_fraction && number.label.is_empty() && is_rate(number.measure) && !is_label
}

/// Returns the word before the bracket that a number is in, given that of the number before it: `tot_loss` in
/// `tot_loss[loss=2.5, acc=0.5]`.
fn group_of<'a>(context: &'a str, before: &'a str) -> &'a str {
    let Some(at) = context.rfind(['[', ']']) else {
        return before;
    };
    if context[at..].starts_with(']') {
        return "";
    }
    let mut words = context[..at].rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.next().unwrap_or_default()
}

/// Returns whether a field without a rule is a loss: `Loss_D`, `D loss`. A longer label is a sentence.
fn is_loss((key, value): &Field<'_>) -> bool {
    names_loss(key) && value.number().is_some()
}

/// Returns whether a key is the name of a loss.
pub(super) fn names_loss(key: &str) -> bool {
    let key = key.strip_prefix(EVAL_PREFIX).unwrap_or(key);
    let is_short = key.split_whitespace().nth(2).is_none();
    let mut words = key.split(|letter: char| !letter.is_alphanumeric());
    is_short && words.any(|word| word.eq_ignore_ascii_case("loss"))
}

/// Returns whether a metric is of progress bars and settings.
pub(super) fn is_context(metric: &Metric) -> bool {
    is_one_of(metric, CONTEXT)
}

fn is_one_of(metric: &Metric, all: &[&Metric]) -> bool {
    all.iter().any(|one| one.ordinal == metric.ordinal)
}

impl LineFormat for TextLines {
    fn is_complete(text: &str) -> bool {
        text.trim_end().ends_with(['}', ']'])
    }

    fn is_record_start(text: &str) -> bool {
        text.bytes().any(|byte| byte.is_ascii_digit())
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        if self.report_truncated(line, recorder) {
            return false;
        }
        let text = match self.has_english_keys {
            true => trainer(DICTIONARY).mapping().words().english(line.text),
            false => Cow::Borrowed(line.text),
        };
        let Some(fields) = self.fields(&text) else {
            return false;
        };
        self.records.record(&fields, line, recorder);
        true
    }

    fn report_left(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) {
        self.records.report_unmatched(line, recorder);
        self.records.report_unused(recorder);
    }

    fn rank(&mut self, text: &str) -> Option<Rank> {
        self.records.mapping.rank()?;
        let (mut fields, body) = self.records.match_line(text)?;
        let mut line = PrintedLine::parse(body);
        let numbers = line.texts.iter().flat_map(|text| labelled(text, self.mark));
        let named = numbers.filter_map(|number| match number.number {
            LabelledNumber::Value(value, "") => {
                Some((Cow::Borrowed(number.label), FieldValue::Number(value)))
            }
            _ => None,
        });
        fields.extend(named);
        fields.append(&mut line.fields);
        self.records.rank(&fields)
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        self.records.key_uses()
    }
}

/// Names the number before an object the step: `rollout 11: {'reward': 0.5}`.
fn name_step_of_object(number: &Labelled<'_>, before: &str, fields: &mut [Field<'_>]) {
    let is_counter = ROUNDS
        .iter()
        .any(|round| round.eq_ignore_ascii_case(number.label));
    let is_step = is_counter && number.is_integer && before.trim_end().ends_with(':');
    if let [.., (key, _)] = fields
        && is_step
    {
        *key = Cow::Borrowed(COUNT);
    }
}

/// Returns whether a line is a printed object of settings: `Namespace(lr=0.01, epochs=500)`.
fn is_settings(text: &str) -> bool {
    let text = text.trim();
    let Some((name, _)) = text.split_once('(').filter(|_| text.ends_with(')')) else {
        return false;
    };
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    is_name && SETTINGS.iter().any(|ending| name.ends_with(ending))
}
