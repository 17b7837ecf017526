//! The use of the keys of a log, for the summary of an import and for the suggested mapping.

use std::fmt::Write;

use pulsetrain_semconv::{event, metric};

use pulsetrain_mapping::{Mapping, ResolvedMapping, Target};

use super::{record::Records, record_keys::KeyInfo};
use crate::logs::LogFormat;

/// A key of a log and the use of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// The key.
    pub key: String,
    /// The role of its values.
    pub role: KeyRole,
    /// Its first value.
    pub example: String,
    /// The row of a mapping that has the same effect, if there is a metric.
    pub(super) row: Option<String>,
}

/// The role of the values of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyRole {
    /// The step. The number is its rank: of several keys in a record, the lowest counts.
    Step(usize),
    /// The time of the record.
    Time,
    /// The metric or the event of this name.
    Metric(&'static str),
    /// Values of `train.custom`.
    Custom,
    /// Texts of an event.
    Text,
    /// Not recorded as values.
    Dropped,
}

impl Records {
    /// Returns the use of each key, in the order of first occurrence.
    pub(super) fn key_uses(&mut self) -> Vec<KeyUse> {
        let known = self.keys.iter_mut();
        known.filter_map(|(key, known)| KeyUse::of(key, known)).collect()
    }
}

/// Describes, for the summary, the use of the keys of a log of no known trainer: how to change it, or what of the user's
/// mapping is not in the log.
pub fn key_notices(format: &LogFormat, mapping: &Mapping, uses: &[KeyUse], input: &str) -> Vec<String> {
    let of_role = |of: fn(&KeyUse) -> Option<String>| {
        let texts: Vec<String> = uses.iter().filter_map(of).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let mapped = of_role(|used| match used.role {
        KeyRole::Step(_) => Some(format!("{} -> {}", used.key, metric::TRAIN_GLOBAL_STEP.name)),
        KeyRole::Time => Some(format!("{} -> time", used.key)),
        KeyRole::Metric(name) => Some(format!("{} -> {name}", used.key)),
        KeyRole::Custom | KeyRole::Text | KeyRole::Dropped => None,
    });
    let custom = of_role(|used| (used.role == KeyRole::Custom).then(|| used.key.clone()));
    let texts = of_role(|used| (used.role == KeyRole::Text).then(|| used.key.clone()));
    let custom = custom.map(|keys| format!("kept as train.custom: {keys}"));
    let texts = texts.map(|keys| format!("kept in events {}: {keys}", event::TRAIN_CUSTOM_RECORD.name));
    let last = if format.takes_mapping() {
        let keys: Vec<&str> = uses.iter().map(|used| used.key.as_str()).collect();
        let unmatched = mapping.unmatched(&keys);
        (!unmatched.is_empty()).then(|| format!("in the mapping, but in no record: {}", unmatched.join(", ")))
    } else {
        Some(format!(
            "to change the keys: pulsetrain import --suggest-mapping {input} > mapping.yaml"
        ))
    };
    mapped
        .into_iter()
        .chain(custom)
        .chain(texts)
        .chain(last)
        .collect()
}

impl KeyUse {
    fn of(key: &str, known: &KeyInfo) -> Option<Self> {
        let example = known.example.clone()?;
        let (role, row) = match &known.state.resolved {
            Some(_) if known.is_unmapped => (KeyRole::Custom, None),
            Some(resolved) => (role(resolved), row(key, resolved)),
            None => match known.step() {
                Some(rank) => (KeyRole::Step(rank), None),
                None if known.was_time => (KeyRole::Time, None),
                None if known.is_attribute => (KeyRole::Dropped, None),
                None if known.is_text => (KeyRole::Text, None),
                None => (KeyRole::Custom, None),
            },
        };
        Some(Self {
            key: key.to_owned(),
            role,
            example,
            row,
        })
    }
}

fn role(resolved: &ResolvedMapping) -> KeyRole {
    match &resolved.mapping.target {
        Target::Metric(metric) | Target::State(metric, _) => KeyRole::Metric(metric.name),
        Target::Custom(_) => KeyRole::Metric(metric::TRAIN_CUSTOM.name),
        Target::Option(_) => KeyRole::Metric(event::RUN_OPTION.name),
        Target::Step | Target::Dropped(_) => KeyRole::Dropped,
    }
}

/// Returns the row as a line of a mapping.
fn row(key: &str, resolved: &ResolvedMapping) -> Option<String> {
    let mut text = match key.contains('{') {
        true => format!("{{pattern: {}", quoted(&regex::escape(key))),
        false => format!("{{key: {}", quoted(key)),
    };
    let mut add = |name: &str, value: &str| write!(text, ", {name}: {value}").ok();
    match &resolved.mapping.target {
        Target::Metric(metric) | Target::State(metric, _) => add("metric", metric.name)?,
        Target::Custom(Some(name)) => add("custom", &quoted(name))?,
        Target::Custom(None) => add("keep", "true")?,
        Target::Option(name) => add("option", &quoted(name))?,
        Target::Step | Target::Dropped(_) => add("drop", "true")?,
    }
    let (unit, default_unit) = &resolved.mapping.units;
    unit.iter().try_for_each(|unit| add("unit", &quoted(unit)))?;
    default_unit
        .iter()
        .try_for_each(|unit| add("default_unit", &quoted(unit)))?;
    if let Some(sentinel) = resolved.mapping.sentinel {
        add("sentinel", &sentinel.to_string())?;
    }
    if resolved.mapping.is_total {
        add("total", "true")?;
    }
    let attributes: Vec<String> = resolved
        .fixed()
        .map(|(attribute, value)| format!("{}: {}", attribute.name, attribute_text(&value)))
        .collect();
    if !attributes.is_empty() {
        add("attributes", &format!("{{{}}}", attributes.join(", ")))?;
    }
    text.push('}');
    Some(text)
}

fn attribute_text(value: &pulsetrain_otlp::write::Value<'_>) -> String {
    match value {
        pulsetrain_otlp::write::Value::Text(text) => quoted(text),
        pulsetrain_otlp::write::Value::Int(number) => number.to_string(),
        other => quoted(&format!("{other:?}")),
    }
}

/// Formats a text as YAML: in quotes unless it is a plain word. A dollar sign begins a variable, so it is doubled.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '/' | '.' | '-'));
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "nan", "inf"]
        .iter()
        .any(|word| word.eq_ignore_ascii_case(text));
    let text = text.replace('$', "$$");
    if is_plain && !is_word {
        text
    } else if text.contains(char::is_control) {
        // In YAML as in JSON, only a text in double quotes has escapes.
        serde_json::Value::from(text).to_string()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}
