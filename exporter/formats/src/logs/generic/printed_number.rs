//! Parses the number at the beginning of a text as people print it: with thousands, a decimal comma, a total or a trailing mark.

use pulsetrain_mapping::{FieldValue, number_text, unit};
use std::borrow::Cow;

use super::{
    durations,
    labelled::{LabelledNumber, with_next_word},
};

/// The decimal mark of a log, by the agreement of its numbers so far: `0,0003` has a decimal comma and `2.5` a decimal point.
/// It decides what `1,234` and `1.234` are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DecimalMark {
    has_comma: bool,
    has_point: bool,
}

impl DecimalMark {
    /// Looks for numbers that can have one decimal mark only.
    pub(super) fn observe(&mut self, line: &str) {
        if self.has_point || !line.contains(',') {
            self.has_point |= has_decimals(line, '.');
            return;
        }
        self.has_point = has_decimals(line, '.');
        self.has_comma |= has_decimals(line, ',');
    }

    const fn is_comma(self) -> bool {
        self.has_comma && !self.has_point
    }
}

/// Returns whether a number of a text has a fraction after `mark` that cannot be a group of thousands.
fn has_decimals(text: &str, mark: char) -> bool {
    text.match_indices(mark).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let integer = before.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let (outside, integer) = before.split_at(integer.len());
        let fraction = after.bytes().take_while(u8::is_ascii_digit).count();
        let is_group = fraction == 3 && (1..=3).contains(&integer.len()) && !integer.starts_with('0');
        // A list, a version, a date or the time of a logger.
        let is_other = outside
            .ends_with(|last: char| last.is_alphanumeric() || matches!(last, '.' | ',' | '_' | '/'))
            || outside.ends_with(':')
                && outside[..outside.len() - 1].ends_with(|last: char| last.is_ascii_digit())
            || after[fraction..].starts_with(['.', ',', '_', ']', ')', '}', '-', '/']);
        !integer.is_empty() && fraction > 0 && !is_group && !is_other
    })
}

/// Returns the offset of the next possible number: a digit or a sign that does not end a word.
pub(super) fn next_token(line: &str, from: usize) -> Option<usize> {
    let bytes = line.as_bytes();
    (from..bytes.len()).find(|at| {
        if !line.is_char_boundary(*at) || ends_with_word(&line[..*at]) {
            return false;
        }
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        match bytes[*at] {
            b'0'..=b'9' => true,
            b'-' | b'+' | b'.' => digit(at + 1) || bytes[*at] != b'.' && is_non_finite(&line[at + 1..]),
            0x80.. => begins_with_symbol(&line[*at..]),
            _ => is_non_finite(&line[*at..]),
        }
    })
}

/// Minus as mathematicians print it.
const MINUS: char = '\u{2212}';

const INFINITY: char = '∞';

/// Returns whether the text begins with `∞`, or a number after a minus sign that is not of ASCII.
fn begins_with_symbol(text: &str) -> bool {
    let mut letters = text.chars();
    match letters.next() {
        Some(INFINITY) => true,
        Some(MINUS) => letters
            .next()
            .is_some_and(|next| next.is_ascii_digit() || next == INFINITY),
        _ => false,
    }
}

/// Returns whether the text before a number ends with a word, which the digits are part of.
fn ends_with_word(before: &str) -> bool {
    match before.bytes().next_back() {
        None => false,
        Some(0x80..) => before.ends_with(|last: char| last.is_alphanumeric() || last == MINUS),
        Some(last) => is_of_word(last),
    }
}

/// Returns whether the text begins with a non-finite number such as `nan`.
fn is_non_finite(text: &str) -> bool {
    let len = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let ends = text.as_bytes().get(len).is_none_or(|next| !is_of_word(*next));
    (3..=8).contains(&len) && ends && number_text::non_finite(&text[..len]).is_some()
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'_' | b'.' | b'@' | b'-' | b'/' | b'\\' | b'%' | b'#' | 0x80..
        )
}

