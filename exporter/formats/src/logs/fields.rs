//! Fields of a record that have names upstream: what becomes of each is a [`Row`]; what has none is kept as it is.

mod table;

use std::borrow::Cow;

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, event, metric};

pub(super) use self::table::{Owner, Table, Tables};
use super::{number_text, row::Row};
use pulsetrain_record::{Place, PreparedSeries, Recorder, SkipReason, in_order::InOrder};

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A number; truth is 1 and 0.
    Number(f64),
    /// Text that is no number.
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    /// A number where the text is one, else the text.
    #[inline]
    pub(super) fn of(text: &'a str) -> Self {
        number_text::any(text).map_or(Self::Text(Cow::Borrowed(text)), Self::Number)
    }

    /// A number with one of these units or none, without its unit; else the text.
    pub(super) fn measured(text: &'a str, units: &[&str]) -> Self {
        match number_text::with_suffix(text) {
            Some((number, unit)) if unit.is_empty() || units.contains(&unit) => Self::Number(number),
            _ => Self::of(text),
        }
    }

    /// The number, if it is one.
    #[inline]
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => number_text::any(text),
        }
    }
}

/// A field of a record.
pub(super) type Field<'a> = (Cow<'a, str>, Value<'a>);

/// The most unknown keys that are remembered: many more than a recorder keeps values of.
const MOST_UNKNOWN: usize = 4096;

/// Where and when a record was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// Nanoseconds since 1970.
    pub(super) time_unix_nanos: u64,
    /// The step that it belongs to, where it says one.
    pub(super) step: Option<i64>,
    /// Its place in the log.
    pub(super) place: Place,
}

/// Records the fields of one system's records.
#[derive(Debug)]
pub(super) struct Fields {
    system: &'static str,
    /// The keys that no row knows, each with the name that it is kept under.
    unknown: InOrder<String>,
    /// The name of an unknown key beyond the limit.
    beyond: String,
    totals: Vec<(String, f64)>,
    last_step: Option<i64>,
    /// Whether steps that start over are of a new attempt.
    detects_restarts: bool,
    tables: Tables,
    steps: PreparedSeries,
    /// What the span of the newest record carries.
    on_span: Vec<Attribute<'static>>,
}

impl Fields {
    /// Fields of `system`, under whose name the unknown ones are kept.
    pub(super) fn of(system: &'static str) -> Self {
        Self {
            system,
            unknown: InOrder::default(),
            beyond: String::new(),
            totals: Vec::new(),
            last_step: None,
            detects_restarts: true,
            tables: Tables::default(),
            steps: PreparedSeries::new(&metric::TRAIN_STEPS, &[]),
            on_span: Vec::new(),
        }
    }

    /// The same fields of a log whose steps start over in one attempt too: because it is read again, has several writers, or
    /// tells restarts by itself.
    pub(super) fn of_one_attempt(self) -> Self {
        Self {
            detects_restarts: false,
            ..self
        }
    }

