//! A mapping: what the keys of a log of no known format mean. The configuration says it, the parsers ask it.

use std::borrow::Cow;

use pulsetrain_semconv::{AttributeKind, Metric, attribute, metric};
use regex::Regex;

use super::{
    clock::TimeForm,
    pairs::Pairs,
    rule::{Becomes, Matches, Rule, WHOLE},
    unit,
};
use crate::{FormatError, conversion::Conversion};

/// What the keys of a log mean. Without a word from the user, keys that are names of metrics are those metrics, and the
/// usual keys are the step and the time.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    pub(super) format: Option<MappedFormat>,
    pub(super) framework: Option<String>,
    pub(super) detect: Vec<Regex>,
    pub(super) is_loose: bool,
    pub(super) ignored: Vec<String>,
    pub(super) steps: Vec<String>,
    pub(super) time: Option<String>,
    pub(super) form: TimeForm,
    pub(super) lines: Vec<Regex>,
    pub(super) pairs: Pairs,
    pub(super) rules: Vec<Rule>,
    pub(super) drops_unknown: bool,
}

/// How the fields of a log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MappedFormat {
    /// An object a line, of JSON or as Python prints it.
    Json,
    /// Pairs of a key and a value.
    KeyValue,
    /// Numbers with their labels, in any printed line.
    Text,
    /// A table with a header.
    Csv,
}

impl MappedFormat {
    /// The name of the format in the table of formats.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::KeyValue => "keyvalue",
            Self::Text => "text",
            Self::Csv => "csv",
        }
    }
}

/// What a [`ValueRule`] makes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueBecomes {
    /// A point of the metric of this name.
    Metric(String),
    /// A point of `train.custom` under this name.
    Custom(String),
    /// Nothing.
    Nothing,
}

/// What one key, or every key of a pattern, means.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRule {
    /// The key; keys of nested objects are joined by dots.
    pub key: String,
    /// Whether the key is a regular expression that the whole key matches. Its groups are attributes by their names.
    pub is_pattern: bool,
    /// What becomes of its values.
    pub becomes: ValueBecomes,
    /// The unit of the log, where it is not that of the metric.
    pub unit: Option<String>,
    /// The unit of numbers without a suffix, where it is not that of the metric.
    pub default_unit: Option<String>,
    /// What values are multiplied by, where no unit says it.
    pub factor: Option<f64>,
    /// Whether the log says what a counter has come to, and not what it grew by.
    pub is_total: bool,
    /// Attributes that all points have, with their values.
    pub attributes: Vec<(String, String)>,
    /// Attributes that points have, with the keys of the record that say their values.
    pub attributes_from: Vec<(String, String)>,
}

/// The part of a mapping that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MappingPart {
    /// The pattern by which a log is detected.
    Detect,
    /// The form of the time.
    TimeForm,
    /// The pattern of lines.
    Line,
    /// What separates pairs, or a key from its value.
    Pairs,
    /// The key or the pattern of a rule.
    Key,
    /// The metric of a rule, or the name under `train.custom`.
    Metric,
    /// The unit or the factor of a rule.
    Unit,
    /// An attribute of a rule, by its name.
    Attribute(String),
}

/// The default unit of numbers that have a unit only with a suffix.
const NO_UNIT: &str = "none";

fn wrong(part: MappingPart, message: impl Into<String>) -> FormatError {
    FormatError::Mapping {
        part,
        message: message.into(),
    }
}

impl Mapping {
    /// Sets how the fields of the log are written.
    pub fn set_format(&mut self, format: MappedFormat) {
        self.format = Some(format);
    }

    /// Returns how the fields of the log are written, where the mapping names it, has a pattern of lines or separates pairs.
    pub fn format(&self) -> Option<MappedFormat> {
        let has_pairs = !self.lines.is_empty() || self.pairs != Pairs::default();
        self.format.or(has_pairs.then_some(MappedFormat::KeyValue))
    }

    /// Whether values of a key are attributes of the points of another.
    pub(super) fn is_attribute(&self, key: &str) -> bool {
        let mut sources = self.rules.iter().flat_map(|rule| &rule.from);
        sources.any(|(_, source)| source == key)
    }

    /// Sets the trainer that writes the log: `service.name` where the user gives nothing else.
    pub fn set_framework(&mut self, name: &str) {
        self.framework = Some(name.to_owned());
    }

    /// Adds a pattern that a line of the head matches if the mapping is for the log.
    ///
    /// # Errors
    /// [`FormatError::Mapping`] where it is no regular expression.
    pub fn add_detect(&mut self, pattern: &str) -> Result<(), FormatError> {
        let multi_line = format!("(?m){pattern}");
        self.detect
            .push(regex(pattern, &multi_line, MappingPart::Detect)?);
        Ok(())
    }

    /// Whether each pattern of the mapping matches a line of `text`, and there is one.
    pub(in crate::logs) fn detects(&self, text: &str) -> bool {
        !self.detect.is_empty() && self.detect.iter().all(|pattern| pattern.is_match(text))
    }

