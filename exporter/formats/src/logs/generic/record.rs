//! Records the points, spans and events of the records of a log of unknown format.

use std::sync::Arc;

use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};
use pulsetrain_semconv::{Metric, attribute, event, metric};

use super::{
    clock,
    field::{RecordContext, RecordedField},
    field_role::{FieldRole, RecordHeader},
    labelled::Labelled,
    record_keys::RecordKeys,
    text::TextLines,
};
use crate::logs::{lines::Line, spans};
use pulsetrain_mapping::{Field, FieldValue, Mapping, MetricMapper, RecordMeta, SpanAttributes};
use pulsetrain_record::{Recorder, SkipReason};

/// The reason of counts that are no steps of training.
const OTHER_LOOP: &str = "count_of_another_loop";

/// The reason of numbers without a label.
const UNLABELLED: &str = "unlabelled_number";

/// The reason of numbers with a label in lines that are no records.
const NO_RECORD: &str = "line_without_usual_key";

/// The state of a log between records.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) mapping: Arc<Mapping>,
    pub(super) keys: RecordKeys,
    steps: MetricMapper,
    /// The attributes of the newest record's spans.
    spans: SpanAttributes,
    texts: Vec<usize>,
    /// The metrics of the newest record whose attributes do not change, and their fields.
    recorded: Vec<(u16, usize)>,
    /// The rank of the last step's key, and the step.
    last_step: Option<(usize, f64)>,
    /// Whether the last step was of another counter.
    is_other_counter: bool,
    /// Whether the record has the count of another loop than training, which is not a step.
    pub(super) is_of_other_loop: bool,
    /// Whether the log has values of several runs.
    pub(super) has_runs: bool,
    /// The numbers without a label in the record.
    pub(super) unlabelled: u64,
    /// The numbers with a label in the newest line, which is not a record.
    unused: u64,
    has_records: bool,
    /// The number of steps in total, if a key has it.
    total_steps: Option<f64>,
    /// Whether the log counts other steps than those of training, such as the steps of an environment.
    has_other_steps: bool,
    /// Whether the next line repeats an earlier record.
    pub(super) skips_next: bool,
    /// Whether no pattern matches the newest line.
    pub(super) is_unmatched: bool,
    /// Finds values of training in lines that no pattern matches.
    pub(super) dictionary: Option<Box<TextLines>>,
    /// Whether the steps of records are those of the run.
    pub(super) counts_steps: bool,
}

impl Records {
    pub(super) fn new(mapping: &Arc<Mapping>) -> Self {
        Self {
            mapping: Arc::clone(mapping),
            keys: RecordKeys::default(),
            steps: MetricMapper::new("custom"),
            spans: SpanAttributes::default(),
            texts: Vec::new(),
            recorded: Vec::new(),
            last_step: None,
            is_other_counter: false,
            is_of_other_loop: false,
            has_runs: false,
            unlabelled: 0,
            unused: 0,
            has_records: false,
            total_steps: None,
            has_other_steps: false,
            skips_next: false,
            is_unmatched: false,
            dictionary: None,
            counts_steps: true,
        }
    }

    /// Returns whether the log had a record.
    pub(super) const fn has_records(&self) -> bool {
        self.has_records
    }

    /// Counts the numbers with a label of a line that is not a record. Before the first record they are settings.
    pub(super) fn count_unused(&mut self, numbers: &[Labelled<'_>], fields: &[Field<'_>]) {
        let is_labelled = |number: &&Labelled<'_>| number.label.contains(char::is_alphabetic);
        if self.has_records {
            // An object has numbers without labels.
            let values = fields
                .iter()
                .filter(|(_, value)| value.number().is_some())
                .count();
            self.unused = values.max(numbers.iter().filter(is_labelled).count()) as u64;
        }
    }

    /// Counts the numbers of an object that is not a record. Before the first record they are settings.
    pub(super) fn count_settings(&mut self, numbers: u64) {
        self.unused += if self.has_records { numbers } else { 0 };
    }

    /// Reports the numbers of a line that is not a record.
    pub(super) fn report_unused(&mut self, recorder: &mut Recorder<'_>) {
        recorder.skip_values(SkipReason::Ignored(NO_RECORD), std::mem::take(&mut self.unused));
    }

