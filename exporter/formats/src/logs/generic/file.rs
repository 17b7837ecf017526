//! A mapping as it is written in YAML: files of `--mapping`, the `mapping` of a configuration, and the mappings of known trainers.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_saphyr::{Options, PropertySyntax, Spanned};

use super::mapping::{MappedFormat, Mapping, MappingPart, ValueBecomes, ValueRule};
use crate::FormatError;

/// A mapping as it is written; `exporter/formats/MAPPING.md` documents each key.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MappingFile {
    framework: Option<String>,
    detect: Placed<Texts>,
    format: Option<MappedFormat>,
    keys: Keys,
    ignore: Texts,
    step: Texts,
    time: Option<String>,
    time_format: Option<Placed<String>>,
    line: Placed<Texts>,
    between: Option<Placed<String>>,
    sign: Option<Placed<String>>,
    unknown: Unknown,
    values: Vec<Placed<RuleEntry>>,
}

/// A fault of a mapping, with the line and the column of the key that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingFault {
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// The fault, and how to correct it.
    pub message: String,
}

/// How keys are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Keys {
    #[default]
    Exact,
    Loose,
}

/// What becomes of keys without a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unknown {
    /// They are kept as `train.custom`.
    #[default]
    Keep,
    /// They are left out.
    Drop,
}

/// The rule of one key, or of all keys of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RuleEntry {
    key: Option<Placed<String>>,
    pattern: Option<Placed<String>>,
    metric: Option<Placed<String>>,
    custom: Option<Placed<String>>,
    drop: bool,
    unit: Option<Placed<String>>,
    default_unit: Option<Placed<String>>,
    factor: Option<Placed<f64>>,
    total: bool,
    attributes: BTreeMap<String, Placed<String>>,
    attributes_from: BTreeMap<String, Placed<String>>,
}

impl MappingFile {
    /// Reads a mapping from YAML without variables of the environment.
    ///
    /// # Errors
    /// The message of the YAML reader.
    pub(in crate::logs) fn parse(text: &str) -> Result<Self, String> {
        let mut options = Options::default().with_properties(std::collections::HashMap::new());
        options.property_syntax = PropertySyntax::DockerCompose;
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
    }

    /// Builds the mapping.
    ///
    /// # Errors
    /// Every fault, with its place.
    pub fn build(&self) -> Result<Mapping, Vec<MappingFault>> {
        let (mut mapping, mut faults) = (Mapping::default(), Vec::new());
        self.set_reading(&mut mapping, &mut faults);
        self.step.0.iter().for_each(|key| mapping.add_step(key));
        self.time.iter().for_each(|key| mapping.set_time(key));
        if let Some(form) = &self.time_format {
            faults.extend(form.fault(mapping.set_time_form(form)));
        }
        if self.keys == Keys::Loose {
            mapping.compare_loosely();
        }
        self.ignore.0.iter().for_each(|word| mapping.ignore_prefix(word));
        if self.unknown == Unknown::Drop {
            mapping.drop_unknown();
        }
        for rule in &self.values {
            match rule.value.rule() {
                Ok(value) => faults.extend(rule.value.fault(rule, mapping.add(&value))),
                Err(message) => faults.push(rule.at(message)),
            }
        }
        if faults.is_empty() {
            Ok(mapping)
        } else {
            Err(faults)
        }
    }

    /// Sets which logs the mapping is for, and how their lines become fields.
    fn set_reading(&self, mapping: &mut Mapping, faults: &mut Vec<MappingFault>) {
        self.framework.iter().for_each(|name| mapping.set_framework(name));
        self.format.iter().for_each(|format| mapping.set_format(*format));
        for pattern in &self.detect.0 {
            faults.extend(self.detect.fault(mapping.add_detect(pattern)));
        }
        for pattern in &self.line.0 {
            faults.extend(self.line.fault(mapping.add_line(pattern)));
        }
        let text = |placed: &Option<Placed<String>>| placed.as_ref().map(|placed| placed.value.clone());
        let pairs = mapping.set_pairs(text(&self.between).as_deref(), text(&self.sign).as_deref());
        let placed = self.between.as_ref().or(self.sign.as_ref());
        faults.extend(placed.and_then(|placed| placed.fault(pairs)));
    }
}

impl RuleEntry {
    fn rule(&self) -> Result<ValueRule, String> {
        let (key, is_pattern) = match (&self.key, &self.pattern) {
            (Some(key), None) => (key, false),
            (None, Some(pattern)) => (pattern, true),
            _ => return Err("a rule has either a key or a pattern".to_owned()),
        };
        let owned = |attributes: &BTreeMap<String, Placed<String>>| {
            let pairs = attributes.iter();
            pairs
                .map(|(name, value)| (name.clone(), value.value.clone()))
                .collect()
        };
        Ok(ValueRule {
            key: key.value.clone(),
            is_pattern,
            becomes: self.becomes(key)?,
            unit: self.unit.as_ref().map(|unit| unit.value.clone()),
            default_unit: self.default_unit.as_ref().map(|unit| unit.value.clone()),
            factor: self.factor.as_ref().map(|factor| factor.value),
            is_total: self.total,
            attributes: owned(&self.attributes),
            attributes_from: owned(&self.attributes_from),
        })
    }

    fn becomes(&self, key: &str) -> Result<ValueBecomes, String> {
        match (&self.metric, &self.custom, self.drop) {
            (Some(metric), None, false) => Ok(ValueBecomes::Metric(metric.value.clone())),
            (None, Some(name), false) => Ok(ValueBecomes::Custom(name.value.clone())),
            (None, None, true) => Ok(ValueBecomes::Nothing),
            _ => Err(format!(
                "the rule of {key:?} says what becomes of it by one of: metric, custom, drop: true"
            )),
        }
    }

    /// Returns the fault at the part of the rule that it is about.
    fn fault(&self, rule: &Placed<Self>, outcome: Result<(), FormatError>) -> Option<MappingFault> {
        let error = outcome.err()?;
        let at = |placed: &Placed<String>| placed.at(&error);
        let fault = match &error {
            FormatError::Mapping { part, .. } => match part {
                MappingPart::Key => self.key.as_ref().or(self.pattern.as_ref()).map(at),
                MappingPart::Metric => self.metric.as_ref().or(self.custom.as_ref()).map(at),
                MappingPart::Unit => {
                    let factor = || self.factor.as_ref().map(|factor| factor.at(&error));
                    let unit = self.unit.as_ref().or(self.default_unit.as_ref());
                    unit.map(at).or_else(factor)
                }
                MappingPart::Attribute(name) => {
                    let from = || self.attributes_from.get(name);
                    let named = self.attributes.get(name).or_else(from);
                    named.or(self.pattern.as_ref()).map(at)
                }
                _ => None,
            },
            _ => None,
        };
        fault.or_else(|| Some(rule.at(&error)))
    }
}

/// A value with its place. Two are equal where their values are: a moved line changes nothing.
#[derive(Clone, Debug, Default)]
struct Placed<T> {
    value: T,
    line: u64,
    column: u64,
}

impl<T> Placed<T> {
    fn at(&self, message: impl fmt::Display) -> MappingFault {
        MappingFault {
            line: self.line,
            column: self.column,
            message: message.to_string(),
        }
    }

    fn fault(&self, outcome: Result<(), FormatError>) -> Option<MappingFault> {
        outcome.err().map(|error| self.at(error))
    }
}

impl<T: PartialEq> PartialEq for Placed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> std::ops::Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Placed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::deserialize(deserializer)?;
        Ok(Self {
            value,
            line: referenced.line(),
            column: referenced.column(),
        })
    }
}

/// One text or a list of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}