    /// Returns the trainer that writes the log, if the mapping has its name.
    pub fn framework(&self) -> Option<&str> {
        self.framework.as_deref()
    }

    /// Compares keys without case, and with every run of other characters than letters and digits as one `_`.
    pub fn compare_loosely(&mut self) {
        self.is_loose = true;
    }

    /// Ignores a word at the beginning of keys that no rule knows with it.
    pub fn ignore_prefix(&mut self, word: &str) {
        self.ignored.push(word.to_owned());
    }

    /// Adds a key that can be the step; the first one of a record counts.
    pub fn add_step(&mut self, key: &str) {
        self.steps.push(key.to_owned());
    }

    /// The key that says the time of a record.
    pub fn set_time(&mut self, key: &str) {
        self.time = Some(key.to_owned());
    }

    /// The form of the times: `auto`, `unix_s`, `unix_ms`, `unix_us`, `unix_ns`, or directives of `strftime`.
    ///
    /// # Errors
    /// [`FormatError::Mapping`] where there is no such form.
    pub fn set_time_form(&mut self, name: &str) -> Result<(), FormatError> {
        self.form = TimeForm::of(name).map_err(|message| wrong(MappingPart::TimeForm, message))?;
        Ok(())
    }

    /// Adds a pattern of the lines that are records; the first that matches a line counts. Its groups are fields by their
    /// names. The text of the group `record` is read in place of the line.
    ///
    /// # Errors
    /// [`FormatError::Mapping`] where it is no regular expression.
    pub fn add_line(&mut self, pattern: &str) -> Result<(), FormatError> {
        self.lines.push(regex(pattern, pattern, MappingPart::Line)?);
        Ok(())
    }

    /// Returns a key as the rules spell it.
    pub(super) fn spelling<'k>(&self, key: &'k str) -> Cow<'k, str> {
        if self.is_loose {
            Cow::Owned(loose(key))
        } else {
            Cow::Borrowed(key)
        }
    }

    /// What stands between two pairs, and between a key and its value.
    ///
    /// # Errors
    /// [`FormatError::Mapping`] where one of them is empty.
    pub fn set_pairs(&mut self, between: Option<&str>, sign: Option<&str>) -> Result<(), FormatError> {
        if [between, sign].contains(&Some("")) {
            let message = "nothing separates nothing: give at least one character, or leave the key out";
            return Err(wrong(MappingPart::Pairs, message));
        }
        self.pairs = Pairs {
            between: between.map(str::to_owned),
            sign: sign.map(str::to_owned),
        };
        Ok(())
    }

    /// Leaves out what no rule knows, instead of keeping it as `train.custom`.
    pub fn drop_unknown(&mut self) {
        self.drops_unknown = true;
    }

    /// Adds what a key means. Keys go before patterns, otherwise the first rule counts.
    ///
    /// # Errors
    /// [`FormatError::Mapping`] with the part that makes no sense.
    pub fn add(&mut self, rule: &ValueRule) -> Result<(), FormatError> {
        let becomes = becomes(rule)?;
        let matches = matches(rule)?;
        let metric = becomes.metric();
        let conversion = conversion(rule, metric)?;
        let without_suffix = match &rule.default_unit {
            Some(spelling) if spelling == NO_UNIT => None,
            Some(spelling) => Some(by_unit(spelling, metric)?),
            None => Some(Conversion::None),
        };
        if rule.is_total && !metric.is_some_and(is_counter) {
            let message = "only of a metric that counts can there be a total: leave total out";
            return Err(wrong(MappingPart::Metric, message));
        }
        let groups = matches.groups();
        for name in groups.iter().map(String::as_str).chain(names(&rule.attributes)) {
            attribute_of(metric, name)?;
        }
        let with = rule.attributes.iter().map(|(name, value)| {
            let attribute = attribute_of(metric, name)?;
            crate::attribute_part::Part::of(attribute, value)
                .map(|part| (attribute, part))
                .ok_or_else(|| wrong(MappingPart::Attribute(name.clone()), no_value(attribute, value)))
        });
        let from = rule
            .attributes_from
            .iter()
            .map(|(name, key)| Ok((attribute_of(metric, name)?, key.clone())));
        let rule = Rule {
            matches,
            becomes,
            conversion,
            without_suffix,
            units: (rule.unit.clone(), rule.default_unit.clone()),
            is_total: rule.is_total,
            with: with.collect::<Result<_, _>>()?,
            from: from.collect::<Result<_, FormatError>>()?,
        };
        // Keys first: a pattern is for what is left.
        let keys = self.rules.partition_point(|rule| rule.matches.is_key());
        let place = if rule.matches.is_key() {
            keys
        } else {
            self.rules.len()
        };
        self.rules.insert(place, rule);
        Ok(())
    }
}

/// Returns a key in lower case, with every run of other characters than letters and digits as one `_`.
fn loose(key: &str) -> String {
    let words = key.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("_")
}

