//! A rule of a mapping as the parsers use it, and what it is for one key.

use pulsetrain_otlp::write::Attribute;
use pulsetrain_semconv::{self as semconv, AttributeKind, Instrument, Metric, metric, span};
use regex::Regex;

use super::mapping::Mapping;
use crate::{attribute_part::Part, conversion::Conversion, recorder::PreparedSeries};

/// What some keys mean.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) matches: Matches,
    pub(super) becomes: Becomes,
    /// What is done to numbers; nothing where their own suffix says it.
    pub(super) conversion: Option<Conversion>,
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
        let by_rule = self.rules.iter().find_map(|rule| {
            let captured = rule.captured(key)?;
            Some(Meaning::of(rule.clone(), captured))
        });
        by_rule.or_else(|| by_name(key))
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

/// A key that is the name of a metric is that metric.
fn by_name(key: &str) -> Option<Meaning> {
    let metric = metric::find(key)?;
    let rule = Rule {
        matches: Matches::Key(key.to_owned()),
        becomes: Becomes::of(metric),
        conversion: None,
        is_total: false,
        with: Vec::new(),
        from: Vec::new(),
    };
    Some(Meaning::of(rule, Vec::new()))
}