/// Returns the length of the token at the beginning of `text`: up to a space, a bracket, or a comma outside of a number.
pub(super) fn token_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let end = text.char_indices().find(|(at, letter)| match letter {
        ',' => !(*at > 0 && digit(at - 1) && digit(at + 1)),
        ';' | '|' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '=' | '"' | '\'' => true,
        letter => letter.is_whitespace(),
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// The marks after a number that are not part of it: `2.5*`, `2.5↓`, and the deviation in `2.5±0.1`.
fn without_marks(token: &str) -> &str {
    let deviation = ["±", "+/-", "+-"]
        .iter()
        .filter_map(|sign| token.find(sign))
        .min();
    let token = &token[..deviation.filter(|at| *at > 0).unwrap_or(token.len())];
    token.trim_end_matches(|last: char| {
        matches!(last, ':' | '.' | '!' | '*' | '`' | '^' | '~')
            || !last.is_ascii() && !last.is_alphanumeric() && last != '°'
    })
}

/// Parses a number with spaces, apostrophes, underscores or points between its thousands, with its length: `1 234.5`,
/// `1'234.5`, `1.234,5`. A space separates thousands only directly after a colon or an equals sign, which `is_value` is for.
fn grouped(text: &str, mark: DecimalMark, is_value: bool) -> Option<(f64, usize)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(text.starts_with(['-', '+']));
    let first = digits(&text[sign..]);
    let mut end = sign + first;
    let separator = text[end..].chars().next()?;
    let is_group = |rest: &str| rest.strip_prefix(separator).is_some_and(|rest| digits(rest) == 3);
    let begins = (1..=3).contains(&first) && !text[sign..].starts_with('0') && is_group(&text[end..]);
    if !begins
        || !matches!(
            separator,
            ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\'' | '’' | '_' | '.'
        )
    {
        return None;
    }
    let mut groups = 0;
    while is_group(&text[end..]) {
        end += separator.len_utf8() + 3;
        groups += 1;
    }
    let fraction = match text[end..].strip_prefix([',', '.'].as_slice()) {
        Some(rest) if !text[end..].starts_with(separator) => digits(rest),
        _ => 0,
    };
    let integer: String = text[..end]
        .chars()
        .filter(|letter| *letter != separator)
        .collect();
    let after = if fraction > 0 { end + 1 + fraction } else { end };
    let is_complete = text[after..]
        .chars()
        .next()
        .is_none_or(|next| next.is_whitespace() || ",;|)]}%".contains(next));
    let is_at_end = text[after..]
        .trim_start()
        .chars()
        .next()
        .is_none_or(|next| ",;|)]}-".contains(next));
    let is_plausible = match separator {
        ' ' => is_value && (fraction > 0 || is_at_end),
        '.' => {
            fraction > 0 && text[end..].starts_with(',')
                || mark.is_comma()
                || groups > 1 && is_value && fraction > 0
        }
        _ => true,
    };
    let value = format!("{integer}.{}0", &text[after - fraction..after]);
    (is_complete && is_plausible).then(|| Some((number_text::finite(&value)?, after)))?
}

/// Returns the length of a list of three counts or more: `3210/ 987/ 4`.
pub(super) fn counts_len(text: &str) -> Option<usize> {
    let first = text.bytes().take_while(u8::is_ascii_digit).count();
    let (mut end, mut counts) = (first, 1);
    while let Some((_, len)) = text[end..]
        .strip_prefix('/')
        .and_then(|_| spaced_total(&text[end..]))
    {
        end += len;
        counts += 1;
    }
    (first > 0 && counts > 2).then_some(end)
}

/// Parses the number at the beginning of `text`, with its length. `is_value` is whether a colon or an equals sign is before it.
pub(super) fn number(text: &str, mark: DecimalMark, is_value: bool) -> Option<(LabelledNumber<'_>, usize)> {
    if let Some((number, len)) = grouped(text, mark, is_value) {
        return Some((LabelledNumber::Value(number, ""), len));
    }
    if let Some(number) = symbol(text) {
        return Some(number);
    }
    if let Some((seconds, len)) = durations::days(text).or_else(|| durations::spelled(text)) {
        return Some((LabelledNumber::Clock(seconds), len));
    }
    if let Some((seconds, len)) = durations::worded(text) {
        return Some((LabelledNumber::Value(seconds, "s"), len));
    }
    let len = token_len(text);
    let token = without_marks(&text[..len]);
    let token = token.strip_suffix("x").unwrap_or(token);
    // `200/  982`: the total is aligned.
    let token = token
        .strip_suffix('/')
        .filter(|done| spaced_total(&text[done.len()..]).is_some())
        .unwrap_or(token);
    if let Some(seconds) = durations::clock(token) {
        return Some((LabelledNumber::Clock(seconds), token.len()));
    }
    let rest = &text[token.len()..];
    if let Some((done, total)) = token.split_once('/') {
        let fraction = || Some(LabelledNumber::Fraction(steps(done)?, steps(total)?));
        if let Some(number) = used_bytes(done, total, rest).or_else(fraction) {
            return Some((number, token.len()));
        }
    }
    let by_mark = || decimal_comma(token, rest).filter(|_| mark.is_comma());
    let (value, unit) = by_mark()
        .map(|value| (value, ""))
        .or_else(|| number_text::with_suffix(token))
        .or_else(|| Some((decimal_comma(token, rest)?, "")))
        .or_else(|| before_comma(token))
        .or_else(|| of_other(token))?;
    match spaced_total(rest).filter(|_| unit.is_empty()) {
        Some((total, total_len)) => Some((LabelledNumber::Fraction(value, total), token.len() + total_len)),
        None => Some((LabelledNumber::Value(value, unit), token.len())),
    }
}

/// Parses the cell of a table: a number, optionally followed by a unit or a colon; the first of `10/100`; the seconds of a
/// clock.
pub(super) fn cell(text: &str) -> Option<FieldValue<'_>> {
    let text = text.trim_end_matches(':');
    let (number, len) = number(text, DecimalMark::default(), false)?;
    if len < text.len() {
        return None;
    }
    Some(match number {
        LabelledNumber::Value(value, "")
        | LabelledNumber::Clock(value)
        | LabelledNumber::Fraction(value, _) => FieldValue::Number(value),
        LabelledNumber::Value(..) => FieldValue::Text(Cow::Borrowed(text)),
    })
}

