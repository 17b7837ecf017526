//! The use of the keys of a log, for the summary of an import and for the suggested mapping.

use std::{collections::HashSet, fmt::Write};

use pulsetrain_semconv::{event, metric};

use pulsetrain_mapping::{Mapping, MappingTarget, ResolvedMapping};

use super::{likeness::suggestion_command, record::Records, record_keys::KeyInfo};

/// A key of a log and the use of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// The kind of the records, if the mapping distinguishes kinds.
    kind: Option<String>,
    /// The key.
    pub(in crate::logs) key: String,
    /// The number of its values.
    pub(super) count: u64,
    /// Its first values.
    pub(super) examples: Vec<String>,
    /// The outcome of its values.
    pub(super) outcome: KeyOutcome,
    /// The rank as a step: of several keys in a record, the lowest counts.
    pub(super) step_rank: Option<usize>,
    /// The metric or the event of mapped values.
    pub(super) target: String,
    /// The row of a mapping that has the same effect, if there is one.
    pub(super) row: Option<String>,
}

/// The outcome of the values of a key; different values can have different ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyOutcome {
    /// The step of a record.
    pub(super) is_step: bool,
    /// The time of a record.
    pub(super) is_time: bool,
    /// The target of the key's row, such as points of a metric.
    pub(super) is_mapped: bool,
    /// Values of `train.custom` under the key.
    pub(super) is_custom: bool,
    /// Texts of an event.
    pub(super) is_text: bool,
    /// No telemetry, but an effect: the epoch of other lines, or the sentinel of the row.
    pub(super) is_used: bool,
}

impl Records {
    /// Returns the use of each key, in the order of first occurrence. Empty for a log with too many keys.
    pub(super) fn key_uses(&mut self) -> Vec<KeyUse> {
        if self.keys.is_cleared() {
            return Vec::new();
        }
        let known = self.keys.iter_mut();
        known
            .filter_map(|(key, kind, known)| KeyUse::for_key(key, kind, known))
            .collect()
    }
}

/// Describes, for the summary, the use of the keys of a log of no known trainer.
pub fn key_notices(uses: &[KeyUse]) -> Vec<String> {
    let mut mapped = Vec::new();
    for used in uses {
        let KeyOutcome {
            is_step,
            is_time,
            is_mapped,
            ..
        } = used.outcome;
        let targets = [
            (is_step, metric::TRAIN_GLOBAL_STEP.name),
            (is_time, "time"),
            (is_mapped && !used.is_kept(), used.target.as_str()),
        ];
        let targets = targets.into_iter().filter(|(is_target, _)| *is_target);
        mapped.extend(targets.map(|(_, target)| format!("{} -> {target}", used.key)));
    }
    let keys = |is_listed: fn(&KeyUse) -> bool| {
        let uses = uses.iter().filter(|used| is_listed(used));
        uses.map(|used| used.key.clone()).collect::<Vec<_>>()
    };
    let texts = format!("kept in events {}: ", event::TRAIN_CUSTOM_RECORD.name);
    let lists = [
        ("", mapped),
        (
            "kept as train.custom: ",
            keys(|used| used.outcome.is_custom || used.is_kept()),
        ),
        (&texts, keys(|used| used.outcome.is_text)),
    ];
    let listed = lists.into_iter().filter(|(_, list)| !list.is_empty());
    listed
        .map(|(heading, list)| [heading, &distinct(list).join(", ")].concat())
        .collect()
}

/// Describes, for the summary, how to change the use of the keys of a log without a mapping.
pub fn suggestion_hint(input: &str) -> String {
    format!("to change the keys: {}", suggestion_command(input))
}

/// Describes, for the summary, the parts of the user's mapping that a log does not use.
pub fn unused_notice(mapping: &Mapping, uses: &[KeyUse]) -> Option<String> {
    let keys = uses.iter().map(|used| (used.kind.as_deref(), used.key.as_str()));
    let unused = mapping.unused(&keys.collect::<Vec<_>>());
    (!unused.is_empty()).then(|| {
        format!(
            "parts of the mapping that this log does not use: {}",
            unused.join(", ")
        )
    })
}

/// Returns the texts without repetitions; records of several kinds have the same keys.
fn distinct(mut texts: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.retain(|text| seen.insert(text.clone()));
    texts
}

