//! Fields written where they are to stay.
//!
//! A field that is put together elsewhere and then moved into its vector is read in larger pieces than it was just written in,
//! and a processor waits for its memory before it does that: it would take longer than to read the number.

use std::borrow::Cow;

use super::fields::{Field, Value};

/// Places behind the fields of a vector, filled one after the other.
pub(super) struct Slots<'v, 'a> {
    fields: &'v mut Vec<Field<'a>>,
    filled: usize,
}

impl<'v, 'a> Slots<'v, 'a> {
    /// Places for as many fields as are expected; there can be more.
    #[inline]
    pub(super) fn behind(fields: &'v mut Vec<Field<'a>>, expected: usize) -> Self {
        let filled = fields.len();
        fields.resize_with(filled + expected, empty);
        Self { fields, filled }
    }

    /// Fills the next place with a number.
    #[inline(always)]
    pub(super) fn number(&mut self, key: &'a str, number: f64) {
        self.next(key).1 = Value::Number(number);
    }

    /// Fills the next place with text that stands as it is in what is read.
    #[inline(always)]
    pub(super) fn text(&mut self, key: &'a str, text: &'a str) {
        self.next(key).1 = Value::Text(Cow::Borrowed(text));
    }

    /// Fills the next place.
    #[inline]
    pub(super) fn value(&mut self, key: &'a str, value: Value<'a>) {
        self.next(key).1 = value;
    }

    /// Leaves nothing in the vector but what was filled.
    #[inline]
    pub(super) fn finish(self) {
        self.fields.truncate(self.filled);
    }

    #[inline(always)]
    fn next(&mut self, key: &'a str) -> &mut Field<'a> {
        if self.filled == self.fields.len() {
            self.add();
        }
        let field = &mut self.fields[self.filled];
        self.filled += 1;
        field.0 = Cow::Borrowed(key);
        field
    }

    #[cold]
    fn add(&mut self) {
        self.fields.push(empty());
    }
}

const fn empty<'a>() -> Field<'a> {
    (Cow::Borrowed(""), Value::Number(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_stays_be_it_less_or_more_than_expected() {
        for expected in [0, 1, 5] {
            let mut fields = vec![(Cow::Borrowed("first"), Value::Number(1.0))];
            let mut slots = Slots::behind(&mut fields, expected);
            slots.number("a", 2.0);
            slots.text("b", "c");
            slots.value("d", Value::Text(Cow::Owned("e".to_owned())));
            slots.finish();
            let all: Vec<(&str, &Value<'_>)> =
                fields.iter().map(|(key, value)| (key.as_ref(), value)).collect();
            let expected = [
                ("first", &Value::Number(1.0)),
                ("a", &Value::Number(2.0)),
                ("b", &Value::Text("c".into())),
                ("d", &Value::Text("e".into())),
            ];
            assert_eq!(all, expected);
        }
    }
}
