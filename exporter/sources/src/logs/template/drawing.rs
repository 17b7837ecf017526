//! Draws the sketch of a line.

use std::borrow::Cow;

use super::sketch::{Drawn, Found, How, Number, Said, Sketch};
use crate::logs::{
    fields::Value,
    number_text::{self, Form},
    row::{Row, find},
};

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

    /// A time of a day, with the place of its nanoseconds since midnight among the numbers; nothing where the text is none.
    pub(in crate::logs) fn clock(&mut self, text: &'l str) -> Option<usize> {
        self.take(text, Form::Clock)
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

    /// A field whose number stands in `text` with one of these units, or without; or text, where it is none.
    pub(in crate::logs) fn measured(&mut self, key: &str, text: &'l str, units: &[&str]) {
        match number_text::with_suffix(text) {
            Some((_, unit)) if unit.is_empty() || units.contains(&unit) => {
                let number = &text[..text.len() - unit.len()];
                self.number(key, number.trim_ascii_end(), 1.0);
            }
            _ => self.constant(key, Value::of(text)),
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
        let (number, len) = form.prefix(text.as_bytes())?;
        if !is_behind || self.line.get(range.clone()) != Some(text) || len != text.len() {
            return None;
        }
        self.sketch.numbers.push(Number { range, form });
        self.sketch.values.push(number);
        Some(self.sketch.values.len() - 1)
    }
}
