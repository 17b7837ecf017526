//! Records the fields of records by the rows of a table; fields without a row are kept under their own names.

use std::ptr;

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue},
};
use pulsetrain_record::{
    PreparedSeries, Recorder, SkipReason, SourcePosition,
    key_cache::{KeyCache, MAX_NAMES},
};
use pulsetrain_semconv::{attribute, event, metric};

use crate::{Field, FieldTable, FieldValue, KeyState, RecordMeta, SpanAttributes, key_state::Recorded};

/// The rows for a record, and the properties that all of its points share.
#[derive(Clone, Copy, Debug)]
pub struct RecordContext<'a> {
    /// The rows.
    pub table: &'static FieldTable,
    /// The kind of the record, if fields without a row are kept under it.
    pub kind: Option<&'a str>,
    /// The index of the object that the record is about, such as a GPU; its attributes do not change.
    pub scope: Option<i64>,
    /// Attributes of all points, before those of the rows.
    pub attributes: &'a [Attribute<'a>],
}

/// Records the fields of one trainer's records.
#[derive(Debug)]
pub struct MetricMapper {
    /// The name under which fields without a row are kept, if it is not that of the trainer.
    owner: Option<&'static str>,
    keys: Vec<ScopeKeys>,
    last_step: Option<i64>,
    /// Whether decreasing steps start a new attempt.
    detects_restarts: bool,
    steps: PreparedSeries,
    /// The attributes of the newest record's spans.
    spans: SpanAttributes,
}

/// The keys of the records of one table, kind and optional scope.
#[derive(Debug)]
struct ScopeKeys {
    table: &'static FieldTable,
    kind: Option<Box<str>>,
    scope: Option<i64>,
    keys: KeyCache<KeyState>,
}

/// The limit for combinations of table, kind and scope with state; records beyond it are resolved each time.
const MAX_SCOPES: usize = 256;

impl Default for MetricMapper {
    /// Creates a mapper of a trainer's records. Fields without a row are kept under the name of the trainer.
    fn default() -> Self {
        Self {
            owner: None,
            keys: Vec::new(),
            last_step: None,
            detects_restarts: true,
            steps: PreparedSeries::new(&metric::TRAIN_STEPS, &[]),
            spans: SpanAttributes::default(),
        }
    }
}

impl MetricMapper {
    /// Creates a mapper that keeps fields without a row under the name `owner`.
    pub fn new(owner: &'static str) -> Self {
        Self {
            owner: Some(owner),
            ..Self::default()
        }
    }

    /// Disables the detection of attempts, for a log whose steps may decrease within an attempt: the log is read again, has
    /// several writers, or marks restarts explicitly.
    #[must_use]
    pub fn of_one_attempt(self) -> Self {
        Self {
            detects_restarts: false,
            ..self
        }
    }

    /// Removes the series of all scopes, since their attributes change.
    pub fn reset_scopes(&mut self) {
        self.keys.retain(|keys| keys.scope.is_none());
    }

    /// Records a completed step; steps between two logged ones count too. Call it before any values of the step are recorded:
    /// decreasing steps start a new attempt.
    pub fn step(&mut self, time_unix_nanos: UnixNanos, step: i64, recorder: &mut Recorder<'_>) {
        if self.detects_restarts && recorder.observe_step(step) {
            self.last_step = None;
        }
        let before = self.last_step.replace(step);
        if before == Some(step) {
            return;
        }
        // A step below the last one is the first after a restart.
        let grown = before
            .and_then(|before| step.checked_sub(before))
            .filter(|grown| *grown > 0);
        recorder.record(&metric::TRAIN_GLOBAL_STEP, time_unix_nanos, step as f64, &[]);
        recorder.record_prepared(&mut self.steps, time_unix_nanos, grown.unwrap_or(1) as f64);
    }

