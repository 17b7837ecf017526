//! Makes points of the records of a log of no known format.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{AttributeKind, Metric, Number, attribute, event, metric};

use super::{
    mapping::Mapping,
    rule::{Becomes, Meaning},
    unit,
};
use crate::{
    Recorder, SkipReason,
    attribute_part::Part,
    conversion::Conversion,
    in_order::InOrder,
    logs::{
        fields::{Field, Fields, Value, Written},
        lines::Line,
        number_text, spans,
    },
};

/// The keys that are the step where the mapping names none.
const STEPS: [&str; 4] = ["step", "global_step", "iteration", "iter"];

/// The keys that are the time where the mapping names none.
const TIMES: [&str; 4] = ["time", "timestamp", "ts", "_timestamp"];

/// Of how many keys it is remembered what they mean; of more it is worked out anew each time.
const REMEMBERED: usize = 4096;

/// What was read of a log so far.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) mapping: Arc<Mapping>,
    meanings: InOrder<Option<Arc<Meaning>>>,
    steps: Fields,
    totals: HashMap<String, f64>,
    told: InOrder<()>,
}

/// A number of a record, before it is converted.
struct Measured<'m> {
    value: f64,
    suffix: &'m str,
}

impl Records {
    pub(super) fn of(mapping: &Arc<Mapping>) -> Self {
        Self {
            mapping: Arc::clone(mapping),
            meanings: InOrder::default(),
            steps: Fields::of("custom"),
            totals: HashMap::new(),
            told: InOrder::default(),
        }
    }

