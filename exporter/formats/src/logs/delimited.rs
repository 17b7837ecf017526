//! Parses delimited fields of console output: a key, a delimiter, a number with its unit.

use memchr::memmem;
use pulsetrain_mapping::{FieldValue, number_text};

/// The delimiters of a line of fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delimiters {
    /// Separates two fields.
    pub(super) pair: &'static str,
    /// Separates a key from its value: the first of any of these bytes.
    pub(super) key: &'static [u8],
}

/// A field with its printed value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct KeyValue<'a> {
    pub(super) key: &'a str,
    pub(super) text: &'a str,
    /// The number in `text` and its unit, or `None`.
    pub(super) number: Option<(f64, &'a str)>,
}

impl<'a> KeyValue<'a> {
    /// Returns the number if its unit is empty or one of `units`, else the text.
    #[inline]
    pub(super) fn value(&self, units: &[&str]) -> FieldValue<'a> {
        match self.number {
            Some((number, unit)) if unit.is_empty() || units.contains(&unit) => FieldValue::Number(number),
            _ => FieldValue::parse(self.text),
        }
    }
}

impl Delimiters {
    /// Returns the fields of a text. Parts without a key delimiter are skipped.
    pub(super) fn fields(self, text: &str) -> impl Iterator<Item = KeyValue<'_>> {
        let mut ends = memmem::find_iter(text.as_bytes(), self.pair).chain([text.len()]);
        let mut start = 0;
        std::iter::from_fn(move || {
            let end = ends.next()?;
            let part = &text[start..end];
            start = end + self.pair.len();
            Some(part)
        })
        .filter_map(move |part| {
            let (key, value) = self.split_key(part)?;
            let text = value.trim_ascii_end();
            Some(KeyValue {
                key: key.trim_ascii(),
                text,
                number: number_text::with_suffix(text),
            })
        })
    }

    /// Splits a field at its first key delimiter.
    #[inline]
    fn split_key(self, text: &str) -> Option<(&str, &str)> {
        let at = match self.key {
            [delimiter] => memchr::memchr(*delimiter, text.as_bytes())?,
            delimiters => text.bytes().position(|byte| delimiters.contains(&byte))?,
        };
        Some((&text[..at], text[at + 1..].trim_ascii_start()))
    }
}

/// Splits `k: v, k: v` or any such text: pairs at `pair`, each at its first `key`.
pub(super) fn split<'a>(
    text: &'a str,
    pair: &'a str,
    key: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    text.split(pair).filter_map(move |part| {
        let (name, value) = part.split_once(key)?;
        Some((name.trim_ascii(), value.trim_ascii()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAS: Delimiters = Delimiters {
        pair: ", ",
        key: b"=:",
    };

    #[track_caller]
    fn parses(delimiters: Delimiters, text: &str, expected: &[(&str, &str)]) {
        let found: Vec<KeyValue<'_>> = delimiters.fields(text).collect();
        let pairs: Vec<_> = found.iter().map(|field| (field.key, field.text)).collect();
        assert_eq!(pairs, expected, "{text}");
        for field in found {
            let (number, expected) = (field.number, number_text::with_suffix(field.text));
            // As text, for NaN is not equal to itself.
            assert_eq!(format!("{number:?}"), format!("{expected:?}"), "{}", field.text);
        }
    }

    #[test]
    fn colon_and_equals_both_delimit_a_field() {
        let text = "seconds: 12.4, running loss=5.9, loose, ms = 7 , wait=0.1s";
        let expected = [
            ("seconds", "12.4"),
            ("running loss", "5.9"),
            ("ms", "7"),
            ("wait", "0.1s"),
        ];
        parses(COMMAS, text, &expected);
        parses(COMMAS, "", &[]);
        parses(COMMAS, "a=1, ", &[("a", "1")]);
    }

    #[test]
    fn a_text_value_ends_at_the_next_field() {
        let bars = Delimiters {
            pair: " | ",
            key: b"=",
        };
        parses(
            bars,
            "tok/s=1,129 | mem=0.5/80GB | loss=nan | name=a=b | x=1e400 | lr=2.74e-04",
            &[
                ("tok/s", "1,129"),
                ("mem", "0.5/80GB"),
                ("loss", "nan"),
                ("name", "a=b"),
                ("x", "1e400"),
                ("lr", "2.74e-04"),
            ],
        );
        let words = Delimiters { pair: " ", key: b"=" };
        let text = "step=0.081s [fwd=0.018s bwd=0.033s] size=1.5 GiB";
        let expected = [
            ("step", "0.081s"),
            ("[fwd", "0.018s"),
            ("bwd", "0.033s]"),
            ("size", "1.5"),
        ];
        parses(words, text, &expected);
    }

    #[test]
    fn a_value_is_a_number_in_a_known_unit_only() {
        let value = |text, units: &[&str]| COMMAS.fields(text).next().map(|field| field.value(units));
        assert_eq!(value("a=0.5%", &["%"]), Some(FieldValue::Number(0.5)));
        assert_eq!(value("a=7", &[]), Some(FieldValue::Number(7.0)));
        assert_eq!(value("a=0.5GB", &["%"]), Some(FieldValue::parse("0.5GB")));
    }

    #[test]
    fn pairs_are_split_at_their_first_delimiter() {
        let found: Vec<_> = split("a: 1, b/c: x: y, loose", ", ", ": ").collect();
        assert_eq!(found, [("a", "1"), ("b/c", "x: y")]);
    }
}