    /// Records every field with `attributes` before those of its row, and returns the attributes of the record's spans.
    pub fn record(
        &mut self,
        table: &'static FieldTable,
        meta: RecordMeta,
        fields: &[Field<'_>],
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) -> &SpanAttributes {
        let context = RecordContext {
            table,
            kind: None,
            scope: None,
            attributes,
        };
        self.record_in(&context, meta, fields, recorder)
    }

    /// Records every field of a record, and returns the attributes of its spans.
    pub fn record_in(
        &mut self,
        context: &RecordContext<'_>,
        meta: RecordMeta,
        fields: &[Field<'_>],
        recorder: &mut Recorder<'_>,
    ) -> &SpanAttributes {
        let Self {
            owner, keys, spans, ..
        } = self;
        let owner = owner.unwrap_or(&context.table.owner);
        spans.begin(meta.step);
        let mut passing = None;
        let scope_keys = match keys.iter().position(|known| known.is_of(context)) {
            Some(index) => &mut keys[index],
            None if keys.len() >= MAX_SCOPES => passing.insert(ScopeKeys::new(context)),
            None => {
                keys.push(ScopeKeys::new(context));
                keys.last_mut().expect("invariant: one was pushed")
            }
        };
        let name = |key: &str| match context.kind {
            Some(kind) => format!("{owner}.{kind}.{key}"),
            None => format!("{owner}.{key}"),
        };
        let mut texts = Vec::new();
        for field in fields {
            if !scope_keys.record(field, (context, meta), name, spans, recorder) {
                texts.push(field);
            }
        }
        let kind = context.kind.unwrap_or(owner);
        scope_keys.texts(&texts, (kind, meta), name, recorder);
        spans
    }
}

impl ScopeKeys {
    fn new(context: &RecordContext<'_>) -> Self {
        Self {
            table: context.table,
            kind: context.kind.map(Box::from),
            scope: context.scope,
            keys: KeyCache::default(),
        }
    }

    fn is_of(&self, context: &RecordContext<'_>) -> bool {
        ptr::eq(self.table, context.table)
            && self.scope == context.scope
            && self.kind.as_deref() == context.kind
    }

    /// Records a field; returns `false` for text without a row.
    #[inline]
    fn record(
        &mut self,
        field: &Field<'_>,
        (context, meta): (&RecordContext<'_>, RecordMeta),
        name: impl Fn(&str) -> String,
        spans: &mut SpanAttributes,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let (key, value) = field;
        let mut beyond = None;
        let state = self.state(key, &mut beyond);
        let Some(resolved) = &state.resolved else {
            let Some(number) = value.number() else {
                return false;
            };
            state.keep(
                (meta.time_unix_nanos, number),
                || name(key).into(),
                meta.position,
                recorder,
            );
            return true;
        };
        let Some(number) = value.number() else {
            let FieldValue::Text(text) = value else {
                return true;
            };
            let time = meta.time_unix_nanos;
            if !state.record_state((time, text), context.attributes, recorder)
                && !state.record_option((time, text), recorder)
            {
                not_a_number(key, text, meta.position, recorder);
            }
            return true;
        };
        let is_sentinel = resolved.mapping.sentinel == Some(number);
        let Some(converted) = resolved.mapping.convert(number).filter(|_| !is_sentinel) else {
            recorder.skip_value(SkipReason::NotMeasured);
            return true;
        };
        match state.record(
            (meta.time_unix_nanos, converted),
            (context.attributes, context.scope.is_some()),
            key,
            recorder,
        ) {
            Recorded::Point(_, value) => state.add_to_spans(value, spans),
            Recorded::Done => {}
            Recorded::Unfit => recorder.skip_value(SkipReason::NotSummable),
        }
        true
    }

    /// Returns the state of a key. The state of a key beyond the limit is temporary.
    #[inline]
    fn state<'s>(&'s mut self, key: &str, beyond: &'s mut Option<KeyState>) -> &'s mut KeyState {
        match self.keys.index_of(key) {
            Some(index) => self.keys.at(index),
            None if self.keys.len() >= MAX_NAMES => beyond.insert(KeyState::new(self.table.resolve(key))),
            None => {
                let index = self.keys.add(key, KeyState::new(self.table.resolve(key)));
                self.keys.at(index)
            }
        }
    }

    /// Records texts without a row in one event.
    fn texts(
        &mut self,
        texts: &[&Field<'_>],
        (kind, meta): (&str, RecordMeta),
        name: impl Fn(&str) -> String,
        recorder: &mut Recorder<'_>,
    ) {
        let mut entries: Vec<(&str, AttributeValue<'_>)> = Vec::with_capacity(texts.len());
        for (key, value) in texts {
            if let FieldValue::Text(text) = value {
                entries.push((key, AttributeValue::Text(text)));
                let mut beyond = None;
                let state = self.state(key, &mut beyond);
                state.report_unknown(&name(key), meta.position, recorder);
            }
        }
        if entries.is_empty() {
            return;
        }
        let mut attributes = vec![(&attribute::TRAIN_RECORD_KIND, AttributeValue::Text(kind))];
        attributes.extend(
            meta.step
                .map(|step| (&attribute::TRAIN_STEP, AttributeValue::Int(step))),
        );
        let (event, time) = (&event::TRAIN_CUSTOM_RECORD, meta.time_unix_nanos);
        recorder.record_event(event, time, Some(AttributeValue::Map(&entries)), &attributes);
    }
}

/// Counts a value that is not a number: `N/A` and similar texts are not measured, text that begins with digits is malformed.
fn not_a_number(key: &str, text: &str, position: SourcePosition, recorder: &mut Recorder<'_>) {
    let unsigned = text.trim_start_matches(['-', '+']);
    if unsigned.starts_with(|first: char| first.is_ascii_digit()) {
        recorder.report(SkipReason::MalformedRecord, position, || {
            format!("{key}: expected a number such as 1234.5, found {text:?}")
        });
    } else {
        recorder.skip_value(SkipReason::NotMeasured);
    }
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, sync::LazyLock};

    use super::*;
    use crate::MappingFile;
    use pulsetrain_record::Run;

    static TABLE: LazyLock<&'static FieldTable> = LazyLock::new(|| {
        let yaml = "values: [{key: ms, metric: train.step.duration, unit: ms}, {key: seen, metric: train.tokens, total: true}]";
        let mapping = MappingFile::parse(yaml).unwrap().build().unwrap();
        Box::leak(Box::new(mapping.table().clone()))
    });

    fn meta() -> RecordMeta {
        RecordMeta {
            time_unix_nanos: UnixNanos(1),
            ..RecordMeta::default()
        }
    }

    #[test]
    fn unknown_names_are_reported_once_and_recorded_every_time() {
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let mut mapper = MetricMapper::new("demo");
        for _ in 0..3 {
            let record = [
                (Cow::Borrowed("ms"), FieldValue::parse("12")),
                (Cow::Borrowed("novel"), FieldValue::parse("1.5")),
            ];
            mapper.record(&TABLE, meta(), &record, &[], &mut recorder);
        }
        let (counts, skipped) = recorder.finish();
        assert_eq!(counts.points, 6);
        assert_eq!(
            skipped.counts().collect::<Vec<_>>(),
            [(SkipReason::UnknownName, 1)]
        );
        assert!(skipped.problems()[0].message.contains("demo.novel"));
    }

    #[test]
    fn unknown_names_beyond_the_limit_are_counted_and_not_remembered() {
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let mut mapper = MetricMapper::new("demo");
        for number in 0..MAX_NAMES + 10 {
            let record = [(Cow::Owned(format!("key{number}")), FieldValue::Number(1.0))];
            mapper.record(&TABLE, meta(), &record, &[], &mut recorder);
        }
        assert_eq!(mapper.keys[0].keys.len(), MAX_NAMES);
        let (counts, skipped) = recorder.finish();
        let lost = MAX_NAMES as u64 + 10 - counts.points;
        assert_eq!(
            skipped.counts().collect::<Vec<_>>(),
            [
                (SkipReason::TooManyCustomNames, lost),
                (SkipReason::UnknownName, MAX_NAMES as u64 + 10)
            ]
        );
    }

    #[test]
    fn running_total_remembers_its_last_value() {
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let mut mapper = MetricMapper::new("demo");
        let mut growths = Vec::new();
        for total in [100.0, 150.0, 30.0] {
            let record = [(Cow::Borrowed("seen"), FieldValue::Number(total))];
            mapper.record(&TABLE, meta(), &record, &[], &mut recorder);
            growths.push(mapper.keys[0].keys.at(0).last_total());
        }
        assert_eq!(growths, [100.0, 150.0, 30.0]);
    }
}
