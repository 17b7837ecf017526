//! The objects of a log, of which nearly all have the shape of one before: the same keys in the same order, and the same
//! signs around them. A shape that is remembered is compared as it is; only the values behind it are read.

use std::ops::Range;

use super::Cursor;
use crate::logs::{fields::Field, slots::Slots};

/// So many shapes of a log are remembered, and none that are longer; the oldest goes first.
const SHAPES: usize = 8;
const LONGEST: usize = 1 << 16;

/// How many objects deep fields are told apart.
pub(in crate::logs) const DEPTH: usize = 16;

/// By what a text shows what it is of.
type Sign = fn(&str) -> Option<&'static str>;

/// Reads the objects of one log.
#[derive(Debug)]
pub(in crate::logs) struct Objects {
    /// How many objects deep fields are told apart.
    depth: usize,
    sign: Option<Sign>,
    shapes: Vec<Shape>,
    /// The shape that was learnt last, if it is none of `shapes` yet.
    newest: Option<Shape>,
    /// The place of the shape that was seen last.
    last: usize,
    /// The place of the shape that goes next.
    oldest: usize,
    /// How many shapes were learnt.
    learnt: u64,
}

/// An object that was read.
#[derive(Clone, Copy, Debug)]
pub(in crate::logs) struct Object {
    /// The number of bytes that it takes.
    pub(in crate::logs) len: usize,
    /// How many of its keys have no value.
    pub(in crate::logs) nulls: u64,
    /// The same for all objects that have the same keys in the same order; nothing where that was not looked at.
    pub(in crate::logs) alike: Option<u64>,
}

impl Objects {
    /// Objects whose lists and objects inside are given as their text.
    pub(in crate::logs) fn nested() -> Self {
        Self::of(0, None)
    }

    /// The same, but only those that bear the sign are read.
    pub(in crate::logs) fn signed(sign: Sign) -> Self {
        Self::of(0, Some(sign))
    }

    /// Objects of any kind. The fields of objects inside are given under keys that are joined by dots, but lists, and
    /// objects that are very deep, as their text.
    pub(in crate::logs) fn flat() -> Self {
        Self::of(DEPTH, None)
    }

    fn of(depth: usize, sign: Option<Sign>) -> Self {
        Self {
            depth,
            sign,
            shapes: Vec::with_capacity(SHAPES),
            newest: None,
            last: 0,
            oldest: 0,
            learnt: 0,
        }
    }

    /// The fields of the object at the beginning of `text`, behind those that there are, and the number of bytes that it
    /// takes; nothing where it is not whole. What is `null` or `None` is not given, but counted.
    pub(in crate::logs) fn read<'a>(
        &'a mut self,
        text: &'a str,
        fields: &mut Vec<Field<'a>>,
    ) -> Option<Object> {
        self.keep_newest();
        let before = fields.len();
        let is_signed = |shape: &Shape| shape.is_signed || self.sign.is_none_or(|sign| sign(text).is_some());
        let order = (self.last..self.shapes.len()).chain(0..self.last);
        for place in order {
            let shape = &self.shapes[place];
            if let Some(len) = shape.read(text, fields).filter(|_| is_signed(shape)) {
                self.last = place;
                let nulls = before + shape.values.len() - fields.len();
                return Some(Object {
                    len,
                    nulls: nulls as u64,
                    alike: (nulls == 0).then_some(shape.number),
                });
            }
            fields.truncate(before);
        }
        if self.sign.is_some_and(|sign| sign(text).is_none()) {
            return None;
        }
        let (mut shape, len) = Shape::learn(text, self.depth, self.sign, fields)?;
        let nulls = (before + shape.values.len() - fields.len()) as u64;
        self.learnt += 1;
        shape.number = self.learnt;
        self.newest = Some(shape).filter(|shape| shape.between.len() <= LONGEST);
        Some(Object {
            len,
            nulls,
            alike: None,
        })
    }

    fn keep_newest(&mut self) {
        let Some(shape) = self.newest.take() else { return };
        if self.shapes.len() < SHAPES {
            self.last = self.shapes.len();
            self.shapes.push(shape);
        } else {
            self.last = self.oldest;
            self.shapes[self.oldest] = shape;
            self.oldest = (self.oldest + 1) % SHAPES;
        }
    }
}