    /// Whether one of the fields is a step, or something that a rule knows.
    pub(super) fn is_record(&mut self, fields: &[Field<'_>]) -> bool {
        let step = self.step_key(fields).is_some();
        step || fields.iter().any(|(key, _)| self.meaning(key).is_some())
    }

    /// Records all fields.
    pub(super) fn record(&mut self, fields: &[Field<'_>], line: &Line<'_>, recorder: &mut Recorder<'_>) {
        let (time_key, time) = self.time(fields, line, recorder);
        let step_key = self.step_key(fields);
        let step = step_key.and_then(|key| value_of(fields, key)?.number());
        let written = Written {
            time_unix_nanos: time.unwrap_or_else(|| line.read_time()),
            step: step.map(|step| step as i64),
            place: line.place(),
        };
        if let Some(step) = written.step {
            self.steps.step(written.time_unix_nanos, step, recorder);
        }
        let (mut texts, mut on_span, mut duration) = (Vec::new(), Vec::new(), None);
        for (key, value) in fields {
            let is_said = [time_key, step_key].contains(&Some(key.as_ref()));
            let Some(meaning) = self.meaning(key) else {
                if !is_said {
                    self.unknown(key, value, written, recorder);
                    texts.extend(matches!(value, Value::Text(_)).then_some((key, value)));
                }
                continue;
            };
            let Some((metric, number)) = self.field((key, value), &meaning, fields, written, recorder) else {
                continue;
            };
            on_span.extend(meaning.on_span.map(|attribute| of_step(attribute, number)));
            if metric == &metric::TRAIN_STEP_DURATION {
                duration = Some(number);
            }
        }
        self.texts(&texts, written, recorder);
        // A span is only made from what was measured: when the line was written, and how long the step took.
        if let (Some(step), Some(duration), true) = (written.step, duration, time.is_some() || line.is_live())
        {
            on_span.push((&attribute::TRAIN_STEP, Out::Int(step)));
            spans::step(step, written.time_unix_nanos, duration, &on_span, recorder);
        }
    }

    /// Records one field, and answers with the metric and the value that it became.
    fn field(
        &mut self,
        (key, value): (&str, &Value<'_>),
        meaning: &Meaning,
        fields: &[Field<'_>],
        written: Written,
        recorder: &mut Recorder<'_>,
    ) -> Option<(&'static Metric, f64)> {
        let time = written.time_unix_nanos;
        let rule = &meaning.rule;
        let Some(attributes) = attributes(meaning, fields) else {
            self.unknown(key, value, written, recorder);
            return None;
        };
        match &rule.becomes {
            Becomes::Nothing => recorder.skip_value(SkipReason::LeftOut(BY_MAPPING)),
            Becomes::State(metric, attribute) => {
                let state = match value {
                    Value::Text(text) => text.to_string(),
                    Value::Number(number) => number.to_string(),
                };
                recorder.record_state(metric, attribute, time, &state, &attributes);
            }
            Becomes::Custom(name) => {
                let Some(measured) = Measured::of(value) else {
                    self.no_number(key, value, written, recorder);
                    return None;
                };
                let conversion = rule.conversion.unwrap_or(Conversion::None);
                recorder.record_custom(time, name, conversion.apply(measured.value));
            }
            Becomes::Value(metric) => {
                let converted =
                    Measured::of(value).and_then(|measured| measured.convert(metric, rule.conversion));
                let Some(converted) = converted else {
                    self.no_number(key, value, written, recorder);
                    return None;
                };
                if metric.number == Number::Int && !converted.is_finite() {
                    recorder.skip_value(SkipReason::NotSummable);
                    return None;
                }
                let grown = if rule.is_total {
                    self.grown(key, &attributes, converted)
                } else {
                    converted
                };
                recorder.record(metric, time, grown, &attributes);
                return Some((metric, converted));
            }
        }
        None
    }

    /// By how much a total has grown; one that fell was counted anew.
    fn grown(&mut self, key: &str, attributes: &[Attribute<'_>], total: f64) -> f64 {
        let series = format!("{key} {attributes:?}");
        let before = self.totals.insert(series, total).unwrap_or(0.0);
        if total < before { total } else { total - before }
    }

    fn unknown(&mut self, key: &str, value: &Value<'_>, written: Written, recorder: &mut Recorder<'_>) {
        if self.mapping.drops_unknown {
            return recorder.skip_value(SkipReason::LeftOut(BY_MAPPING));
        }
        if let Some(measured) = Measured::of(value) {
            recorder.record_custom(written.time_unix_nanos, key, measured.value);
            self.tell(key, written, recorder);
        }
    }

    /// Keeps texts that nobody knows, in one event.
    fn texts(
        &mut self,
        texts: &[(&Cow<'_, str>, &Value<'_>)],
        written: Written,
        recorder: &mut Recorder<'_>,
    ) {
        let unknown = texts.iter().filter_map(|(key, value)| match value {
            Value::Text(text) if Measured::of(value).is_none() => Some((key.as_ref(), Out::Text(text))),
            _ => None,
        });
        let entries: Vec<(&str, Out<'_>)> = unknown.collect();
        if entries.is_empty() || self.mapping.drops_unknown {
            return;
        }
        let attributes: Vec<Attribute<'_>> = written
            .step
            .map(|step| (&attribute::TRAIN_STEP, Out::Int(step)))
            .into_iter()
            .collect();
        let body = Some(Out::Map(&entries));
        recorder.record_event(
            &event::TRAIN_CUSTOM_RECORD,
            written.time_unix_nanos,
            body,
            &attributes,
        );
        for (key, _) in &entries {
            self.tell(key, written, recorder);
        }
    }

    fn tell(&mut self, key: &str, written: Written, recorder: &mut Recorder<'_>) {
        if self.told.place(key).is_none() && self.told.len() < REMEMBERED {
            self.told.add(key, ());
            recorder.skip(SkipReason::UnknownName, written.place, || {
                format!("{key} is a key that the mapping does not know; its values are kept as train.custom")
            });
        }
    }

    fn no_number(&self, key: &str, value: &Value<'_>, written: Written, recorder: &mut Recorder<'_>) {
        recorder.skip(SkipReason::MalformedRecord, written.place, || match value {
            Value::Text(text) => {
                format!("{key} is to be a number in a unit of its metric, and {text:?} is none")
            }
            Value::Number(number) => format!("{key} cannot be {number}"),
        });
    }

    /// The key that says the time, and the time; nothing where the record says none.
    fn time<'f>(
        &self,
        fields: &'f [Field<'_>],
        line: &Line<'_>,
        recorder: &mut Recorder<'_>,
    ) -> (Option<&'f str>, Option<u64>) {
        let Some(named) = &self.mapping.time else {
            let found = TIMES.iter().find_map(|name| {
                let (key, value) = fields.iter().find(|(key, _)| key == name)?;
                Some((key.as_ref(), self.mapping.form.read(value)?))
            });
            return (found.map(|(key, _)| key), found.map(|(_, time)| time));
        };
        let Some((key, value)) = fields.iter().find(|(key, _)| key == named) else {
            return (None, None);
        };
        let time = self.mapping.form.read(value);
        if time.is_none() {
            recorder.skip(SkipReason::MalformedRecord, line.place(), || {
                format!("{key} is no time of the form that the mapping names; the time of reading is taken")
            });
        }
        (Some(key), time)
    }

    fn step_key<'f>(&self, fields: &'f [Field<'_>]) -> Option<&'f str> {
        let is_step = |name: &str| {
            fields
                .iter()
                .find(|(key, value)| key == name && value.number().is_some_and(is_whole))
                .map(|(key, _)| key.as_ref())
        };
        match &self.mapping.step {
            Some(named) => is_step(named),
            None => STEPS.iter().find_map(|name| is_step(name)),
        }
    }

    fn meaning(&mut self, key: &str) -> Option<Arc<Meaning>> {
        let place = self.meanings.place(key).unwrap_or_else(|| {
            if self.meanings.len() >= REMEMBERED {
                self.meanings.clear();
            }
            let meaning = self.mapping.meaning(key).map(Arc::new);
            self.meanings.add(key, meaning)
        });
        self.meanings.at(place).clone()
    }
}

/// The rule for what the user left out.
const BY_MAPPING: &str = "mapping";

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() < 9e15
}

fn value_of<'f>(fields: &'f [Field<'_>], key: &str) -> Option<&'f Value<'f>> {
    fields
        .iter()
        .find(|(name, _)| name == key)
        .map(|(_, value)| value)
}

/// The attributes of a point; nothing where a field that is to say one says no value of it.
fn attributes<'a>(meaning: &'a Meaning, fields: &'a [Field<'_>]) -> Option<Vec<Attribute<'a>>> {
    let Meaning { rule, captured, .. } = meaning;
    let mut all: Vec<Attribute<'a>> = Vec::with_capacity(rule.with.len() + captured.len() + rule.from.len());
    let fixed = captured.iter().chain(&rule.with);
    all.extend(fixed.map(|(attribute, part)| (*attribute, part.value())));
    for (attribute, key) in &rule.from {
        // A record without the field has a point without the attribute.
        let Some(value) = value_of(fields, key) else {
            continue;
        };
        all.push((attribute, out(attribute, value)?));
    }
    Some(all)
}

fn out<'a>(attribute: &pulsetrain_semconv::Attribute, value: &'a Value<'a>) -> Option<Out<'a>> {
    match (attribute.kind, value) {
        (AttributeKind::Int, value) => value
            .number()
            .filter(|number| is_whole(*number))
            .map(|number| Out::Int(number as i64)),
        (AttributeKind::Double, value) => value.number().map(Out::Double),
        (_, Value::Text(text)) => Part::of(attribute, text).map(|_| Out::Text(text)),
        (_, Value::Number(_)) => None,
    }
}

impl<'m> Measured<'m> {
    fn of(value: &'m Value<'_>) -> Option<Self> {
        let (value, suffix) = match value {
            Value::Number(number) => (*number, ""),
            Value::Text(text) => number_text::with_suffix(text)?,
        };
        Some(Self { value, suffix })
    }

    /// The value in the unit of the metric, by what the mapping says or else by its suffix.
    fn convert(&self, metric: &Metric, named: Option<Conversion>) -> Option<f64> {
        let conversion = named.or_else(|| unit::conversion(self.suffix, metric.unit))?;
        Some(conversion.apply(self.value))
    }
}

/// The value as an attribute of the step's span.
fn of_step(attribute: &'static pulsetrain_semconv::Attribute, value: f64) -> Attribute<'static> {
    match attribute.kind {
        AttributeKind::Int => (attribute, Out::Int(value as i64)),
        _ => (attribute, Out::Double(value)),
    }
}
