//! The span attributes that are set from the numbers of a record.

use pulsetrain_otlp::write::{Attribute, AttributeValue};
use pulsetrain_semconv::{self as semconv, AttributeKind, attribute};

/// The attributes of the spans of a record.
#[derive(Debug, Default)]
pub struct SpanAttributes {
    /// The attributes that the registry lists for `train.step`.
    pub step: Vec<Attribute<'static>>,
    /// The attributes that the registry lists for `eval.run`.
    pub eval: Vec<Attribute<'static>>,
}

impl SpanAttributes {
    /// Begins a record: both spans get its step, if it has one.
    pub fn begin(&mut self, step: Option<i64>) {
        for attributes in [&mut self.step, &mut self.eval] {
            attributes.clear();
            attributes.extend(step.map(|step| (&attribute::TRAIN_STEP, AttributeValue::Int(step))));
        }
    }

    /// Adds a number to those spans that list its attribute.
    #[inline]
    pub(crate) fn add(&mut self, [step, eval]: [Option<&'static semconv::Attribute>; 2], number: f64) {
        self.step.extend(step.map(|attribute| typed(attribute, number)));
        self.eval.extend(eval.map(|attribute| typed(attribute, number)));
    }
}

fn typed(attribute: &'static semconv::Attribute, number: f64) -> Attribute<'static> {
    match attribute.kind {
        AttributeKind::Int => (attribute, AttributeValue::Int(number as i64)),
        _ => (attribute, AttributeValue::Double(number)),
    }
}
