//! Parses pairs of a key and a value in a line of unknown format: `step=10 loss=2.31, tok/s: 1,129`.

use std::borrow::Cow;

use pulsetrain_mapping::{Decimal, Field, FieldValue as Value, PairDelimiters, number_text};

/// Returns the text between a key and its value.
fn key_delimiter<'d>(delimiters: &'d PairDelimiters, line: &str) -> &'d str {
    match &delimiters.key {
        Some(delimiter) => delimiter,
        None if memchr::memchr(b'=', line.as_bytes()).is_some() => "=",
        None => ":",
    }
}

/// Appends the pairs of a line in their order.
pub(super) fn read<'a>(line: &'a str, delimiters: &PairDelimiters, fields: &mut Vec<Field<'a>>) {
    let delimiter = key_delimiter(delimiters, line);
    let Some(between) = &delimiters.pair else {
        return scan(line, delimiter, fields);
    };
    let parts = line.split(between.as_str());
    fields.extend(parts.filter_map(|part| {
        let (key, value) = part.split_once(delimiter)?;
        Some((Cow::Borrowed(key.trim()), Value::parse(unquoted(value.trim()))))
    }));
}

/// Appends a pair for every delimiter: the word before it is the key, the word or quoted text after it the value.
fn scan<'a>(line: &'a str, delimiter: &str, fields: &mut Vec<Field<'a>>) {
    let mut rest = line;
    let find = |text: &str| match delimiter.as_bytes() {
        [byte] => memchr::memchr(*byte, text.as_bytes()),
        _ => text.find(delimiter),
    };
    while let Some(at) = find(rest) {
        let before = rest[..at].trim_end();
        let key = &before[last_word(before)..];
        let after = trim_start(&rest[at + delimiter.len()..]);
        let (value, len) = match plain_number(after.as_bytes()) {
            Some((number, len)) => (Value::Number(number), len),
            None => match bracketed_len(after, delimiter) {
                Some(len) => (Value::Text(Cow::Borrowed(&after[..len])), len),
                None => value(after),
            },
        };
        if len > 0 && key.starts_with(|first: char| first.is_alphabetic() || first == '_') {
            fields.push((Cow::Borrowed(key), value));
        }
        rest = &after[len..];
    }
}

/// Strips leading spaces; mostly there are none.
#[inline]
fn trim_start(text: &str) -> &str {
    match text.as_bytes() {
        [b'!'..=b'~', ..] => text,
        _ => text.trim_start(),
    }
}

/// Parses the value at the beginning of `text` that is not a plain number, with its length.
fn value(text: &str) -> (Value<'_>, usize) {
    let len = value_len(text);
    let text = &text[..len];
    let decimal = Decimal::prefix(text.as_bytes());
    match decimal.and_then(|decimal| text.as_bytes().get(decimal.len)) {
        Some(b',') => {
            let number = number_text::grouped(text);
            (
                number.map_or(Value::Text(Cow::Borrowed(text)), Value::Number),
                len,
            )
        }
        // After a number only an exponent continues it; any other byte begins a unit.
        Some(next) if *next != b'E' => (Value::Text(Cow::Borrowed(text)), len),
        _ => (Value::parse(unquoted(text)), len),
    }
}

