//! A rule of a mapping as the parsers use it, and what it is for one key.

use pulsetrain_otlp::write::Attribute;
use pulsetrain_semconv::{self as semconv, AttributeKind, Instrument, Metric, metric, span};
use regex::Regex;

use super::mapping::Mapping;
use crate::{
    attribute_part::Part,
    conversion::Conversion,
    logs::{Covered, covered},
};
use pulsetrain_record::PreparedSeries;

/// What some keys mean.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) matches: Matches,
    pub(super) becomes: Becomes,
    /// What is done to numbers; nothing where their own suffix says it.
    pub(super) conversion: Option<Conversion>,
    /// The conversion of numbers without a suffix, or `None` if their unit is not known.
    pub(super) without_suffix: Option<Conversion>,
    /// The unit of the log as the mapping spells it: for all numbers, and for those without a suffix.
    pub(super) units: (Option<String>, Option<String>),
    pub(super) is_total: bool,
    pub(super) with: Vec<(&'static semconv::Attribute, Part)>,
    pub(super) from: Vec<(&'static semconv::Attribute, String)>,
}

/// The keys of a rule.
#[derive(Clone, Debug)]
pub(super) enum Matches {
    /// This one.
    Key(String),
    /// All that match.
    Pattern(Regex),
}

/// What makes a pattern one of complete keys.
pub(super) const WHOLE: (&str, &str) = ("^(?:", ")$");

/// What values become.
#[derive(Clone, Debug)]
pub(super) enum Becomes {
    /// Points of a metric.
    Value(&'static Metric),
    /// The state that a state set is in.
    State(&'static Metric, &'static semconv::Attribute),
    /// Points of `train.custom` under a name.
    Custom(String),
    /// Nothing.
    Nothing,
}

/// The unit of state sets.
const STATE: &str = "{state}";

impl Becomes {
    /// Values of a metric, of a state set its states.
    pub(super) fn of(metric: &'static Metric) -> Self {
        let mut attributes = metric.attributes.iter().map(|used| used.attribute);
        let states = attributes.find(|attribute| matches!(attribute.kind, AttributeKind::Enum(_)));
        match states.filter(|_| metric.unit == STATE) {
            Some(attribute) => Self::State(metric, attribute),
            None => Self::Value(metric),
        }
    }

    /// The metric, if values become points of one of the registry.
    pub(super) fn metric(&self) -> Option<&'static Metric> {
        match self {
            Self::Value(metric) | Self::State(metric, _) => Some(metric),
            Self::Custom(_) | Self::Nothing => None,
        }
    }
}

impl Matches {
    pub(super) fn is_key(&self) -> bool {
        matches!(self, Self::Key(_))
    }

    /// Returns the key, or the pattern as the mapping has it.
    fn text(&self) -> &str {
        match self {
            Self::Key(key) => key,
            Self::Pattern(regex) => {
                let pattern = regex.as_str();
                let inner = pattern.strip_prefix(WHOLE.0).unwrap_or(pattern);
                inner.strip_suffix(WHOLE.1).unwrap_or(inner)
            }
        }
    }

    /// The names of the groups: attributes.
    pub(super) fn groups(&self) -> Vec<String> {
        match self {
            Self::Key(_) => Vec::new(),
            Self::Pattern(regex) => regex.capture_names().flatten().map(str::to_owned).collect(),
        }
    }
}

/// What a key means, worked out once.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    pub(super) rule: Rule,
    /// What the groups of the pattern hold in this key.
    pub(super) captured: Vec<(&'static semconv::Attribute, Part)>,
    /// Whether values have no attributes.
    pub(super) is_plain: bool,
    /// The attribute of the step's span that holds the value too.
    pub(super) on_span: Option<&'static semconv::Attribute>,
}

impl Meaning {
    fn of(rule: Rule, captured: Vec<(&'static semconv::Attribute, Part)>) -> Self {
        let metric = rule.becomes.metric();
        let mut attributes = span::TRAIN_STEP.attributes.iter().map(|used| used.attribute);
        Self {
            on_span: metric.and_then(|metric| attributes.find(|attribute| attribute.name == metric.name)),
            is_plain: captured.is_empty() && rule.with.is_empty() && rule.from.is_empty(),
            rule,
            captured,
        }
    }

    /// Whether the values are epochs.
    pub(super) fn is_epoch(&self) -> bool {
        let metric = self.rule.becomes.metric();
        metric.is_some_and(|metric| metric.ordinal == metric::TRAIN_EPOCH.ordinal)
    }

    /// The attributes that all values have.
    pub(super) fn fixed(&self) -> impl Iterator<Item = Attribute<'_>> {
        let all = self.captured.iter().chain(&self.rule.with);
        all.map(|(attribute, part)| (*attribute, part.value()))
    }

    /// The series of all values, where they have one that is worth preparing: points of a gauge without attributes are made
    /// as fast anew.
    pub(super) fn series(&self) -> Option<PreparedSeries> {
        let Becomes::Value(metric) = self.rule.becomes else {
            return None;
        };
        if !self.rule.from.is_empty() || self.is_plain && matches!(metric.instrument, Instrument::Gauge) {
            return None;
        }
        let attributes: Vec<Attribute<'_>> = self.fixed().collect();
        Some(PreparedSeries::new(metric, &attributes))
    }
}

impl Mapping {
    /// What `key` means; nothing where nobody knows.
    pub(super) fn meaning(&self, key: &str) -> Option<Meaning> {
        let spelling = self.spelling(key);
        let mut shorter = self.without_prefixes(&spelling);
        let by_rule = self.by_rule(&spelling);
        by_rule
            .or_else(|| by_name(key))
            .or_else(|| shorter.find_map(|key| self.by_rule(key)))
    }

    fn by_rule(&self, spelling: &str) -> Option<Meaning> {
        self.rules.iter().find_map(|rule| {
            let captured = rule.captured(spelling)?;
            Some(Meaning::of(rule.clone(), captured))
        })
    }

    /// Returns a key without the words that the mapping ignores at its beginning: without one, without two, ...
    pub(super) fn without_prefixes<'k>(&self, spelling: &'k str) -> impl Iterator<Item = &'k str> {
        let without_one = |key: &'k str| {
            let mut prefixes = self.ignored.iter();
            prefixes.find_map(|word| {
                let rest = key.strip_prefix(word.as_str())?;
                rest.strip_prefix(['_', '/', '.', ' '])
            })
        };
        std::iter::successors(without_one(spelling), move |key| without_one(key))
    }
}

