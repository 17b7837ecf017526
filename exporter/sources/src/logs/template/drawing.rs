//! What a line says, drawn once for all lines of its template.

use std::{borrow::Cow, ops::Range};

use crate::logs::{
    fields::{Field, Value},
    number_text::{self, Form},
    row::{Row, find},
};

/// Fields, of which some are made of numbers of the line, and what else its format has found in it.
#[derive(Debug)]
pub(in crate::logs) struct Sketch<M> {
    numbers: Vec<Number>,
    /// The numbers of the line that was read last.
    values: Vec<f64>,
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
    said: Said,
}

/// What a field says.
#[derive(Debug)]
enum Said {
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

    pub(super) fn numbers(&self) -> &[Number] {
        &self.numbers
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(super) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
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
            Said::Made(..) => self
                .number_of(drawn)
                .map_or(Value::Number(f64::NAN), Value::Number),
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

/// Draws the sketch of a line. The numbers are parts of the line's text, in their order.
#[derive(Debug)]
pub(in crate::logs) struct Drawing<'l, M> {
    line: &'l str,
    sketch: Sketch<M>,
}

impl<'l, M> Drawing<'l, M> {
    /// Begins with nothing but what no number changes.
    pub(in crate::logs) fn of(line: &'l str, more: M) -> Self {
        let sketch = Sketch {
            numbers: Vec::new(),
            values: Vec::new(),
            fields: Vec::new(),
            rows: &[],
            more,
        };
        Self { line, sketch }
    }

    /// The sketch, with the rows of its fields.
    pub(in crate::logs) fn finish(self, rows: &'static [Row]) -> Sketch<M> {
        self.finish_without(rows, |_| false)
    }

    /// The same, where fields with some keys are no values.
    pub(in crate::logs) fn finish_without(
        mut self,
        rows: &'static [Row],
        is_apart: impl Fn(&str) -> bool,
    ) -> Sketch<M> {
        let mut expected = 0;
        for field in &mut self.sketch.fields {
            field.found = match find(rows, &field.key, &mut expected) {
                _ if is_apart(&field.key) => Found::Apart,
                Some(place) if rows[place].is_simple() => Found::Simple(place),
                Some(place) => Found::There(place),
                None => Found::Nowhere,
            };
        }
        self.sketch.rows = rows;
        self.sketch
    }

    /// What no number changes.
    pub(in crate::logs) fn more(&mut self) -> &mut M {
        &mut self.sketch.more
    }

    /// The sketch so far.
    pub(in crate::logs) fn sketch(&self) -> &Sketch<M> {
        &self.sketch
    }

    /// A count, with its place among the numbers; nothing where the text is none.
    pub(in crate::logs) fn count(&mut self, text: &'l str) -> Option<usize> {
        self.take(text, Form::Count)
    }

    /// A field whose value no number of the line changes.
    pub(in crate::logs) fn constant(&mut self, key: &str, value: Value<'_>) {
        let value = match value {
            Value::Number(number) => Value::Number(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
        };
        let number = value.number();
        self.says(key, Said::Constant(value, number));
    }

    fn says(&mut self, key: &str, said: Said) {
        self.sketch.fields.push(Drawn {
            key: key.to_owned(),
            found: Found::Nowhere,
            said,
        });
    }

    /// A field whose number stands in `text`, so many times; or text, where that is no number.
    pub(in crate::logs) fn number(&mut self, key: &str, text: &'l str, times: f64) {
        // A plus is of what stands before the number.
        let unsigned = text.strip_prefix('+').unwrap_or(text);
        if !self.made(key, &[unsigned], How::Times(times)) {
            let number = number_text::any(text).map(|number| Value::Number(number * times));
            self.constant(key, number.unwrap_or(Value::Text(Cow::Borrowed(text))));
        }
    }

    /// A field of which is known what it says in this line; `text` is how that stands there.
    pub(in crate::logs) fn value(&mut self, key: &str, value: Value<'_>, text: &'l str) {
        let number = match value {
            Value::Number(_) => self.take(text, Form::Decimal),
            Value::Text(_) => None,
        };
        match number {
            Some(number) => self.reads(key, number, How::Times(1.0)),
            None => self.constant(key, value),
        }
    }

    /// A field that is made of the numbers in `texts`; answers whether they are plain ones. Several numbers are counts.
    pub(in crate::logs) fn made(&mut self, key: &str, texts: &[&'l str], how: How) -> bool {
        let first = self.sketch.values.len();
        let form = match how {
            How::Sixtieths(..) => Form::Count,
            _ => Form::Grouped,
        };
        if texts.iter().any(|text| self.take(text, form).is_none()) {
            self.sketch.numbers.truncate(first);
            self.sketch.values.truncate(first);
            return false;
        }
        self.reads(key, first, how);
        true
    }

    /// A field that is made of the number at this place, and of those that follow it.
    pub(in crate::logs) fn reads(&mut self, key: &str, first: usize, how: How) {
        self.says(key, Said::Made(how, first));
    }

    fn take(&mut self, text: &'l str, form: Form) -> Option<usize> {
        let start = (text.as_ptr() as usize).checked_sub(self.line.as_ptr() as usize)?;
        let range = start..start + text.len();
        let is_behind = self
            .sketch
            .numbers
            .last()
            .is_none_or(|last| last.range.end <= start);
        let number = number_text::printed_prefix(text.as_bytes())?;
        if !is_behind
            || self.line.get(range.clone()) != Some(text)
            || number.len != text.len()
            || number.form > form
        {
            return None;
        }
        self.sketch.numbers.push(Number { range, form });
        self.sketch.values.push(number.value);
        Some(self.sketch.values.len() - 1)
    }
}