/// Returns the length of the bracketed value at the beginning of `text`, or `None` if it has no such value or the value contains pairs. An
/// unclosed one ends at a space.
fn bracketed_len(text: &str, delimiter: &str) -> Option<usize> {
    if !text.starts_with(['[', '(', '{']) {
        return None;
    }
    let len = text.len();
    let before_delimiter = text.find(delimiter).unwrap_or(len);
    let text = &text[..before_delimiter];
    let mut depth = 0_usize;
    let close = text.bytes().position(|byte| {
        match byte {
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let space = || text.find(char::is_whitespace).filter(|space| *space > 1);
    let rest = || (before_delimiter == len).then_some(len);
    close.map(|close| close + 1).or_else(space).or_else(rest)
}

/// Parses a plain number, with its length. Returns `None` for a value of any other form.
#[inline]
fn plain_number(bytes: &[u8]) -> Option<(f64, usize)> {
    let Decimal { value, len, .. } = Decimal::prefix(bytes)?;
    let ends = match bytes.get(len) {
        None => true,
        Some(b',') => !is_in_number(bytes, len),
        Some(next) => next.is_ascii() && may_be_boundary(*next),
    };
    ends.then_some((value, len))
}

/// Returns the offset of the last word of a text.
fn last_word(text: &str) -> usize {
    match text.bytes().rposition(may_be_boundary) {
        None => 0,
        Some(at) if text.as_bytes()[at].is_ascii() => at + 1,
        Some(_) => text.rfind(is_boundary).map_or(0, |at| at + char_len(&text[at..])),
    }
}

fn char_len(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

const fn is_boundary(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, ',' | ';' | '|' | '(' | ')' | '[' | ']' | '{' | '}')
}

/// Returns whether a byte is a boundary, or part of a character that has to be decoded.
#[inline]
fn may_be_boundary(byte: u8) -> bool {
    MAY_BE_BOUNDARY[usize::from(byte)]
}

/// Table of the answers: it is used for nearly every byte of a log.
static MAY_BE_BOUNDARY: [bool; 256] = {
    let mut answers = [true; 256];
    let mut byte = 0;
    while byte < 0x80 {
        answers[byte as usize] = is_boundary(byte as char);
        byte += 1_u8;
    }
    answers
};

/// Returns the length of the value at the beginning of `text`. A comma between digits is part of a number.
fn value_len(text: &str) -> usize {
    if let Some(quote) = text.bytes().next().filter(|first| matches!(first, b'"' | b'\'')) {
        return quoted_len(text.as_bytes(), quote);
    }
    let bytes = text.as_bytes();
    let ends =
        |(at, letter): &(usize, char)| is_boundary(*letter) && !(*letter == ',' && is_in_number(bytes, *at));
    // The value does not end before the first byte that can be a boundary.
    let looked_at = bytes.iter().position(|byte| may_be_boundary(*byte));
    let Some(start) = looked_at else {
        return text.len();
    };
    let mut letters = text[start..]
        .char_indices()
        .map(|(at, letter)| (start + at, letter));
    letters.find(ends).map_or(text.len(), |(at, _)| at)
}

/// Returns the length of the quoted text at the beginning of `bytes`. A quote after a backslash does not end it.
fn quoted_len(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr2(quote, b'\\', bytes.get(at..).unwrap_or_default()) {
        if bytes[at + found] == quote {
            return at + found + 1;
        }
        at += found + 2;
    }
    bytes.len()
}

/// Returns whether the comma at `at` is a thousands separator: after a digit, and before exactly three.
fn is_in_number(bytes: &[u8], at: usize) -> bool {
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let follows = (1..=3).all(|next| is_digit(at + next)) && !is_digit(at + 4);
    // `1,200=...` is the next pair, not the thousands of a number.
    let is_key = bytes.get(at + 4).is_some_and(|next| matches!(next, b'=' | b':'));
    at > 0 && is_digit(at - 1) && follows && !is_key
}

fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(delimiters: &PairDelimiters, line: &str) -> String {
        let mut fields = Vec::new();
        read(line, delimiters, &mut fields);
        let shown = |(key, value): &Field<'_>| match value {
            Value::Number(number) => format!("{key}→{number}"),
            Value::Text(text) => format!("{key}→{text}"),
        };
        fields.iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pairs_are_found_among_other_text() {
        for (line, expected) in [
            (
                "INFO step=10 loss=2.31 | tok/s=1,129 (12 ms)",
                "step→10 loss→2.31 tok/s→1129",
            ),
            (
                "12:00:01 epoch: 1, step: 20, loss: nan",
                "epoch→1 step→20 loss→NaN",
            ),
            (
                "[step = 3] msg=\"all is = well\" lr='1e-4'",
                "step→3 msg→all is = well lr→0.0001",
            ),
            ("a=1,b=22,c=1,234,567", "a→1 b→22 c→1234567"),
            (
                r#"msg="oh \"loss=5\" now" loss=2"#,
                r#"msg→oh \"loss=5\" now loss→2"#,
            ),
            (r#"msg="cut \"#, r#"msg→"cut \"#),
            ("größe=ü5 = == =", "größe→ü5"),
            ("no pairs here", ""),
        ] {
            assert_eq!(pairs(&PairDelimiters::default(), line), expected, "{line}");
        }
    }

    #[test]
    fn bracketed_values_stay_intact_unless_they_contain_pairs() {
        for (line, expected) in [
            (
                "lr=[0.0003], mom=[(0.9, 0.95)] step=1",
                "lr→[0.0003] mom→[(0.9, 0.95)] step→1",
            ),
            ("loss=(2.5) step=1", "loss→(2.5) step→1"),
            ("data={1, 2} step=1", "data→{1, 2} step→1"),
            ("metrics=(loss=2.5, step=1)", "loss→2.5 step→1"),
            ("metrics=( loss=2.5, step=1 )", "loss→2.5 step→1"),
            ("loss=[2.5 step=1", "loss→[2.5 step→1"),
            ("step=1 loss=[2.5", "step→1 loss→[2.5"),
            ("step: 1 loss: [2.5]", "step→1 loss→[2.5]"),
        ] {
            assert_eq!(pairs(&PairDelimiters::default(), line), expected, "{line}");
        }
    }

    #[test]
    fn custom_delimiters_allow_spaces_in_keys() {
        let chosen = PairDelimiters {
            pair: Some(" | ".to_owned()),
            key: Some(":".to_owned()),
        };
        assert_eq!(
            pairs(&chosen, "time per step: 0.3s | lm loss: 1.5E+00"),
            "time per step→0.3s lm loss→1.5"
        );
    }
}