/// All of an object but its values.
#[derive(Debug, Default)]
struct Shape {
    /// Tells it from every other of the log.
    number: u64,
    /// What stands before each value and behind the last one.
    between: String,
    /// The keys of the values.
    keys: String,
    /// Where the parts of `between` and `keys` that belong to each value end.
    values: Vec<Ends>,
    /// Whether a value can be an object whose fields are told apart.
    is_flat: bool,
    /// Whether the sign is in it, so that the values need not be looked at.
    is_signed: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    between: usize,
    key: usize,
}

impl Shape {
    /// The shape of the object at the beginning of `text`, which takes so many bytes; its fields are added.
    fn learn<'a>(
        text: &'a str,
        depth: usize,
        sign: Option<Sign>,
        fields: &mut Vec<Field<'a>>,
    ) -> Option<(Self, usize)> {
        let mut shape = Self {
            is_flat: depth > 0,
            ..Self::default()
        };
        let (mut done, mut without_values) = (0, String::new());
        let mut part = |shape: &mut Self, range: Range<usize>| {
            shape.between.push_str(&text[done..range.start]);
            without_values.extend([&text[done..range.start], VALUE]);
            done = range.end;
        };
        let len = Cursor::object(text, depth, |key, range, value| {
            part(&mut shape, range);
            shape.keys.push_str(&key);
            shape.values.push(Ends {
                between: shape.between.len(),
                key: shape.keys.len(),
            });
            fields.extend(value.map(|value| (key, value)));
        })?;
        part(&mut shape, len..len);
        shape.is_signed = sign.is_some_and(|sign| sign(&without_values).is_some());
        Some((shape, len))
    }

    /// Adds the fields of an object of this shape and says how many bytes it takes; nothing where it has another, and then what
    /// was added is to be taken away.
    #[inline]
    fn read<'a>(&'a self, text: &'a str, fields: &mut Vec<Field<'a>>) -> Option<usize> {
        let mut cursor = Cursor { text, at: 0 };
        let mut slots = Slots::behind(fields, self.values.len());
        let mut start = Ends::default();
        for end in &self.values {
            cursor.pass(&self.between.as_bytes()[start.between..end.between])?;
            let first = cursor.peek()?;
            if self.is_flat && first == b'{' {
                return None;
            }
            cursor.field(first, &self.keys[start.key..end.key], &mut slots)?;
            start = *end;
        }
        cursor.pass(&self.between.as_bytes()[start.between..])?;
        slots.finish();
        Some(cursor.at)
    }
}

