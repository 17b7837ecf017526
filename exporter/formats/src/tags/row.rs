//! A row of a table of tags: the tag, our metric, and the conversion at the ingress.

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::{self as semconv, Metric};

use crate::{conversion::Conversion, logs::Covered};

/// What becomes of the numbers under a tag.
#[derive(Debug)]
pub(crate) struct TagRow {
    /// The tag, with `{}` where a part of it varies.
    pub(super) pattern: &'static str,
    pub(super) becomes: Becomes,
    pub(super) conversion: Conversion,
    /// Attributes that every point has.
    pub(super) attributes: &'static [Attribute<'static>],
    /// Attributes whose values are varying parts of the tag, by the number of the part.
    pub(super) captures: &'static [Capture],
}

/// The number of a varying part of a tag, and the attribute that it is the value of.
pub(crate) type Capture = (usize, &'static semconv::Attribute);

/// What a number becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Becomes {
    /// A value of the metric.
    Value(&'static Metric),
    /// What the counter has come to since the start of the run.
    Total(&'static Metric),
    /// The state that a state set is in; for text.
    State(&'static Metric, &'static semconv::Attribute),
    /// `train.custom` under the tag, by which it is known.
    Custom,
    /// The step, which every point's file has said already.
    Step,
    /// Nothing, by the rule of this name.
    Nothing(&'static str),
}

/// Numbers under `pattern` are values of `metric`, in the same unit.
pub(crate) const fn tag(pattern: &'static str, metric: &'static Metric) -> TagRow {
    becomes(pattern, Becomes::Value(metric))
}

/// Numbers under `pattern` are what the counter `metric` has come to.
pub(super) const fn total(pattern: &'static str, metric: &'static Metric) -> TagRow {
    becomes(pattern, Becomes::Total(metric))
}

/// Text under `pattern` is the state that `metric` is in.
pub(super) const fn state(
    pattern: &'static str,
    metric: &'static Metric,
    attribute: &'static semconv::Attribute,
) -> TagRow {
    becomes(pattern, Becomes::State(metric, attribute))
}

/// Numbers under `pattern` have no metric of their own and keep the name of their tag.
pub(crate) const fn keep(pattern: &'static str) -> TagRow {
    becomes(pattern, Becomes::Custom)
}

/// Numbers under `pattern` are the step.
pub(super) const fn step(pattern: &'static str) -> TagRow {
    becomes(pattern, Becomes::Step)
}

/// Numbers under `pattern` are left out by `rule`.
pub(crate) const fn nothing(pattern: &'static str, rule: &'static str) -> TagRow {
    becomes(pattern, Becomes::Nothing(rule))
}

const fn becomes(pattern: &'static str, becomes: Becomes) -> TagRow {
    TagRow {
        pattern,
        becomes,
        conversion: Conversion::None,
        attributes: &[],
        captures: &[],
    }
}

impl TagRow {
    pub(crate) const fn times(self, factor: f64) -> Self {
        Self {
            conversion: Conversion::Times(factor),
            ..self
        }
    }

    pub(crate) const fn divided_by(self, divisor: f64) -> Self {
        Self {
            conversion: Conversion::DividedBy(divisor),
            ..self
        }
    }

    /// The points carry these attributes.
    pub(crate) const fn with(self, attributes: &'static [Attribute<'static>]) -> Self {
        Self { attributes, ..self }
    }

    /// The points carry the varying parts of the tag as these attributes.
    pub(crate) const fn capturing(self, captures: &'static [Capture]) -> Self {
        Self { captures, ..self }
    }
}

impl TagRow {
    /// The row as a line of the coverage table.
    pub(crate) fn covered(&self) -> Covered {
        let given = self.attributes.iter().map(|(attribute, value)| match value {
            Value::Text(text) => format!("{}={text}", attribute.name),
            other => format!("{}={other:?}", attribute.name),
        });
        let captured = self
            .captures
            .iter()
            .map(|(_, attribute)| format!("{}={{}}", attribute.name));
        Covered {
            key: self.pattern,
            name: match self.becomes {
                Becomes::Value(metric) | Becomes::Total(metric) | Becomes::State(metric, _) => metric.name,
                Becomes::Custom => semconv::metric::TRAIN_CUSTOM.name,
                Becomes::Step => semconv::metric::TRAIN_GLOBAL_STEP.name,
                Becomes::Nothing(rule) => rule,
            },
            attributes: captured.chain(given).collect::<Vec<_>>().join(", "),
            conversion: self.conversion_text(),
        }
    }

    fn conversion_text(&self) -> String {
        match (self.becomes, self.conversion) {
            (Becomes::Total(metric), _) => format!("growth since the value before, `{}`", metric.unit),
            (Becomes::State(..), _) => "one state of the set".to_owned(),
            (Becomes::Custom, _) => "as it is, under its own name".to_owned(),
            (Becomes::Step, _) => "said with every point of the step".to_owned(),
            (Becomes::Nothing(_), _) => "left out".to_owned(),
            (Becomes::Value(metric), Conversion::None) => format!("as it is, `{}`", metric.unit),
            (Becomes::Value(metric), Conversion::Times(factor)) => {
                format!("times {factor:e}, `{}`", metric.unit)
            }
            (Becomes::Value(metric), Conversion::DividedBy(divisor)) => {
                format!("divided by {divisor:e}, `{}`", metric.unit)
            }
            (Becomes::Value(metric), Conversion::PercentAboveOne) => {
                format!("a number above 1 is in percent, `{}`", metric.unit)
            }
        }
    }
}
