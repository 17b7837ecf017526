//! One row of a mapping, and the row resolved for one key.

use std::{borrow::Cow, sync::Arc};

use pulsetrain_otlp::write::Attribute;
use pulsetrain_record::PreparedSeries;
use pulsetrain_semconv::{self as semconv, AttributeKind, Metric, event, metric, span};

use crate::{Conversion, CoverageRow, OwnedAttributeValue, key_pattern::KeyPattern};

/// A rule that maps the values of some keys to a target.
#[derive(Clone, Debug)]
pub struct FieldMapping {
    /// The keys.
    pub keys: KeyPattern,
    /// The target of the values.
    pub target: MappingTarget,
    /// The conversion of all numbers; `None` if the suffix of each number decides.
    pub conversion: Option<Conversion>,
    /// The conversion of numbers without a suffix; `None` if their unit is unknown.
    pub without_suffix: Option<Conversion>,
    /// The units as the mapping spells them: of all numbers, and of those without a suffix.
    pub units: (Option<String>, Option<String>),
    /// Whether the log has the cumulative total of a counter.
    pub is_total: bool,
    /// The number that means "not measured" in the log.
    pub sentinel: Option<f64>,
    /// Attributes of all points.
    pub attributes: Vec<(&'static semconv::Attribute, OwnedAttributeValue)>,
    /// Attributes whose values are other fields of the record.
    pub attributes_from: Vec<(&'static semconv::Attribute, String)>,
}

/// The target of values.
#[derive(Clone, Debug)]
pub enum MappingTarget {
    /// Points of a metric.
    Metric(&'static Metric),
    /// The state of a state set.
    State(&'static Metric, &'static semconv::Attribute),
    /// Points of `train.custom` under this name, or under the key.
    Custom(Option<String>),
    /// The option of this name in the configuration of the run.
    Option(String),
    /// No telemetry: the number repeats the step of the record.
    Step,
    /// No telemetry, for this reason.
    Dropped(&'static str),
}

/// The unit of state sets.
const STATE: &str = "{state}";

impl MappingTarget {
    /// Returns the target of a metric; the states of a state set are values of its enumeration.
    pub fn for_metric(metric: &'static Metric) -> Self {
        let mut attributes = metric.attributes.iter().map(|used| used.attribute);
        let states = attributes.find(|attribute| matches!(attribute.kind, AttributeKind::Enum(_)));
        match states.filter(|_| metric.unit == STATE) {
            Some(attribute) => Self::State(metric, attribute),
            None => Self::Metric(metric),
        }
    }

    /// Returns the metric of the registry, if the target is one.
    pub fn metric(&self) -> Option<&'static Metric> {
        match self {
            Self::Metric(metric) | Self::State(metric, _) => Some(metric),
            Self::Custom(_) | Self::Option(_) | Self::Step | Self::Dropped(_) => None,
        }
    }
}

impl FieldMapping {
    /// Returns the row of a key that is the name of a metric, or `None`.
    pub(crate) fn by_name(key: &str) -> Option<Self> {
        let metric = metric::find(key)?;
        Some(Self::plain(
            KeyPattern::Exact(key.to_owned()),
            MappingTarget::for_metric(metric),
        ))
    }

    /// Returns the row of keys that repeat the step.
    pub(crate) fn step(keys: KeyPattern) -> Self {
        Self::plain(keys, MappingTarget::Step)
    }

    fn plain(keys: KeyPattern, target: MappingTarget) -> Self {
        Self {
            keys,
            target,
            conversion: None,
            without_suffix: Some(Conversion::None),
            units: (None, None),
            is_total: false,
            sentinel: None,
            attributes: Vec::new(),
            attributes_from: Vec::new(),
        }
    }

    /// Converts a number without a suffix to the unit of the metric, or returns `None` if its unit is unknown.
    #[inline]
    pub fn convert(&self, number: f64) -> Option<f64> {
        let conversion = self.conversion.or(self.without_suffix)?;
        Some(conversion.apply(number))
    }

    /// Returns whether points of the metric can have an attribute.
    pub fn allows(&self, attribute: &semconv::Attribute) -> bool {
        let metric = self.target.metric();
        metric.is_some_and(|metric| metric.attributes.iter().any(|used| used.attribute == attribute))
    }

    /// Returns the row resolved for one key, or `None` if the key does not match or a captured part is not a valid value of
    /// its attribute.
    pub(crate) fn resolve(self: &Arc<Self>, key: &str) -> Option<ResolvedMapping> {
        let metric = self.target.metric();
        let captured = self.keys.captures(key)?.into_iter().filter_map(|(name, part)| {
            let mut attributes = metric?.attributes.iter().map(|used| used.attribute);
            let attribute = attributes.find(|attribute| attribute.name == name)?;
            Some(OwnedAttributeValue::parse(attribute, part).map(|value| (attribute, value)))
        });
        Some(ResolvedMapping {
            captured: captured.collect::<Option<_>>()?,
            mapping: Arc::clone(self),
        })
    }

    /// Describes the row for the documentation.
    pub fn coverage_row(&self) -> CoverageRow {
        let captured = self
            .keys
            .attributes()
            .into_iter()
            .map(|name| format!("{name}=part of the key"));
        let fixed = self
            .attributes
            .iter()
            .map(|(attribute, value)| format!("{}={value}", attribute.name));
        let from = self
            .attributes_from
            .iter()
            .map(|(attribute, key)| format!("{}=value of {key}", attribute.name));
        CoverageRow {
            record: "",
            key: Cow::Owned(self.keys.text().to_owned()),
            name: match &self.target {
                MappingTarget::Metric(metric) | MappingTarget::State(metric, _) => Cow::Borrowed(metric.name),
                MappingTarget::Custom(_) => Cow::Borrowed(metric::TRAIN_CUSTOM.name),
                MappingTarget::Option(_) => Cow::Borrowed(event::RUN_OPTION.name),
                MappingTarget::Step => Cow::Borrowed(metric::TRAIN_GLOBAL_STEP.name),
                MappingTarget::Dropped(reason) => Cow::Owned(format!("(left out: {reason})")),
            },
            attributes: captured.chain(fixed).chain(from).collect::<Vec<_>>().join(", "),
            conversion: self.conversion_text(),
        }
    }

    fn conversion_text(&self) -> String {
        let unit = match &self.target {
            MappingTarget::State(..) => return "one state of the set".to_owned(),
            MappingTarget::Step => return "repeats the step of the record".to_owned(),
            MappingTarget::Option(name) => return format!("the option `{name}`"),
            MappingTarget::Dropped(_) => return String::new(),
            MappingTarget::Custom(Some(name)) => name,
            MappingTarget::Custom(None) => "under its own name",
            MappingTarget::Metric(metric) => metric.unit,
        };
        let conversion = match self.conversion.or(self.without_suffix) {
            _ if self.is_total => "increase since the previous value".to_owned(),
            Some(conversion) => conversion.text(),
            None => "by its suffix".to_owned(),
        };
        match self.sentinel {
            Some(sentinel) => format!("{conversion}, `{unit}`; {sentinel} is not measured"),
            None => format!("{conversion}, `{unit}`"),
        }
    }
}

/// A row resolved for one key.
#[derive(Clone, Debug)]
pub struct ResolvedMapping {
    /// The row.
    pub mapping: Arc<FieldMapping>,
    /// The attributes that are captured from the key.
    pub captured: Vec<(&'static semconv::Attribute, OwnedAttributeValue)>,
}

impl ResolvedMapping {
    /// Returns the attributes of all values: parts of the key, then those of the row.
    pub fn fixed(&self) -> impl Iterator<Item = Attribute<'_>> {
        let all = self.captured.iter().chain(&self.mapping.attributes);
        all.map(|(attribute, value)| (*attribute, value.value()))
    }

    /// Returns whether points have no attributes.
    pub fn is_plain(&self) -> bool {
        let mapping = &self.mapping;
        self.captured.is_empty() && mapping.attributes.is_empty() && mapping.attributes_from.is_empty()
    }

    /// Returns the attributes of a step's and of an evaluation's span that have the name of the metric. There are none if the
    /// points have attributes, since a span has only one value.
    pub(crate) fn span_attributes(&self) -> [Option<&'static semconv::Attribute>; 2] {
        let metric = self.mapping.target.metric().filter(|_| self.is_plain());
        [&span::TRAIN_STEP, &span::EVAL_RUN].map(|span| {
            let mut attributes = span.attributes.iter().map(|used| used.attribute);
            attributes.find(|attribute| metric.is_some_and(|metric| attribute.name == metric.name))
        })
    }

    /// Returns the series of all values with `first` before the row's own attributes.
    pub(crate) fn series(&self, metric: &'static Metric, first: &[Attribute<'_>]) -> PreparedSeries {
        let attributes: Vec<Attribute<'_>> = first.iter().copied().chain(self.fixed()).collect();
        PreparedSeries::new(metric, &attributes)
    }
}
