//! What the lines of a template say: which field is made of which of their numbers, and which are the same in all of them.

use std::{borrow::Cow, ops::Range};

use crate::logs::{
    fields::{Field, Value},
    number_text::Form,
    row::Row,
};

/// Fields, of which some are made of numbers of the line, and what else its format has found in it.
#[derive(Debug)]
pub(in crate::logs) struct Sketch<M> {
    pub(super) numbers: Vec<Number>,
    /// The numbers of the line that was read last.
    pub(super) values: Vec<f64>,
    pub(in crate::logs) fields: Vec<Drawn>,
    /// The table that the fields are recorded by.
    pub(in crate::logs) rows: &'static [Row],
    /// What else there is; no number changes it.
    pub(in crate::logs) more: M,
}

/// A field of all lines of a template.
#[derive(Debug)]
pub(in crate::logs) struct Drawn {
    pub(in crate::logs) key: String,
    pub(in crate::logs) found: Found,
    pub(super) said: Said,
}

/// What a field says.
#[derive(Debug)]
pub(super) enum Said {
    /// What is made of the number at this place, and of those that follow it.
    Made(How, usize),
    /// The same in every line, and the number that it is.
    Constant(Value<'static>, Option<f64>),
}

/// Where in a table the row of a field is.
#[derive(Clone, Copy, Debug)]
pub(in crate::logs) enum Found {
    /// There; and all that is to be done with a number is to convert it and to record it.
    Simple(usize),
    /// There.
    There(usize),
    /// No row knows the field.
    Nowhere,
    /// The field is no value: it says what the others are of.
    Apart,
}

/// Where a number stands in its line.
#[derive(Debug)]
pub(super) struct Number {
    pub(super) range: Range<usize>,
    pub(super) form: Form,
}

/// How a field is made of its number.
#[derive(Clone, Copy, Debug)]
pub(in crate::logs) enum How {
    /// The number, so many times.
    Times(f64),
    /// The number, divided by this.
    Over(f64),
    /// One divided by the number.
    Inverse,
    /// So many numbers, each of which counts the sixtieths of the one before it; all of it so many times.
    Sixtieths(usize, f64),
}

impl How {
    /// The number that it makes of the first of these.
    #[inline]
    fn of(self, numbers: &[f64]) -> f64 {
        // Nearly all are of this kind.
        if let Self::Times(factor) = self {
            return numbers[0] * factor;
        }
        self.of_other(numbers)
    }

    #[inline(never)]
    fn of_other(self, numbers: &[f64]) -> f64 {
        match self {
            Self::Times(factor) => numbers[0] * factor,
            Self::Over(divisor) => numbers[0] / divisor,
            Self::Inverse => 1.0 / numbers[0],
            Self::Sixtieths(count, factor) => sixtieths(&numbers[..count]) * factor,
        }
    }
}

fn sixtieths(parts: &[f64]) -> f64 {
    parts.iter().fold(0.0, |sum, part| sum * 60.0 + part)
}

impl<M> Sketch<M> {
    /// The number of the line at this place among those that were drawn.
    pub(in crate::logs) fn number(&self, place: usize) -> f64 {
        self.values[place]
    }

    /// The number that a field of the line says; nothing where it is text.
    #[inline]
    pub(in crate::logs) fn number_of(&self, field: &Drawn) -> Option<f64> {
        match &field.said {
            Said::Made(how, first) => Some(how.of(&self.values[*first..])),
            Said::Constant(_, number) => *number,
        }
    }

    /// The number of the field at this place.
    pub(in crate::logs) fn number_at(&self, place: Option<usize>) -> Option<f64> {
        self.number_of(self.fields.get(place?)?)
    }

    /// The place of the field with this key.
    pub(in crate::logs) fn place(&self, key: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.key == key)
    }

    /// A field as any record has it.
    pub(in crate::logs) fn field<'s>(&'s self, drawn: &'s Drawn) -> Field<'s> {
        let value = match &drawn.said {
            Said::Made(how, first) => Value::Number(how.of(&self.values[*first..])),
            Said::Constant(Value::Number(number), _) => Value::Number(*number),
            Said::Constant(Value::Text(text), _) => Value::Text(Cow::Borrowed(text)),
        };
        (Cow::Borrowed(&drawn.key), value)
    }

    /// What the field at this place says, where that is text.
    pub(in crate::logs) fn text_at(&self, place: Option<usize>) -> Option<&str> {
        match &self.fields.get(place?)?.said {
            Said::Constant(Value::Text(text), _) => Some(text),
            _ => None,
        }
    }

    /// All fields as any record has them.
    pub(in crate::logs) fn all(&self) -> Vec<Field<'_>> {
        self.fields.iter().map(|drawn| self.field(drawn)).collect()
    }
}

/// Equal in what they say: NaN is what NaN is.
impl<M: PartialEq> PartialEq for Sketch<M> {
    fn eq(&self, other: &Self) -> bool {
        let bits = |sketch: &Self| {
            sketch
                .values
                .iter()
                .map(|value| value.to_bits())
                .collect::<Vec<_>>()
        };
        bits(self) == bits(other)
            && self.more == other.more
            && format!("{:?}", self.all()) == format!("{:?}", other.all())
    }
}