    /// Compares `Total steps` with the total of the step: another number counts other steps, as of an environment.
    pub(super) fn observe_totals(&mut self, fields: &[Field<'_>], totals: &[Option<f64>]) {
        let Some(total) = self
            .keys
            .step()
            .and_then(|step| totals.get(step).copied().flatten())
        else {
            return;
        };
        for (field, (_, value)) in fields.iter().enumerate() {
            let metric = self.keys.info_mut(field).state.metric();
            let is_total = metric.is_some_and(|metric| metric.ordinal == metric::TRAIN_PLANNED_STEPS.ordinal);
            self.has_other_steps |= is_total && value.number().is_some_and(|value| value != total);
        }
    }

    /// Returns whether a field is of other steps than those of training. The first value of `Total steps` does not show which.
    fn is_of_other_steps(&mut self, key: &str, value: &FieldValue<'_>, metric: Option<&Metric>) -> bool {
        let Some(metric) = metric.filter(|_| self.mapping.is_loose()) else {
            return false;
        };
        let key = key.to_ascii_lowercase();
        let is_total = metric.ordinal == metric::TRAIN_PLANNED_STEPS.ordinal && key.contains("total");
        let is_speed = metric.ordinal == metric::TRAIN_THROUGHPUT_STEPS.ordinal && key.starts_with("steps");
        if is_total && !self.has_other_steps {
            let total = std::mem::replace(&mut self.total_steps, value.number());
            self.has_other_steps = total.is_some() && total != self.total_steps;
            return total.is_none() || self.has_other_steps;
        }
        self.has_other_steps && (is_total || is_speed)
    }

    /// Keeps the values of some fields as `train.custom` under their keys, after the keys were looked up.
    pub(super) fn keep(&mut self, fields: &[Field<'_>], is_kept: impl Fn(&str) -> bool) {
        for (number, (key, _)) in fields.iter().enumerate() {
            if is_kept(key) {
                self.keys.info_mut(number).state.resolved = None;
                self.has_runs = true;
            }
        }
    }

    /// Records all fields, after their keys were looked up.
    pub(super) fn record(&mut self, fields: &[Field<'_>], line: &Line<'_>, recorder: &mut Recorder<'_>) {
        self.has_records = true;
        self.unused = 0;
        if std::mem::take(&mut self.is_of_other_loop) {
            recorder.report(SkipReason::Ignored(OTHER_LOOP), line.position(), || {
                "the bar has another total than the finished bar before it; its count is no step".to_owned()
            });
        }
        recorder.skip_values(
            SkipReason::Ignored(UNLABELLED),
            std::mem::take(&mut self.unlabelled),
        );
        let (time_field, time) = self.time(fields, line, recorder);
        let (step_field, step) = self.step(fields).unzip();
        let meta = RecordMeta {
            time_unix_nanos: time.unwrap_or_else(|| line.read_time()),
            step: step.map(|step| step as i64),
            position: line.position(),
        };
        if let Some(step) = meta.step.filter(|_| self.counts_steps) {
            self.steps.step(meta.time_unix_nanos, step, recorder);
        }
        self.spans.begin(None);
        self.texts.clear();
        self.recorded.clear();
        let mut duration = None;
        let header = RecordHeader::new(
            (time_field, step_field),
            fields.len(),
            &mut self.keys,
            &self.mapping,
        );
        let of_other_steps: Vec<bool> = (0..fields.len())
            .map(|number| {
                let metric = self.keys.info_mut(number).state.metric();
                self.is_of_other_steps(&fields[number].0, &fields[number].1, metric)
            })
            .collect();
        let context = RecordContext {
            meta,
            fields,
            mapping: &self.mapping,
        };
        for (number, (key, value)) in fields.iter().enumerate() {
            let role = header.role((number, &fields[number]), &mut self.keys, &self.recorded);
            let field = (key.as_ref(), value);
            let known = self.keys.info_mut(number);
            known.record(value);
            known.outcome.is_time |= time.is_some() && time_field == Some(number);
            known.outcome.is_step |= step_field == Some(number);
            let resolved = known.state.resolved.as_ref();
            let is_fixed = resolved.is_some_and(|resolved| resolved.mapping.attributes_from.is_empty());
            let recorded = match role {
                FieldRole::Header => continue,
                FieldRole::Unknown | FieldRole::Repeated => context.unknown(field, known, recorder),
                FieldRole::Mapped if of_other_steps[number] => context.unknown(field, known, recorder),
                FieldRole::Unmapped => context.unmapped(field, known, recorder),
                FieldRole::Mapped => context.known(field, known, recorder),
            };
            match recorded {
                RecordedField::Text => self.texts.push(number),
                RecordedField::Point(metric, value) => {
                    if is_fixed {
                        self.recorded.push((metric.ordinal, number));
                    }
                    known.state.add_to_spans(value, &mut self.spans);
                    if let Some(step) = meta.step.filter(|step| known.repeats(*step, value)) {
                        recorder.report(SkipReason::RepeatedStep, meta.position, || {
                            format!("step {step} came twice with different values of {}", metric.name)
                        });
                    }
                    if metric.ordinal == metric::TRAIN_STEP_DURATION.ordinal {
                        duration = Some(value);
                    }
                }
                RecordedField::Done => {}
            }
        }
        self.record_texts(fields, meta, recorder);
        // A span needs measured values: the time of the line and the duration of the step.
        if let (Some(step), Some(duration)) = (meta.step, duration)
            && (time.is_some() || line.is_live())
        {
            let spans = &mut self.spans.step;
            spans.push((&attribute::TRAIN_STEP, Out::Int(step)));
            spans::step(step, meta.time_unix_nanos, duration, spans, recorder);
        }
    }

    /// Returns the field of the step and the step. In a log without a mapping of the user, a number that is lower than the last
    /// step and under another key is of another counter, such as one of evaluations; a second such record is a restart.
    fn step(&mut self, fields: &[Field<'_>]) -> Option<(usize, f64)> {
        let is_guessed = self.mapping.is_loose() && self.mapping.named_format().is_none();
        let candidates = || {
            let steps = self.keys.steps();
            steps.filter_map(|(rank, field)| Some((rank, field, fields[field].1.number()?)))
        };
        let first = candidates().next()?;
        let is_of_counter = |(rank, _, step): &(usize, usize, f64)| match self.last_step {
            Some((last_rank, last)) if is_guessed => *rank == last_rank || *step >= last,
            _ => true,
        };
        let found = candidates().find(is_of_counter);
        if found.is_none() && !self.is_other_counter {
            self.is_other_counter = true;
            return None;
        }
        self.is_other_counter = false;
        let (rank, field, step) = found.unwrap_or(first);
        self.last_step = Some((rank, step));
        Some((field, step))
    }

    /// Returns the step of the last record with one.
    pub(super) fn last_step(&self) -> Option<f64> {
        self.last_step.map(|(_, step)| step)
    }

    /// Returns whether a step is below that of the last record with one.
    pub(super) fn is_below_last_step(&self, step: f64) -> bool {
        self.last_step.is_some_and(|(_, last)| step < last)
    }

    /// Records unmapped texts in one event.
    fn record_texts(&mut self, fields: &[Field<'_>], meta: RecordMeta, recorder: &mut Recorder<'_>) {
        if self.texts.is_empty() {
            return;
        }
        let mut entries: Vec<(&str, Out<'_>)> = Vec::with_capacity(self.texts.len());
        entries.extend(self.texts.iter().filter_map(|text| entry(&fields[*text])));
        let step = meta.step.map(|step| (&attribute::TRAIN_STEP, Out::Int(step)));
        recorder.record_event(
            &event::TRAIN_CUSTOM_RECORD,
            meta.time_unix_nanos,
            Some(Out::Map(&entries)),
            step.as_slice(),
        );
        for text in &self.texts {
            let state = &mut self.keys.info_mut(*text).state;
            state.report_unknown(&fields[*text].0, meta.position, recorder);
        }
    }

    /// Returns the field of the time and the time, or `None` if the record has none.
    fn time(
        &self,
        fields: &[Field<'_>],
        line: &Line<'_>,
        recorder: &mut Recorder<'_>,
    ) -> (Option<usize>, Option<UnixNanos>) {
        let form = self.mapping.time_form();
        if self.mapping.time().is_none() {
            let mut times = self.keys.times();
            let found = times.find_map(|field| Some((field, clock::read(form, &fields[field].1)?)));
            return found.map(|(field, time)| (field, recorder.instant(time))).unzip();
        }
        let Some(field) = self.keys.times().next() else {
            return (None, None);
        };
        let (key, value) = &fields[field];
        let time = clock::read(form, value).map(|time| recorder.instant(time));
        if time.is_none() {
            recorder.report(SkipReason::MalformedRecord, line.position(), || {
                format!(
                    "{key}: expected a time in the format of the mapping; the line's own time is used if it has one"
                )
            });
        }
        (Some(field), time)
    }
}

fn entry<'f>((key, value): &'f Field<'_>) -> Option<(&'f str, Out<'f>)> {
    match value {
        FieldValue::Text(text) => Some((key, Out::Text(text))),
        FieldValue::Number(_) => None,
    }
}