/// Parses `2,3456` of a locale with decimal commas. In brackets the comma separates two numbers.
fn decimal_comma(token: &str, rest: &str) -> Option<f64> {
    let (integer, fraction) = token.split_once(',')?;
    let is_list = fraction.contains(',') || token.contains('.') || rest.starts_with([']', ')', '}']);
    if is_list {
        return None;
    }
    number_text::finite(&[integer, ".", fraction].concat())
}

/// Parses the first of two decimal numbers, as a value of a limit: `2.31/3.00`.
fn of_other(token: &str) -> Option<(f64, &str)> {
    let (value, other) = token.split_once('/')?;
    number_text::finite(other)?;
    Some((number_text::finite(value)?, ""))
}

/// Parses `∞` and a number after [`MINUS`], with the length.
fn symbol(text: &str) -> Option<(LabelledNumber<'_>, usize)> {
    let (sign, rest) = match text.strip_prefix(MINUS) {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    let skipped = text.len() - rest.len();
    if rest.starts_with(INFINITY) {
        return Some((
            LabelledNumber::Value(sign * f64::INFINITY, ""),
            skipped + INFINITY.len_utf8(),
        ));
    }
    if skipped == 0 || !rest.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    match number(rest, DecimalMark::default(), false)? {
        (LabelledNumber::Value(value, unit), len) => {
            Some((LabelledNumber::Value(-value, unit), skipped + len))
        }
        _ => None,
    }
}

/// Parses a number up to its first comma, if commas do not separate thousands.
fn before_comma(token: &str) -> Option<(f64, &str)> {
    number_text::with_suffix(token.split(',').next()?)
}

/// Parses a count of steps, which can have a unit: `11.0it`.
fn steps(text: &str) -> Option<f64> {
    let with_unit = || count(text.strip_suffix("it")?.trim_end_matches(".0"));
    count(text).or_else(with_unit)
}

/// Parses a number of digits, with or without commas between the thousands.
fn count(text: &str) -> Option<f64> {
    let grouped = || number_text::grouped(text).filter(|count| text.contains(',') && count.fract() == 0.0);
    number_text::count(text).or_else(grouped)
}

/// Parses the memory in use of `61.2/80.0 GB` or `61.2GB/80GB`.
fn used_bytes<'a>(used: &'a str, total: &'a str, rest: &'a str) -> Option<LabelledNumber<'a>> {
    let (used, unit) = number_text::with_suffix(used)?;
    let (_, unit_of_total) = number_text::with_suffix(total)?;
    let number = LabelledNumber::Value(used, if unit.is_empty() { unit_of_total } else { unit });
    match with_next_word(number, rest).0 {
        LabelledNumber::Value(_, unit) if !unit.is_empty() => unit::conversion(unit, "By").map(|_| number),
        _ => None,
    }
}

/// Parses the total of `10 / 100`, with its length.
fn spaced_total(rest: &str) -> Option<(f64, usize)> {
    let total = rest
        .trim_start_matches(' ')
        .strip_prefix("/ ")?
        .trim_start_matches(' ');
    let token = &total[..token_len(total)];
    if let Some(value) = count(token) {
        return Some((value, rest.len() - total.len() + token.len()));
    }
    let len = total.bytes().take_while(u8::is_ascii_digit).count();
    if total[len..].starts_with('.') {
        return None;
    }
    let value = number_text::count(&total[..len])?;
    Some((value, rest.len() - total.len() + len))
}