impl KeyUse {
    /// Adds the uses of the keys of other ranks.
    pub(in crate::logs) fn merged(mut all: Vec<Self>, others: impl Iterator<Item = Self>) -> Vec<Self> {
        for other in others {
            match all.iter_mut().find(|known| known.key == other.key) {
                Some(known) => known.count += other.count,
                None => all.push(other),
            }
        }
        all
    }

    /// Returns whether values are kept under the key because the mapping has no row for it.
    pub fn is_unmapped(&self) -> bool {
        self.outcome.is_custom || self.outcome.is_text
    }

    /// Returns whether a row keeps the values under the key itself.
    fn is_kept(&self) -> bool {
        self.outcome.is_mapped && self.target == metric::TRAIN_CUSTOM.name
    }

    fn for_key(key: &str, kind: Option<&str>, known: &KeyInfo) -> Option<Self> {
        if known.count == 0 {
            return None;
        }
        let resolved = known.state.resolved.as_ref();
        let is_dropped = |resolved: &&ResolvedMapping| {
            matches!(
                resolved.mapping.target,
                MappingTarget::Step | MappingTarget::Dropped(_)
            )
        };
        // Only one of two keys with one metric can have a row.
        let is_effective = !known.is_unmapped && (known.outcome.is_mapped || known.outcome.is_used);
        let effective = resolved.filter(|resolved| is_effective || is_dropped(resolved));
        Some(Self {
            kind: kind.map(str::to_owned),
            key: key.to_owned(),
            count: known.count,
            examples: known.examples.clone(),
            outcome: known.outcome,
            step_rank: known.step().filter(|_| known.outcome.is_step),
            target: resolved.map(target).unwrap_or_default(),
            row: effective.and_then(|resolved| row(key, resolved)),
        })
    }
}

fn target(resolved: &ResolvedMapping) -> String {
    match &resolved.mapping.target {
        MappingTarget::Metric(metric) | MappingTarget::State(metric, _) => metric.name.to_owned(),
        MappingTarget::Custom(Some(name)) => format!("{} {name}", metric::TRAIN_CUSTOM.name),
        MappingTarget::Custom(None) => metric::TRAIN_CUSTOM.name.to_owned(),
        MappingTarget::Option(name) => format!("{} {name}", event::RUN_OPTION.name),
        MappingTarget::Step | MappingTarget::Dropped(_) => String::new(),
    }
}

/// Returns the row as a line of a mapping.
fn row(key: &str, resolved: &ResolvedMapping) -> Option<String> {
    let mut text = format!("{{{}", key_entry(key));
    let mut add = |name: &str, value: &str| write!(text, ", {name}: {value}").ok();
    match &resolved.mapping.target {
        MappingTarget::Metric(metric) | MappingTarget::State(metric, _) => add("metric", metric.name)?,
        MappingTarget::Custom(Some(name)) => add("custom", &quoted(name))?,
        MappingTarget::Custom(None) => add("keep", "true")?,
        MappingTarget::Option(name) => add("option", &quoted(name))?,
        MappingTarget::Step | MappingTarget::Dropped(_) => add("drop", "true")?,
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

/// Returns the entry of a row for a key. A key with a brace is written as a pattern, because braces mark parts that vary.
pub(super) fn key_entry(key: &str) -> String {
    match key.contains('{') {
        true => format!("pattern: {}", quoted(&regex::escape(key))),
        false => format!("key: {}", quoted(key)),
    }
}

fn attribute_text(value: &pulsetrain_otlp::write::AttributeValue<'_>) -> String {
    match value {
        pulsetrain_otlp::write::AttributeValue::Text(text) => quoted(text),
        pulsetrain_otlp::write::AttributeValue::Int(number) => number.to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_a_row_keeps_are_listed_as_kept() {
        let used = |key: &str, target: &str| KeyUse {
            kind: None,
            key: key.to_owned(),
            count: 0,
            examples: Vec::new(),
            outcome: KeyOutcome {
                is_mapped: true,
                ..KeyOutcome::default()
            },
            step_rank: None,
            target: target.to_owned(),
            row: None,
        };
        let notices = key_notices(&[used("loss", "train.loss"), used("train_wall", "train.custom")]);
        assert_eq!(
            notices,
            ["loss -> train.loss", "kept as train.custom: train_wall"]
        );
    }
}