fn names(pairs: &[(String, String)]) -> impl Iterator<Item = &str> {
    pairs.iter().map(|(name, _)| name.as_str())
}

fn is_counter(metric: &Metric) -> bool {
    metric.instrument == pulsetrain_semconv::Instrument::Counter
}

fn becomes(rule: &ValueRule) -> Result<Becomes, FormatError> {
    match &rule.becomes {
        ValueBecomes::Nothing => Ok(Becomes::Nothing),
        ValueBecomes::Custom(name) if name.is_empty() => {
            Err(wrong(MappingPart::Metric, "a name under train.custom is not empty"))
        }
        ValueBecomes::Custom(name) => Ok(Becomes::Custom(name.clone())),
        ValueBecomes::Metric(name) => metric::find(name).map(Becomes::of).ok_or_else(|| {
            wrong(
                MappingPart::Metric,
                format!(
                    "there is no metric {name:?}{}; pulsetrain semconv list --kind metric names all, and custom: {name} keeps it as train.custom",
                    similar(name)
                ),
            )
        }),
    }
}

/// Metrics whose names end like `name`.
fn similar(name: &str) -> String {
    let last = format!(".{}", name.rsplit(['.', '/']).next().unwrap_or(name));
    let alike: Vec<&str> = metric::ALL
        .iter()
        .map(|metric| metric.name)
        .filter(|known| known.ends_with(&last))
        .take(4)
        .collect();
    if alike.is_empty() {
        String::new()
    } else {
        format!(" (there is {})", alike.join(", "))
    }
}

fn matches(rule: &ValueRule) -> Result<Matches, FormatError> {
    if rule.key.is_empty() {
        return Err(wrong(MappingPart::Key, "a key is not empty"));
    }
    if !rule.is_pattern {
        return Ok(Matches::Key(rule.key.clone()));
    }
    let whole = [WHOLE.0, &rule.key, WHOLE.1].concat();
    regex(&rule.key, &whole, MappingPart::Key).map(Matches::Pattern)
}

fn regex(given: &str, pattern: &str, part: MappingPart) -> Result<Regex, FormatError> {
    Regex::new(pattern).map_err(|error| {
        let why = match error {
            regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().trim().to_owned(),
            other => other.to_string(),
        };
        wrong(part, format!("{given:?} is no regular expression: {why}"))
    })
}

fn conversion(rule: &ValueRule, metric: Option<&'static Metric>) -> Result<Option<Conversion>, FormatError> {
    let (Some(spelling), None) = (&rule.unit, rule.factor) else {
        if rule.unit.is_some() {
            let message = "unit and factor say the same: keep one of them";
            return Err(wrong(MappingPart::Unit, message));
        }
        return match rule.factor {
            Some(factor) if !factor.is_finite() => {
                Err(wrong(MappingPart::Unit, "a factor is a finite number"))
            }
            factor => Ok(factor.map(Conversion::Times)),
        };
    };
    by_unit(spelling, metric).map(Some)
}

fn by_unit(spelling: &str, metric: Option<&'static Metric>) -> Result<Conversion, FormatError> {
    let Some(metric) = metric else {
        let message = "a unit is converted to that of a metric, and here is none: give factor";
        return Err(wrong(MappingPart::Unit, message));
    };
    let found = unit::conversion(spelling, metric.unit);
    found.ok_or_else(|| {
        let spellings = unit::spellings_of(metric.unit);
        let instead = if spellings.is_empty() {
            "leave unit out, or give factor".to_owned()
        } else {
            format!("it can be: {spellings}")
        };
        wrong(
            MappingPart::Unit,
            format!(
                "{} is in {}, which {spelling:?} is not; {instead}",
                metric.name, metric.unit
            ),
        )
    })
}

/// The attribute of that name, if the metric has it.
fn attribute_of(
    metric: Option<&'static Metric>,
    name: &str,
) -> Result<&'static pulsetrain_semconv::Attribute, FormatError> {
    let Some(metric) = metric else {
        let message = format!("only points of a metric have attributes, so {name} is for none");
        return Err(wrong(MappingPart::Attribute(name.to_owned()), message));
    };
    let uses = metric.attributes.iter().map(|used| used.attribute);
    uses.clone()
        .find(|attribute| attribute.name == name)
        .ok_or_else(|| {
            let all: Vec<&str> = uses.map(|attribute| attribute.name).collect();
            let instead = match (all.is_empty(), attribute::find(name)) {
                (true, _) => "it has none".to_owned(),
                (false, _) => format!("it has: {}", all.join(", ")),
            };
            wrong(
                MappingPart::Attribute(name.to_owned()),
                format!("{} has no attribute {name:?}; {instead}", metric.name),
            )
        })
}

fn no_value(attribute: &pulsetrain_semconv::Attribute, value: &str) -> String {
    match attribute.kind {
        AttributeKind::Enum(known) => {
            format!(
                "{value:?} is no value of {}; it can be: {}",
                attribute.name,
                known.join(", ")
            )
        }
        _ => format!("{} is a whole number, and {value:?} is none", attribute.name),
    }
}