impl Rule {
    /// What the groups hold, if the rule is for `key`. A group whose text can be no value of its attribute is for another
    /// rule.
    fn captured(&self, key: &str) -> Option<Vec<(&'static semconv::Attribute, Part)>> {
        let regex = match &self.matches {
            Matches::Key(known) => return (known == key).then(Vec::new),
            Matches::Pattern(regex) => regex,
        };
        let captures = regex.captures(key)?;
        let metric = self.becomes.metric();
        let named = regex.capture_names().flatten().filter_map(|name| {
            let mut attributes = metric?.attributes.iter().map(|used| used.attribute);
            let attribute = attributes.find(|attribute| attribute.name == name)?;
            Some((attribute, captures.name(name)?.as_str()))
        });
        named
            .map(|(attribute, text)| Some((attribute, Part::of(attribute, text)?)))
            .collect()
    }
}

impl Mapping {
    /// Returns what the rules make of every key, for the documentation.
    pub(in crate::logs) fn coverage(&'static self) -> Vec<Covered> {
        let steps = self.steps.iter().map(|key| {
            covered(
                key,
                metric::TRAIN_GLOBAL_STEP.name,
                "as it is; `train.steps` grows by the steps since the record before",
            )
        });
        steps.chain(self.rules.iter().map(Rule::covered)).collect()
    }
}

impl Rule {
    fn covered(&'static self) -> Covered {
        let with = self.with.iter().map(|(attribute, part)| {
            let value = match part {
                Part::Text(text) => text.clone(),
                Part::Int(number) => number.to_string(),
            };
            format!("{}={value}", attribute.name)
        });
        let groups = self.matches.groups();
        let groups = groups.iter().map(|name| format!("{name}=part of the key"));
        let from = self
            .from
            .iter()
            .map(|(attribute, key)| format!("{}=value of {key}", attribute.name));
        let attributes: Vec<String> = with.chain(groups).chain(from).collect();
        Covered {
            key: self.matches.text(),
            name: match &self.becomes {
                Becomes::Value(metric) | Becomes::State(metric, _) => metric.name,
                Becomes::Custom(_) => metric::TRAIN_CUSTOM.name,
                Becomes::Nothing => "(left out: mapping)",
            },
            attributes: attributes.join(", "),
            conversion: match self.conversion {
                Some(Conversion::Times(factor)) => format!("times {factor}"),
                Some(Conversion::DividedBy(divisor)) => format!("divided by {divisor}"),
                Some(Conversion::None) => "as it is".to_owned(),
                Some(Conversion::PercentAboveOne) => "a number above 1 is in percent".to_owned(),
                None if self.is_total => "by its growth".to_owned(),
                None => "as it is, or by its suffix".to_owned(),
            },
        }
    }
}

/// A key that is the name of a metric is that metric.
fn by_name(key: &str) -> Option<Meaning> {
    let metric = metric::find(key)?;
    let rule = Rule {
        matches: Matches::Key(key.to_owned()),
        becomes: Becomes::of(metric),
        conversion: None,
        without_suffix: Some(Conversion::None),
        units: (None, None),
        is_total: false,
        with: Vec::new(),
        from: Vec::new(),
    };
    Some(Meaning::of(rule, Vec::new()))
}
