//! Counts the numbers of lines that are not read: no number is lost without a count.

use pulsetrain_record::{Recorder, SkipReason};

use super::Line;
use crate::logs::prefix::SOURCES;

/// The rule for numbers under labels in lines that the format does not read.
const UNREAD: SkipReason = SkipReason::Ignored("unread_line");
/// The rule for such numbers before the first record.
const SETTING: SkipReason = SkipReason::Ignored("setting");
/// The longest example in bytes.
const MAX_EXAMPLE: usize = 120;

/// The longest label or number in bytes.
const MAX_PAIR: usize = 64;

/// Counts the numbers under labels of a line that is not a record. The line itself is an example unless it can be private.
pub(super) fn report(line: &Line<'_>, has_records: bool, can_be_shown: bool, recorder: &mut Recorder<'_>) {
    let numbers = labelled_numbers(line.text);
    if numbers == 0 {
        return;
    }
    let reason = if has_records { UNREAD } else { SETTING };
    if !has_records || !can_be_shown {
        return recorder.skip_values(reason, numbers);
    }
    recorder.report(UNREAD, line.position(), || {
        let end = line.text.floor_char_boundary(MAX_EXAMPLE);
        format!("the format does not know this line: {}", &line.text[..end])
    });
    recorder.skip_values(UNREAD, numbers - 1);
}

/// Returns the number of numbers of a line that are under a label: `loss: 2.5`, `grad_norm = 1e-3`, `"lr": 0.1`.
fn labelled_numbers(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let signs = memchr::memchr2_iter(b':', b'=', bytes);
    signs.filter(|sign| is_labelled_number(text, *sign)).count() as u64
}

fn is_labelled_number(text: &str, sign: usize) -> bool {
    let start = text.floor_char_boundary(sign.saturating_sub(MAX_PAIR));
    let label = text[start..sign].trim_end_matches([' ', '\t', '"', '\'']);
    let is_label =
        label.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ')' | ']' | '%'));
    let value = &text[sign + 1..];
    let value = &value[..value.floor_char_boundary(MAX_PAIR)];
    let word = label.rsplit([' ', '\t']).next().unwrap_or_default();
    let phrase = label
        .rsplit(['\t', '"', '\'', ',', ';', '{', '['])
        .next()
        .unwrap_or_default();
    let has_letter = phrase.contains(|letter: char| letter.is_alphabetic());
    let is_place = SOURCES.iter().any(|ending| word.ends_with(ending));
    let is_time_or_address =
        word.contains([':', '.']) && !word.contains(|letter: char| letter.is_alphabetic());
    is_label
        && has_letter
        && !is_place
        && !is_time_or_address
        && starts_with_number(value.trim_start_matches([' ', '\t']))
}

/// Returns whether a text starts with a number that is not part of a time, a version, an address or a name.
fn starts_with_number(text: &str) -> bool {
    let number = text.trim_start_matches(['-', '+']);
    let is_of_number =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b':' | b'/' | b'_');
    let len = number.bytes().take_while(is_of_number).count();
    let number = number[..len].trim_end_matches(['.', ':', '-']);
    number.starts_with(|first: char| first.is_ascii_digit()) && number.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::labelled_numbers;

    #[test]
    fn numbers_after_a_label_and_a_sign_are_counted() {
        for (line, expected) in [
            ("loss: 2.5, lr = 1e-4; acc=0.5.", 3),
            ("{'loss': 2.5, \"steps\": 10}", 2),
            ("top-1 (%): 75", 1),
            ("train.py:88 started at 10:00:00", 0),
            ("time: 10:20:30, version: 1.2.3, address: 10.0.0.1:80, id=4f2a", 0),
            ("10: 20", 0),
            ("the loss is 2.5", 0),
        ] {
            assert_eq!(labelled_numbers(line), expected, "{line}");
        }
    }
}
