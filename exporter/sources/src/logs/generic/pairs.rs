//! Pairs of a key and a value in a line of no known format: `step=10 loss=2.31, tok/s: 1,129`.

use crate::cut;

/// How the pairs of a line are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pairs {
    /// What stands between two pairs; where it is not given, a space, a comma, a semicolon, a bar or a bracket.
    pub(super) between: Option<String>,
    /// What stands between a key and its value; where it is not given, an equals sign or, in a line without one, a colon.
    pub(super) sign: Option<String>,
}

impl Pairs {
    /// Calls `pair` with each key and its value, in order.
    pub(super) fn each<'a>(&self, line: &'a str, mut pair: impl FnMut(&'a str, &'a str)) {
        let sign = self.sign_in(line);
        let Some(between) = &self.between else {
            return scan(line, sign, pair);
        };
        for part in line.split(between.as_str()) {
            if let Some((key, value)) = part.split_once(sign) {
                pair(key.trim(), unquoted(value.trim()));
            }
        }
    }

    fn sign_in(&self, line: &str) -> &str {
        match &self.sign {
            Some(sign) => sign,
            None if memchr::memchr(b'=', line.as_bytes()).is_some() => "=",
            None => ":",
        }
    }
}

/// Pairs at every sign: the word before it is the key, the word or the quoted text behind it the value.
fn scan<'a>(line: &'a str, sign: &str, mut pair: impl FnMut(&'a str, &'a str)) {
    let mut done = 0;
    while let Some(at) = cut::find(&line[done..], sign).map(|at| done + at) {
        let before = line[done..at].trim_end();
        let start = last_word(before);
        let rest = &line[at + sign.len()..];
        let value = rest.trim_start();
        let len = value_len(value);
        done = line.len() - value.len() + len;
        let key = &before[start..];
        if len > 0 && key.starts_with(|first: char| first.is_alphabetic() || first == '_') {
            pair(key, unquoted(&value[..len]));
        }
    }
}

/// Where the last word of a text begins.
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

#[inline]
fn is_boundary(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, ',' | ';' | '|' | '(' | ')' | '[' | ']' | '{' | '}')
}

/// Whether a byte is a boundary or of a letter that has to be looked at as a whole.
fn may_be_boundary(byte: u8) -> bool {
    !byte.is_ascii() || is_boundary(char::from(byte))
}

/// How long the value is that `text` begins with. A comma between digits is part of a number.
fn value_len(text: &str) -> usize {
    if let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'')) {
        let end = text[1..].find(quote);
        return end.map_or(text.len(), |end| end + 2);
    }
    let bytes = text.as_bytes();
    let ends =
        |(at, letter): &(usize, char)| is_boundary(*letter) && !(*letter == ',' && is_in_number(bytes, *at));
    // Up to the first byte that needs a closer look there is no end.
    let looked_at = bytes.iter().position(|byte| may_be_boundary(*byte));
    let Some(start) = looked_at else {
        return text.len();
    };
    let mut letters = text[start..]
        .char_indices()
        .map(|(at, letter)| (start + at, letter));
    letters.find(ends).map_or(text.len(), |(at, _)| at)
}

/// Whether the comma at `at` stands before three digits that end a number, and behind one.
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

    fn pairs(pairs: &Pairs, line: &str) -> String {
        let mut found = Vec::new();
        pairs.each(line, |key, value| found.push(format!("{key}→{value}")));
        found.join(" ")
    }

    #[test]
    fn pairs_are_found_among_other_text() {
        for (line, expected) in [
            (
                "INFO step=10 loss=2.31 | tok/s=1,129 (12 ms)",
                "step→10 loss→2.31 tok/s→1,129",
            ),
            (
                "12:00:01 epoch: 1, step: 20, loss: nan",
                "epoch→1 step→20 loss→nan",
            ),
            (
                "[step = 3] msg=\"all is = well\" lr='1e-4'",
                "step→3 msg→all is = well lr→1e-4",
            ),
            ("a=1,b=22,c=1,234,567", "a→1 b→22 c→1,234,567"),
            ("größe=ü5 = == =", "größe→ü5"),
            ("no pairs here", ""),
        ] {
            assert_eq!(pairs(&Pairs::default(), line), expected, "{line}");
        }
    }

    #[test]
    fn signs_of_the_users_choice_allow_spaces_in_keys() {
        let chosen = Pairs {
            between: Some(" | ".to_owned()),
            sign: Some(":".to_owned()),
        };
        assert_eq!(
            pairs(&chosen, "time per step: 0.3s | lm loss: 1.5E+00"),
            "time per step→0.3s lm loss→1.5E+00"
        );
    }
}
