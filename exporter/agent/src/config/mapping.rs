//! What the keys of a log of no known format mean: a part of the configuration, and a file of its own for `--mapping`.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use pulsetrain_sources::{
    SourceError,
    logs::{Mapping, MappingPart, ValueBecomes, ValueRule},
};
use serde::Deserialize;

use super::{
    Fault, Placed, Spot,
    read::load_part,
    section::{Setting, Shown},
};

/// A mapping as it is written; `exporter/sources/MAPPING.md` says what each key means.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MappingSection {
    step: Option<String>,
    time: Option<String>,
    time_format: Option<Placed<String>>,
    line: Option<Placed<String>>,
    between: Option<Placed<String>>,
    sign: Option<Placed<String>>,
    unknown: Unknown,
    values: Vec<Placed<RuleSection>>,
}

/// What becomes of keys that no rule knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unknown {
    /// They are kept as `train.custom`.
    #[default]
    Keep,
    /// They are left out.
    Drop,
}

/// What one key, or all keys of a pattern, mean.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RuleSection {
    key: Option<Placed<String>>,
    pattern: Option<Placed<String>>,
    metric: Option<Placed<String>>,
    custom: Option<Placed<String>>,
    drop: bool,
    unit: Option<Placed<String>>,
    factor: Option<Placed<f64>>,
    total: bool,
    attributes: BTreeMap<String, Placed<String>>,
    attributes_from: BTreeMap<String, Placed<String>>,
}

impl MappingSection {
    /// The mapping.
    ///
    /// # Errors
    /// Everything that makes no sense, each with its place.
    pub(crate) fn build(&self) -> Result<Arc<Mapping>, Vec<(Spot, String)>> {
        let (mut mapping, mut faults) = (Mapping::default(), Vec::new());
        self.step.iter().for_each(|key| mapping.set_step(key));
        self.time.iter().for_each(|key| mapping.set_time(key));
        if let Some(form) = &self.time_format {
            faults.extend(fault(form.spot, mapping.set_time_form(form)));
        }
        if let Some(line) = &self.line {
            faults.extend(fault(line.spot, mapping.set_line(line)));
        }
        let text = |placed: &Option<Placed<String>>| placed.as_ref().map(|placed| placed.value.clone());
        let spot = self
            .between
            .as_ref()
            .or(self.sign.as_ref())
            .map(|placed| placed.spot);
        let pairs = mapping.set_pairs(text(&self.between).as_deref(), text(&self.sign).as_deref());
        faults.extend(fault(spot.unwrap_or_default(), pairs));
        if self.unknown == Unknown::Drop {
            mapping.drop_unknown();
        }
        for rule in &self.values {
            match rule.rule() {
                Ok(value) => faults.extend(rule.fault(rule.spot, mapping.add(&value))),
                Err(message) => faults.push((rule.spot, message)),
            }
        }
        if faults.is_empty() {
            Ok(Arc::new(mapping))
        } else {
            Err(faults)
        }
    }
}

impl RuleSection {
    fn rule(&self) -> Result<ValueRule, String> {
        let (key, is_pattern) = match (&self.key, &self.pattern) {
            (Some(key), None) => (key, false),
            (None, Some(pattern)) => (pattern, true),
            _ => return Err("a rule has either a key or a pattern".to_owned()),
        };
        let becomes = match (&self.metric, &self.custom, self.drop) {
            (Some(metric), None, false) => ValueBecomes::Metric(metric.value.clone()),
            (None, Some(name), false) => ValueBecomes::Custom(name.value.clone()),
            (None, None, true) => ValueBecomes::Nothing,
            _ => {
                return Err(format!(
                    "the rule of {:?} says what becomes of it by one of: metric, custom, drop: true",
                    key.value
                ));
            }
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
            becomes,
            unit: self.unit.as_ref().map(|unit| unit.value.clone()),
            factor: self.factor.as_ref().map(|factor| factor.value),
            is_total: self.total,
            attributes: owned(&self.attributes),
            attributes_from: owned(&self.attributes_from),
        })
    }

    /// The fault at the part of the rule that it is about.
    fn fault(&self, rule: Spot, outcome: Result<(), SourceError>) -> Option<(Spot, String)> {
        let part = match &outcome {
            Err(SourceError::Mapping { part, .. }) => self.spot_of(part),
            _ => None,
        };
        fault(part.unwrap_or(rule), outcome)
    }

    fn spot_of(&self, part: &MappingPart) -> Option<Spot> {
        let text = |placed: &Option<Placed<String>>| placed.as_ref().map(|placed| placed.spot);
        match part {
            MappingPart::Key => text(&self.key).or(text(&self.pattern)),
            MappingPart::Metric => text(&self.metric).or(text(&self.custom)),
            MappingPart::Unit => text(&self.unit).or(self.factor.as_ref().map(|factor| factor.spot)),
            MappingPart::Attribute(name) => {
                let named = self
                    .attributes
                    .get(name)
                    .or_else(|| self.attributes_from.get(name));
                named.map(|value| value.spot).or(text(&self.pattern))
            }
            _ => None,
        }
    }
}

fn fault(spot: Spot, outcome: Result<(), SourceError>) -> Option<(Spot, String)> {
    outcome.err().map(|error| (spot, error.to_string()))
}

/// The mapping in a file of its own.
///
/// # Errors
/// Everything that is wrong with it, each with its place.
pub(crate) fn load_mapping(path: &Path) -> Result<Arc<Mapping>, Vec<Fault>> {
    let section: MappingSection =
        load_part(path, &std::env::vars().collect()).map_err(|fault| vec![fault])?;
    let file = path.display().to_string();
    section.build().map_err(|faults| {
        let placed = faults.into_iter();
        placed
            .map(|(spot, message)| Fault::at(&file, spot, message))
            .collect()
    })
}

impl Setting for MappingSection {
    /// A mapping is for one log alone, so the example has none.
    fn shown(&self) -> Shown {
        Shown::Unset
    }
}
