//! What a line says, drawn once for all lines of its template.

use std::{borrow::Cow, ops::Range};

use crate::logs::{
    fields::{Field, Value},
    number_text,
    row::{Row, find},
};

/// Fields, of which some are made of numbers of the line, and what else its format has found in it.
#[derive(Debug)]
pub(in crate::logs) struct Sketch<M> {
    numbers: Vec<Number>,
    /// The numbers of the line that was read last.
    values: Vec<f64>,
    /// The fields of that line.
    pub(in crate::logs) fields: Vec<Field<'static>>,
    readings: Vec<Reading>,
    /// The table that the fields are recorded by.
    pub(in crate::logs) rows: &'static [Row],
    /// Where in it the row of each field is.
    pub(in crate::logs) found: Vec<Found>,
    /// What else there is; no number changes it.
    pub(in crate::logs) more: M,
}

/// Where in a table the row of a field is.
#[derive(Clone, Copy, Debug)]
pub(in crate::logs) enum Found {
    /// There; and all that is to be done with a number is to convert it.
    Simple(usize),
    /// There.
    There(usize),
    /// No row knows the field.
    Nowhere,
}

/// Where a number stands in its line.
#[derive(Debug)]
pub(super) struct Number {
    pub(super) range: Range<usize>,
    pub(super) is_count: bool,
}

/// Which field is made of which numbers.
#[derive(Clone, Copy, Debug)]
struct Reading {
    field: usize,
    first: usize,
    how: How,
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
    #[inline]
    fn of(self, numbers: &[f64]) -> f64 {
        match self {
            Self::Times(1.0) => numbers[0],
            Self::Times(factor) => numbers[0] * factor,
            Self::Over(divisor) => numbers[0] / divisor,
            Self::Inverse => 1.0 / numbers[0],
            Self::Sixtieths(count, factor) => {
                let parts = numbers[..count].iter();
                parts.fold(0.0, |sum, part| sum * 60.0 + part) * factor
            }
        }
    }
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

    /// Makes the fields of the numbers.
    #[inline]
    pub(super) fn make_fields(&mut self) {
        for Reading { field, first, how } in &self.readings {
            self.fields[*field].1 = Value::Number(how.of(&self.values[*first..]));
        }
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
            && format!("{:?}", self.fields) == format!("{:?}", other.fields)
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
            readings: Vec::new(),
            rows: &[],
            found: Vec::new(),
            more,
        };
        Self { line, sketch }
    }

    /// The sketch, with the rows of its fields.
    pub(in crate::logs) fn finish(mut self, rows: &'static [Row]) -> Sketch<M> {
        let mut expected = 0;
        let fields = self.sketch.fields.iter();
        let found = fields.map(|(key, _)| match find(rows, key, &mut expected) {
            Some(place) if rows[place].is_simple() => Found::Simple(place),
            Some(place) => Found::There(place),
            None => Found::Nowhere,
        });
        self.sketch.found = found.collect();
        self.sketch.rows = rows;
        self.sketch
    }

    /// What no number changes.
    pub(in crate::logs) fn more(&mut self) -> &mut M {
        &mut self.sketch.more
    }

    /// The fields so far.
    pub(in crate::logs) fn fields(&self) -> &[Field<'static>] {
        &self.sketch.fields
    }

    /// A count, with its place among the numbers; nothing where the text is none.
    pub(in crate::logs) fn count(&mut self, text: &'l str) -> Option<usize> {
        self.take(text, true)
    }

    /// A field whose value no number of the line changes.
    pub(in crate::logs) fn constant(&mut self, key: &str, value: Value<'_>) {
        let value = match value {
            Value::Number(number) => Value::Number(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
        };
        self.sketch.fields.push((Cow::Owned(key.to_owned()), value));
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

    /// A field that is made of the numbers in `texts`; answers whether they are plain ones. Several numbers are counts.
    pub(in crate::logs) fn made(&mut self, key: &str, texts: &[&'l str], how: How) -> bool {
        let first = self.sketch.values.len();
        let is_count = matches!(how, How::Sixtieths(..));
        if texts.iter().any(|text| self.take(text, is_count).is_none()) {
            self.sketch.numbers.truncate(first);
            self.sketch.values.truncate(first);
            return false;
        }
        self.reads(key, first, how);
        true
    }

    /// A field that is made of the number at this place, and of those that follow it.
    pub(in crate::logs) fn reads(&mut self, key: &str, first: usize, how: How) {
        let field = self.sketch.fields.len();
        let value = how.of(&self.sketch.values[first..]);
        self.constant(key, Value::Number(value));
        self.sketch.readings.push(Reading { field, first, how });
    }

    fn take(&mut self, text: &'l str, is_count: bool) -> Option<usize> {
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
            || is_count && !number.is_count
        {
            return None;
        }
        self.sketch.numbers.push(Number { range, is_count });
        self.sketch.values.push(number.value);
        Some(self.sketch.values.len() - 1)
    }
}
