//! A row in YAML, checked against the registry.

use std::{collections::BTreeMap, fmt::Display};

use pulsetrain_semconv::{Attribute, AttributeKind, Instrument, Metric, attribute, metric};
use serde::Deserialize;

use crate::{
    Conversion, FieldMapping, MappingError, MappingFault, MappingPart, MappingTarget, OwnedAttributeValue,
    file::Located, key_pattern::KeyPattern, unit,
};

/// The mapping of one key, or of all keys of a form or a pattern.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RowEntry {
    pub(crate) key: Option<Located<String>>,
    pattern: Option<Located<String>>,
    metric: Option<Located<String>>,
    custom: Option<Located<String>>,
    keep: bool,
    option: Option<Located<String>>,
    drop: bool,
    reason: Option<Located<String>>,
    unit: Option<Located<String>>,
    default_unit: Option<Located<String>>,
    factor: Option<Located<f64>>,
    total: bool,
    sentinel: Option<f64>,
    attributes: BTreeMap<String, Located<String>>,
    attributes_from: BTreeMap<String, Located<String>>,
}

/// The unit for numbers that have a unit only in their suffix.
const NO_UNIT: &str = "none";

/// The unit of values without a metric.
const RATIO: &str = "1";

/// The reasons for dropped values: the default, and those that a mapping can set as `reason`.
const BY_MAPPING: &str = "mapping";
const REASONS: [&str; 2] = [BY_MAPPING, "jax_time_of_day"];

fn wrong(part: MappingPart, message: impl Into<String>) -> MappingError {
    MappingError::new(part, message)
}

impl RowEntry {
    /// Returns the row.
    ///
    /// # Errors
    /// Returns the part that is not valid.
    pub(crate) fn build(&self) -> Result<FieldMapping, MappingError> {
        let keys = match (&self.key, &self.pattern) {
            (Some(key), None) => KeyPattern::key(key)?,
            (None, Some(pattern)) => KeyPattern::regex(pattern)?,
            _ => return Err(wrong(MappingPart::Key, "a row has either a key or a pattern")),
        };
        let target = self.target(keys.text())?;
        if self.reason.is_some() && !self.drop {
            let message = "only a row with drop: true has a reason: remove reason";
            return Err(wrong(MappingPart::Reason, message));
        }
        let metric = target.metric();
        self.check_conversion(&target)?;
        let is_counter = metric.is_some_and(|metric| metric.instrument == Instrument::Counter);
        if self.total && !is_counter {
            let message = "only a counter has a total: remove total";
            return Err(wrong(MappingPart::Metric, message));
        }
        let captured = keys.attributes();
        let mut names: Vec<&String> = captured.iter().chain(self.attributes.keys()).collect();
        for name in &names {
            attribute_of(metric, name)?;
        }
        names.extend(self.attributes_from.keys());
        names.sort_unstable();
        if let Some(duplicate) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!(
                "{} has two values: set it once, in the key, attributes or attributes_from",
                duplicate[0]
            );
            return Err(wrong(MappingPart::Attribute(duplicate[0].clone()), message));
        }
        let attributes = self.attributes.iter().map(|(name, value)| {
            let attribute = attribute_of(metric, name)?;
            let typed = OwnedAttributeValue::parse(attribute, &value.value);
            typed
                .map(|value| (attribute, value))
                .ok_or_else(|| not_a_value(attribute, &value.value))
        });
        let from = self
            .attributes_from
            .iter()
            .map(|(name, key)| Ok((attribute_of(metric, name)?, (**key).clone())));
        let spelling = |unit: &Option<Located<String>>| unit.as_ref().map(|unit| (**unit).clone());
        Ok(FieldMapping {
            conversion: self.conversion(metric)?,
            without_suffix: match spelling(&self.default_unit) {
                Some(spelling) if spelling == NO_UNIT => None,
                Some(spelling) => Some(by_unit(&spelling, metric)?),
                None => Some(Conversion::None),
            },
            units: (spelling(&self.unit), spelling(&self.default_unit)),
            is_total: self.total,
            sentinel: self.sentinel,
            attributes: attributes.collect::<Result<_, _>>()?,
            attributes_from: from.collect::<Result<_, MappingError>>()?,
            keys,
            target,
        })
    }

    fn target(&self, key: &str) -> Result<MappingTarget, MappingError> {
        match (&self.metric, &self.custom, &self.option, self.keep, self.drop) {
            (Some(name), None, None, false, false) => metric_named(name).map(MappingTarget::for_metric),
            (None, Some(name), None, false, false) | (None, None, Some(name), false, false)
                if name.is_empty() =>
            {
                let message = "the name of a custom metric or of an option is not empty";
                Err(wrong(MappingPart::Metric, message))
            }
            (None, Some(name), None, false, false) => Ok(MappingTarget::Custom(Some((**name).clone()))),
            (None, None, Some(name), false, false) => Ok(MappingTarget::Option((**name).clone())),
            (None, None, None, true, false) => Ok(MappingTarget::Custom(None)),
            (None, None, None, false, true) => self.reason().map(MappingTarget::Dropped),
            _ => Err(wrong(
                MappingPart::Metric,
                format!("the row of {key:?} has one of: metric, custom, keep: true, option, drop: true"),
            )),
        }
    }

    fn reason(&self) -> Result<&'static str, MappingError> {
        let Some(given) = &self.reason else {
            return Ok(BY_MAPPING);
        };
        let known = REASONS.iter().find(|reason| **reason == given.as_str());
        known.copied().ok_or_else(|| {
            wrong(MappingPart::Reason, format!("there is no reason {:?}", **given))
                .with_remedy(format!("leave it out, or give one of: {}", REASONS.join(", ")))
        })
    }

    /// Rejects units, factors and sentinels of values that are not points.
    fn check_conversion(&self, target: &MappingTarget) -> Result<(), MappingError> {
        let has_unit = self.unit.is_some() || self.default_unit.is_some();
        let converts = has_unit || self.factor.is_some() || self.sentinel.is_some();
        if converts
            && matches!(
                target,
                MappingTarget::Option(_) | MappingTarget::State(..) | MappingTarget::Dropped(_)
            )
        {
            let message = "an option, a state or a dropped value has no unit, default_unit, factor or sentinel: remove it";
            return Err(wrong(MappingPart::Unit, message));
        }
        Ok(())
    }

    fn conversion(&self, metric: Option<&'static Metric>) -> Result<Option<Conversion>, MappingError> {
        match (&self.unit, self.factor.as_ref().map(|factor| **factor)) {
            (Some(_), Some(_)) => Err(wrong(
                MappingPart::Unit,
                "`unit` and `factor` are both given: keep one of them",
            )),
            (unit, factor) if self.default_unit.is_some() && (unit.is_some() || factor.is_some()) => {
                Err(wrong(
                    MappingPart::Unit,
                    "`default_unit` is for numbers without a suffix, `unit` and `factor` are for all: keep one of them",
                ))
            }
            (Some(spelling), None) => by_unit(spelling, metric).map(Some),
            (None, Some(factor)) if !factor.is_finite() || factor == 0.0 => Err(wrong(
                MappingPart::Unit,
                "a factor is a finite number other than 0",
            )
            .with_remedy("to drop values, write drop: true")),
            (None, factor) => Ok(factor.map(Conversion::Times)),
        }
    }

    /// Returns the error at the position of the part that it is about.
    pub(crate) fn fault(&self, row: &Located<Self>, error: &MappingError) -> MappingFault {
        let at = |placed: &Located<String>| placed.at_error(error);
        let fault = match &error.part {
            MappingPart::Key => self.key.as_ref().or(self.pattern.as_ref()).map(at),
            MappingPart::Metric => {
                let named = self.metric.as_ref().or(self.custom.as_ref());
                named.or(self.option.as_ref()).map(at)
            }
            MappingPart::Reason => self.reason.as_ref().map(at),
            MappingPart::Unit => {
                let factor = || self.factor.as_ref().map(|factor| factor.at_error(error));
                let unit = self.unit.as_ref().or(self.default_unit.as_ref());
                unit.map(at).or_else(factor)
            }
            MappingPart::Attribute(name) => {
                let from = || self.attributes_from.get(name);
                let named = self.attributes.get(name).or_else(from);
                named.or(self.key.as_ref()).or(self.pattern.as_ref()).map(at)
            }
            _ => None,
        };
        fault.unwrap_or_else(|| row.at_error(error))
    }
}