    /// Records that a step is done; steps between two that are logged count too. Called before anything of the step is recorded:
    /// steps that start over begin a new attempt.
    pub(super) fn step(&mut self, time_unix_nanos: u64, step: i64, recorder: &mut Recorder<'_>) {
        if self.detects_restarts && recorder.note_step(step) {
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

    /// Records every field, and answers with what the record's span carries.
    pub(super) fn record(
        &mut self,
        rows: &'static [Row],
        written: Written,
        fields: &[Field<'_>],
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) -> &mut Vec<Attribute<'static>> {
        let table = self.begin(rows, None, written);
        self.record_by(table, written, fields, attributes, recorder);
        &mut self.on_span
    }

    /// Records every field of a record that is about one of several, such as GPUs.
    pub(super) fn record_of(
        &mut self,
        owner: Owner<'_>,
        rows: &'static [Row],
        written: Written,
        fields: &[Field<'_>],
        recorder: &mut Recorder<'_>,
    ) {
        let table = self.begin(rows, Some(owner), written);
        self.record_by(table, written, fields, owner.attributes, recorder);
    }

    fn record_by(
        &mut self,
        table: usize,
        written: Written,
        fields: &[Field<'_>],
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) {
        let mut texts = Vec::new();
        for (number, field) in fields.iter().enumerate() {
            let place = self.tables.at(table).find(number, &field.0);
            if !self.field((table, place), field, written, attributes, recorder) {
                texts.push(field);
            }
        }
        self.texts(&texts, written, recorder);
    }

    /// Begins a record, and says which table it is recorded by.
    fn begin(&mut self, rows: &'static [Row], owner: Option<Owner<'_>>, written: Written) -> usize {
        self.on_span.clear();
        self.on_span
            .extend(written.step.map(|step| (&attribute::TRAIN_STEP, Out::Int(step))));
        self.tables.place(rows, owner.map(|owner| owner.number))
    }

    /// Records a field whose row is there, and answers whether it is recorded; text that nobody knows is not.
    #[inline]
    fn field(
        &mut self,
        (table, place): (usize, Option<usize>),
        field: &Field<'_>,
        written: Written,
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let (key, value) = field;
        match (place, value.number()) {
            (Some(place), Some(number)) => {
                self.number((table, place), number, written, attributes, recorder);
            }
            (Some(_), None) => no_number(field, written.place, recorder),
            (None, Some(number)) => self.unknown(key, written, number, recorder),
            (None, None) => return false,
        }
        true
    }

    /// Records a number that a row of a table knows; the span of its record carries it where the row says so.
    #[inline]
    fn number(
        &mut self,
        (table, place): (usize, usize),
        number: f64,
        written: Written,
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) {
        let row = &self.tables.at(table).rows()[place];
        let number = self.known(table, place, written, number, attributes, recorder);
        if let Some(attribute) = number.and_then(|number| row.span_attribute(number)) {
            self.on_span.push(attribute);
        }
    }

    /// Records a number that a row of a table knows, and answers with it in our unit.
    #[inline]
    fn known(
        &mut self,
        table: usize,
        place: usize,
        written: Written,
        number: f64,
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) -> Option<f64> {
        let row = &self.tables.at(table).rows()[place];
        let converted = row.measured(number, recorder)?;
        let value = if row.is_total {
            self.grown(row.key(), converted)
        } else {
            converted
        };
        self.tables
            .at(table)
            .record(place, written.time_unix_nanos, value, attributes, recorder);
        Some(converted)
    }

    /// By how much a total has grown; one that fell was counted anew.
    pub(super) fn grown(&mut self, key: &str, total: f64) -> f64 {
        let Some((_, last)) = self.totals.iter_mut().find(|(known, _)| known == key) else {
            self.totals.push((key.to_owned(), total));
            return total;
        };
        let grown = total - std::mem::replace(last, total);
        if grown < 0.0 { total } else { grown }
    }

    fn unknown(&mut self, key: &str, written: Written, number: f64, recorder: &mut Recorder<'_>) {
        let name = self.name_of_unknown(key, written.place, recorder);
        recorder.record_custom(written.time_unix_nanos, name, number);
    }

    /// Keeps texts that nobody knows, in one event.
    fn texts(&mut self, texts: &[&Field<'_>], written: Written, recorder: &mut Recorder<'_>) {
        if texts.is_empty() {
            return;
        }
        let mut entries: Vec<(&str, Out<'_>)> = Vec::with_capacity(texts.len());
        for (key, value) in texts {
            if let Value::Text(text) = value {
                entries.push((key, Out::Text(text)));
                self.name_of_unknown(key, written.place, recorder);
            }
        }
        let mut attributes = vec![(&attribute::TRAIN_RECORD_KIND, Out::Text(self.system))];
        attributes.extend(written.step.map(|step| (&attribute::TRAIN_STEP, Out::Int(step))));
        let body = Some(Out::Map(&entries));
        recorder.record_event(
            &event::TRAIN_CUSTOM_RECORD,
            written.time_unix_nanos,
            body,
            &attributes,
        );
    }

    /// Returns the name under which values of an unknown key are kept, and counts the key when it comes first. Keys beyond the
    /// limit are not remembered: they count each time.
    fn name_of_unknown(&mut self, key: &str, place: Place, recorder: &mut Recorder<'_>) -> &str {
        if let Some(known) = self.unknown.place(key) {
            return self.unknown.at(known);
        }
        let name = format!("{}.{key}", self.system);
        recorder.skip(SkipReason::UnknownName, place, || {
            format!("{name} is a name that the registry does not know; its values are kept as train.custom")
        });
        if self.unknown.len() >= MOST_UNKNOWN {
            self.beyond = name;
            return &self.beyond;
        }
        let known = self.unknown.add(key, name);
        self.unknown.at(known)
    }
}

/// The fields of `k: v, k: v` or of any such text: parts at `between`, each split at its first `within`.
pub(super) fn split<'a>(
    text: &'a str,
    between: &'a str,
    within: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    text.split(between).filter_map(move |part| {
        let (key, value) = part.split_once(within)?;
        Some((key.trim_ascii(), value.trim_ascii()))
    })
}

/// A value that is no number: `N/A` and the like say that nothing was measured, what has digits is not understood.
fn no_number((key, value): &Field<'_>, place: Place, recorder: &mut Recorder<'_>) {
    match value {
        Value::Text(text)
            if text
                .trim_start_matches(['-', '+'])
                .starts_with(|first: char| first.is_ascii_digit()) =>
        {
            recorder.skip(SkipReason::MalformedRecord, place, || {
                format!("{text}, which stands at {key}, is no number; one is written as in 1234.5")
            });
        }
        _ => recorder.skip_value(SkipReason::NotMeasured),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::row::row;
    use pulsetrain_record::Run;

    static ROWS: &[Row] = &[
        row("ms", &metric::TRAIN_STEP_DURATION).divided_by(1e3),
        row("seen", &metric::TRAIN_TOKENS).running_total(),
    ];

    #[test]
    fn unknown_names_are_said_once_and_kept_every_time() {
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let mut fields = Fields::of("demo");
        let written = Written {
            time_unix_nanos: 1,
            step: None,
            place: Place::default(),
        };
        for _ in 0..3 {
            let record = [
                (Cow::Borrowed("ms"), Value::of("12")),
                (Cow::Borrowed("novel"), Value::of("1.5")),
            ];
            fields.record(ROWS, written, &record, &[], &mut recorder);
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
        let mut fields = Fields::of("demo");
        let written = Written {
            time_unix_nanos: 1,
            step: None,
            place: Place::default(),
        };
        for number in 0..MOST_UNKNOWN + 10 {
            let record = [(Cow::Owned(format!("key{number}")), Value::Number(1.0))];
            fields.record(ROWS, written, &record, &[], &mut recorder);
        }
        assert_eq!(fields.unknown.len(), MOST_UNKNOWN);
        let (counts, skipped) = recorder.finish();
        let lost = MOST_UNKNOWN as u64 + 10 - counts.points;
        assert_eq!(
            skipped.counts().collect::<Vec<_>>(),
            [
                (SkipReason::TooManyCustomNames, lost),
                (SkipReason::UnknownName, MOST_UNKNOWN as u64 + 10)
            ]
        );
    }

    #[test]
    fn a_total_counts_by_its_growth() {
        let mut fields = Fields::of("demo");
        let grown: Vec<f64> = [100.0, 150.0, 30.0]
            .map(|total| fields.grown("seen", total))
            .to_vec();
        assert_eq!(grown, [100.0, 50.0, 30.0]);
    }

    #[test]
    fn fields_are_split_at_their_first_sign() {
        let found: Vec<_> = split("a: 1, b/c: x: y, loose", ", ", ": ").collect();
        assert_eq!(found, [("a", "1"), ("b/c", "x: y")]);
    }
}