/// Stands for a value where none is to be seen.
const VALUE: &str = "0";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::{fields::Value, literal};

    fn shown(fields: &[Field<'_>]) -> Vec<String> {
        let shown = fields.iter().map(|(key, value)| format!("{key}={value:?}"));
        shown.collect()
    }

    fn read(objects: &mut Objects, text: &str) -> Option<Vec<String>> {
        let mut fields = Vec::new();
        objects.read(text, &mut fields)?;
        Some(shown(&fields))
    }

    #[test]
    fn objects_inside_are_joined_by_dots_up_to_some_depth() {
        let mut objects = Objects::flat();
        let fields = read(
            &mut objects,
            r#"{"a": 1, "b": {"c": {"d": 2}, "e": [3]}, "f": {}} rest"#,
        );
        assert_eq!(
            fields.unwrap(),
            ["a=Number(1.0)", "b.c.d=Number(2.0)", "b.e=Text(\"[3]\")"]
        );
        let deep = format!("{}1{}", "{\"x\": ".repeat(100_000), "}".repeat(100_000));
        assert_eq!(read(&mut objects, &deep).unwrap().len(), 1);
    }

    #[test]
    fn an_object_is_read_the_same_whatever_shapes_came_before() {
        let texts = [
            r#"{"a": 1, "b": {"c": 2}}"#,
            r#"{"a": 3, "b": {"c": -4.5e-3}} "#,
            r#"{"a":  {"x": 1}, "b": {"c": 2}}"#,
            r#"{"a": {}, "b": {"c": 2}}"#,
            r#"{"a": "}", "b": {"c": null}}"#,
            r#"{"a": [1, {"b": 2}], "b": {"c": true}}"#,
            r#"{"a": 1, "b": {"c": 2}, "d": NaN}"#,
            r#"{"a": 1, "b": {"d": 2}}"#,
            r#"{"\u0061": 1}"#,
            "{}",
            r#"{"a": 1, "b": {"c": 2"#,
            r#"{"a": 1, "b": 2}"#,
        ];
        let mut objects = Objects::flat();
        for text in texts.iter().cycle().take(5 * texts.len()) {
            assert_eq!(
                read(&mut objects, text),
                read(&mut Objects::flat(), text),
                "{text}"
            );
        }
        let mut nested = Objects::nested();
        for text in texts.iter().cycle().take(5 * texts.len()) {
            let alone = literal::object(text).map(|(fields, _)| shown(&fields));
            assert_eq!(read(&mut nested, text), alone, "{text}");
        }
    }

    #[test]
    fn objects_that_are_alike_have_the_same_keys() {
        let texts = [
            r#"{"a": 1, "b": 2}"#,
            r#"{"a": 3, "b": null}"#,
            r#"{"a": 4, "b": 5}"#,
            r#"{"a": null, "b": 5}"#,
            r#"{"c": 1, "b": 5}"#,
        ];
        let mut objects = Objects::flat();
        let mut known = std::collections::HashMap::new();
        for text in texts.iter().cycle().take(3 * texts.len()) {
            let mut fields = Vec::new();
            let alike = objects.read(text, &mut fields).unwrap().alike;
            let keys: Vec<String> = fields.iter().map(|(key, _)| key.to_string()).collect();
            if let Some(alike) = alike {
                assert_eq!(known.entry(alike).or_insert(keys.clone()), &keys);
            }
        }
        // Nothing is said of those that lack a value.
        assert_eq!(known.len(), 2);
    }

    #[test]
    fn keys_without_a_value_are_counted_however_the_object_is_read() {
        let texts = [
            (r#"{"a": 1, "b": {"c": null}}"#, 1),
            (r#"{"a": null, "b": {"c": null}}"#, 2),
            (r#"{"a": 1, "b": {"c": 2}}"#, 0),
            (r#"{"a": 1, "b": null}"#, 1),
            (r#"{"a": null}"#, 1),
        ];
        let mut objects = Objects::flat();
        for (text, nulls) in texts.iter().cycle().take(3 * texts.len()) {
            let mut fields = vec![("before".into(), Value::Number(0.0))];
            assert_eq!(objects.read(text, &mut fields).unwrap().nulls, *nulls, "{text}");
        }
    }

    #[test]
    fn only_objects_with_the_sign_are_read_be_it_in_a_key_or_a_value() {
        let mut objects = Objects::signed(|text| text.contains("ours\"").then_some("ours"));
        for (text, is_ours) in [
            (r#"{"ours": 1}"#, true),
            (r#"{"ours": 2}"#, true),
            (r#"{"of": "ours"}"#, true),
            (r#"{"of": "theirs"}"#, false),
            (r#"{"of": "ours"}"#, true),
            (r#"{"mine": 1}"#, false),
        ] {
            assert_eq!(read(&mut objects, text).is_some(), is_ours, "{text}");
        }
    }

    #[test]
    fn of_very_many_shapes_the_newest_are_remembered() {
        let mut objects = Objects::flat();
        for number in 0..100 {
            let text = format!("{{\"key{number}\": {number}}}");
            for _ in 0..2 {
                let expected = Value::Number(f64::from(number));
                let mut fields = Vec::new();
                let len = objects.read(&text, &mut fields).unwrap().len;
                assert_eq!((len, &fields[0].1), (text.len(), &expected));
            }
        }
        assert_eq!(objects.shapes.len(), SHAPES);
    }
}
