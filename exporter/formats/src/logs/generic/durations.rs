//! Parses durations in printed lines: `0:01:30`, `1 day, 2:03:04`, `2d 03h`, `10 minutes and 3.2 seconds`.

use pulsetrain_mapping::number_text;

use super::printed_number::token_len;

/// Parses `1 day, 2:03:04`, as Python prints a `timedelta`, to seconds, with its length.
pub(super) fn days(text: &str) -> Option<(f64, usize)> {
    let (days, rest) = text.split_at(token_len(text));
    let rest = rest.strip_prefix(" day")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest).strip_prefix(", ")?;
    let len = token_len(rest);
    let seconds = number_text::count(days)? * 86_400.0 + clock(&rest[..len])?;
    Some((seconds, text.len() - rest.len() + len))
}

/// Units of a duration that is spelled out, with their seconds.
const DURATION_UNITS: [(&str, f64); 4] = [("d", 86_400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];

/// Parses `2d 03h` or `1h02m03s` to seconds, with its length: two units or more, in decreasing order.
pub(super) fn spelled(text: &str) -> Option<(f64, usize)> {
    let (mut seconds, mut end, mut parts) = (0.0, 0, 0);
    let mut units = DURATION_UNITS.iter();
    loop {
        let rest = &text[end..];
        let part = rest.strip_prefix(' ').filter(|_| parts > 0).unwrap_or(rest);
        let digits = part
            .bytes()
            .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
            .count();
        let letters = part[digits..]
            .bytes()
            .take_while(u8::is_ascii_alphanumeric)
            .count();
        let word = &part[digits..digits + letters];
        let name = &word[..word.len().min(1)];
        let Some((_, unit)) = units.find(|(unit, _)| *unit == name) else {
            break;
        };
        // The next part may follow at once.
        if word.len() > 1 && !word.as_bytes()[1].is_ascii_digit() {
            break;
        }
        let Some(count) = number_text::finite(&part[..digits]) else {
            break;
        };
        seconds += count * unit;
        end = text.len() - part.len() + digits + 1;
        parts += 1;
    }
    (parts > 1).then_some((seconds, end))
}

/// Parses `1 hour, 10 minutes and 3.2 seconds` to seconds, with its length.
pub(super) fn worded(text: &str) -> Option<(f64, usize)> {
    let split = |part| str::split_at(part, token_len(part));
    let (mut seconds, mut rest) = (0.0, text);
    let (mut count, mut words) = split(text);
    for (word, unit) in DURATION_WORDS {
        let Some(after) = words.strip_prefix(' ').and_then(|words| words.strip_prefix(word)) else {
            continue;
        };
        let after = after.strip_prefix('s').unwrap_or(after);
        let number = number_text::finite(count)?;
        if after.starts_with(|next: char| next.is_alphanumeric() || next == '/') {
            break;
        }
        seconds += number * unit;
        rest = after;
        let next = after.strip_prefix(" and ").or_else(|| after.strip_prefix(", "));
        (count, words) = split(next.unwrap_or_default());
    }
    (rest.len() < text.len()).then_some((seconds, text.len() - rest.len()))
}

/// Words for the units of a duration, with their seconds.
const DURATION_WORDS: [(&str, f64); 4] = [
    ("day", 86_400.0),
    ("hour", 3600.0),
    ("minute", 60.0),
    ("second", 1.0),
];

/// Parses `0:01:30`, `01:30` or `0:01:30.5` to seconds.
pub(super) fn clock(token: &str) -> Option<f64> {
    let parts: Vec<&str> = token.split(':').collect();
    let [hours, minutes, seconds] = match parts[..] {
        [minutes, seconds] => ["0", minutes, seconds],
        [hours, minutes, seconds] => [hours, minutes, seconds],
        _ => return None,
    };
    let digits = |text: &str| text.bytes().next().is_some_and(|first| first.is_ascii_digit());
    let is_clock = digits(minutes) && seconds.len() >= 2 && digits(seconds);
    let value = |text| number_text::finite(text);
    is_clock.then(|| Some(value(hours)? * 3600.0 + value(minutes)? * 60.0 + value(seconds)?))?
}