fn metric_named(name: &str) -> Result<&'static Metric, MappingError> {
    metric::find(name).ok_or_else(|| {
        let message = format!("there is no metric {name:?}{}", similar(name));
        wrong(MappingPart::Metric, message).with_remedy(format!(
            "pulsetrain semconv list --kind metric names all, and custom: {name} keeps it as train.custom"
        ))
    })
}

/// Lists metrics whose names end like `name`.
fn similar(name: &str) -> String {
    let last = format!(".{}", name.rsplit(['.', '/']).next().unwrap_or(name));
    let names = metric::ALL.iter().map(|metric| metric.name);
    let alike: Vec<&str> = names.filter(|known| known.ends_with(&last)).take(4).collect();
    if alike.is_empty() {
        String::new()
    } else {
        format!(" (there is {})", alike.join(", "))
    }
}

fn by_unit(spelling: &str, metric: Option<&'static Metric>) -> Result<Conversion, MappingError> {
    // An empty text is the suffix of a number without a unit.
    let known = |unit| unit::conversion(spelling, unit).filter(|_| !spelling.is_empty());
    let Some(metric) = metric else {
        return known(RATIO).ok_or_else(|| {
            let message = "without a metric the unit can be ratio or percent";
            wrong(MappingPart::Unit, message).with_remedy("for others give factor")
        });
    };
    known(metric.unit).ok_or_else(|| {
        let spellings = unit::spellings_of(metric.unit);
        let instead = if spellings.is_empty() {
            "leave unit out, or give factor".to_owned()
        } else {
            format!("it can be: {spellings}")
        };
        let message = format!("{} is in {}, which {spelling:?} is not", metric.name, metric.unit);
        wrong(MappingPart::Unit, message).with_remedy(instead)
    })
}

/// Returns the attribute with a name, if the metric has it.
fn attribute_of(metric: Option<&'static Metric>, name: &str) -> Result<&'static Attribute, MappingError> {
    let fault = |message: String| wrong(MappingPart::Attribute(name.to_owned()), message);
    let Some(metric) = metric else {
        return Err(fault(format!(
            "only points of a metric have attributes: remove {name}"
        )));
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
            fault(format!("{} has no attribute {name:?}", metric.name)).with_remedy(instead)
        })
}

fn not_a_value(attribute: &Attribute, value: impl Display) -> MappingError {
    let wrong = |message| wrong(MappingPart::Attribute(attribute.name.to_owned()), message);
    match attribute.kind {
        AttributeKind::Enum(known) => {
            let known = known.join(", ");
            wrong(format!("\"{value}\" is not a value of {}", attribute.name))
                .with_remedy(format!("it can be: {known}"))
        }
        _ => wrong(format!(
            "{}: expected an integer, found \"{value}\"",
            attribute.name
        )),
    }
}
