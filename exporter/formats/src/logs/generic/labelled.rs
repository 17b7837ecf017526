//! Parses numbers with labels in a printed line: `step 100 | loss: 2.31, lr=3e-4 (1200 tok/s)`, progress bars, fractions and
//! durations.

use pulsetrain_mapping::{FieldValue, number_text, unit};
use std::borrow::Cow;

use super::durations;

/// A number of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Labelled<'a> {
    /// The words before the number, up to the number or the delimiter before them.
    pub(super) label: &'a str,
    /// The text between the previous number and the label.
    pub(super) context: &'a str,
    /// Whether `=` separates the label from the number.
    pub(super) is_assigned: bool,
    /// Whether only spaces and colons are between the previous number and this one: `loss 3 2.5`, `loss 6: 2.5`.
    pub(super) is_adjacent: bool,
    /// Whether the number consists of digits.
    pub(super) is_integer: bool,
    /// Whether the number has no label and follows `(`.
    pub(super) is_remark: bool,
    /// Whether the number is progress: `10/100`, or `45%|####` of a bar.
    pub(super) is_progress: bool,
    /// The words after the number: `tok/s`.
    pub(super) measure: &'a str,
    /// The number.
    pub(super) number: LabelledNumber<'a>,
}

/// A number as it is printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LabelledNumber<'a> {
    /// A number, with the unit that follows it.
    Value(f64, &'a str),
    /// `10/100`.
    Fraction(f64, f64),
    /// `0:01:30`, in seconds.
    Clock(f64),
}

/// The key of a fraction without a label, as in bars and `[10/100]`.
pub(super) const COUNT: &str = "n/total";

/// Returns the numbers of a line, in their order.
pub(super) fn labelled(line: &str) -> Vec<Labelled<'_>> {
    let mut found: Vec<Labelled<'_>> = Vec::new();
    let (mut at, mut label_start) = (0, 0);
    while let Some(start) = next_token(line, at) {
        let Some((number, len)) = number(&line[start..]) else {
            at = start + token_len(&line[start..]);
            continue;
        };
        let end = start + len;
        if let Some(clock) = clock_after_date(number, &line[end..]) {
            at = end + clock;
            continue;
        }
        let before = &line[label_start..start];
        let (context, label, is_assigned) = label_of(before);
        // `device='cuda:0'` in a printed tensor.
        if before.ends_with(':') && label.rsplit(is_margin).next() == Some("cuda") {
            (at, label_start) = (end, end);
            continue;
        }
        let number = with_next_word(number, &line[end..]);
        let (label, number) = with_unit_of_label(label, number);
        let end = end + number.1;
        let is_remark = label.is_empty() && before.trim_end().ends_with('(');
        let mut measure = measure(&line[end..]);
        // In a remark such as `loss 4.5 (+1.2z)`, only a rate has a name: `(533.8 examples/sec)`.
        if is_remark && !measure.contains('/') {
            measure = "";
        }
        found.push(Labelled {
            label,
            context,
            is_assigned,
            is_adjacent: !found.is_empty() && before.bytes().all(|byte| matches!(byte, b' ' | b':')),
            is_integer: line[start..end].bytes().all(|byte| byte.is_ascii_digit()),
            is_remark,
            is_progress: is_progress(number.0, &line[end..]),
            measure,
            number: number.0,
        });
        let is_own = label.is_empty() || before.trim_end().ends_with([':', '=']);
        let next = &line[end..];
        let rest = next
            .trim_start()
            .strip_prefix(measure)
            .filter(|_| is_own && measure.contains('/'));
        let taken = rest
            .filter(|rest| begins_with_measured(rest, MOST_MEASURED))
            .map_or(0, |rest| next.len() - rest.len());
        (at, label_start) = (end + taken, end + taken);
    }
    found
}

/// The most numbers after a rate that decide whether words are before or after their numbers.
const MOST_MEASURED: usize = 8;

/// Returns whether the text begins with a number that has a unit or a rate after it, as the second one in
/// `250 ms/step 4096 tok/s`, and so do the numbers that follow it. The words before it are then those of the previous number. In
/// `loss: 2.5 tok/s 1200 ms/step 250`, they are labels.
fn begins_with_measured(text: &str, most: usize) -> bool {
    let text = text.trim_start();
    let Some((number, len)) = number(text) else {
        return false;
    };
    let (number, unit_len) = with_next_word(number, &text[len..]);
    let rest = &text[len + unit_len..];
    let measure = measure(rest);
    let has_unit = matches!(number, LabelledNumber::Value(_, unit) if !unit.is_empty());
    if !has_unit && !measure.contains('/') {
        return false;
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(measure).unwrap_or(rest).trim_start();
    most == 0 || self::number(rest).is_none() || begins_with_measured(rest, most - 1)
}

/// Returns whether a number is progress, given the text after it.
fn is_progress(number: LabelledNumber<'_>, rest: &str) -> bool {
    match number {
        LabelledNumber::Fraction(..) => true,
        LabelledNumber::Value(_, "%") => rest.starts_with('|'),
        LabelledNumber::Value(..) | LabelledNumber::Clock(_) => false,
    }
}

/// Returns the offset of the next possible number: a digit or a sign that does not end a word.
fn next_token(line: &str, from: usize) -> Option<usize> {
    let bytes = line.as_bytes();
    (from..bytes.len()).find(|at| {
        let is_after_word = *at > 0 && is_of_word(bytes[at - 1]);
        if is_after_word || !line.is_char_boundary(*at) {
            return false;
        }
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        match bytes[*at] {
            b'0'..=b'9' => true,
            b'-' | b'+' | b'.' => digit(at + 1) || bytes[*at] != b'.' && is_non_finite(&line[at + 1..]),
            _ => is_non_finite(&line[*at..]),
        }
    })
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

/// Parses the number at the beginning of `text`, with its length.
fn number(text: &str) -> Option<(LabelledNumber<'_>, usize)> {
    if let Some((seconds, len)) = durations::days(text).or_else(|| durations::spelled(text)) {
        return Some((LabelledNumber::Clock(seconds), len));
    }
    if let Some((seconds, len)) = durations::worded(text) {
        return Some((LabelledNumber::Value(seconds, "s"), len));
    }
    let len = token_len(text);
    let token = text[..len].trim_end_matches([':', '.', '!']);
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
        let fraction = || Some(LabelledNumber::Fraction(count(done)?, count(total)?));
        if let Some(number) = used_bytes(done, total, rest).or_else(fraction) {
            return Some((number, token.len()));
        }
    }
    let (value, unit) = number_text::with_suffix(token)
        .or_else(|| Some((decimal_comma(token, rest)?, "")))
        .or_else(|| before_comma(token))?;
    match spaced_total(rest).filter(|_| unit.is_empty()) {
        Some((total, total_len)) => Some((LabelledNumber::Fraction(value, total), token.len() + total_len)),
        None => Some((LabelledNumber::Value(value, unit), token.len())),
    }
}

/// Parses the cell of a table: a number, optionally followed by a unit or a colon; the first of `10/100`; the seconds of a
/// clock.
pub(super) fn cell(text: &str) -> Option<FieldValue<'_>> {
    let text = text.trim_end_matches(':');
    let (number, len) = number(text)?;
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

/// Returns the length of the time after a date such as `11/01`.
fn clock_after_date(number: LabelledNumber<'_>, rest: &str) -> Option<usize> {
    let time = rest.strip_prefix(' ')?;
    let len = token_len(time);
    let is_date = matches!(number, LabelledNumber::Fraction(..));
    (is_date && durations::clock(&time[..len]).is_some()).then_some(1 + len)
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

/// Parses a number up to its first comma, if commas do not separate thousands.
fn before_comma(token: &str) -> Option<(f64, &str)> {
    number_text::with_suffix(token.split(',').next()?)
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

/// Adds a unit after a space, such as `234 ms`. Returns its length.
fn with_next_word<'a>(number: LabelledNumber<'a>, rest: &'a str) -> (LabelledNumber<'a>, usize) {
    let LabelledNumber::Value(value, "") = number else {
        return (number, 0);
    };
    let Some(next) = rest.strip_prefix(' ') else {
        return (number, 0);
    };
    let len = next
        .find(|letter: char| letter.is_whitespace() || ",;|)]}".contains(letter))
        .unwrap_or(next.len());
    if unit::is_spelling(&next[..len]) {
        (LabelledNumber::Value(value, &next[..len]), 1 + len)
    } else {
        (number, 0)
    }
}

/// Moves the unit of a label such as `Accuracy (%)` to its number, if that has none. `time (sec)` is often the time since the
/// start of an epoch, and stays as it is.
fn with_unit_of_label<'a>(
    label: &'a str,
    number: (LabelledNumber<'a>, usize),
) -> (&'a str, (LabelledNumber<'a>, usize)) {
    match (qualified(label), number.0) {
        (Some((name, unit)), LabelledNumber::Value(value, ""))
            if unit::is_spelling(unit) && !name.eq_ignore_ascii_case("time") =>
        {
            (name, (LabelledNumber::Value(value, unit), number.1))
        }
        _ => (label, number),
    }
}

/// The most bytes after a number that are searched for its words: a line can have thousands of numbers without a delimiter.
const MOST_BYTES: usize = 1024;

/// Returns the words after a number, up to the next delimiter or number, unless they are the label of the next one.
fn measure(rest: &str) -> &str {
    let rest = &rest[..rest.floor_char_boundary(MOST_BYTES)];
    let end = delimiters(rest).next().map_or(rest.len(), |(start, _)| start);
    let text = &rest[..end];
    // In `1200 words/s : gNorm 0.5` of Marian, the colon separates values.
    let is_separator = text.ends_with(' ') && is_rate(text.trim_end());
    if rest[end..].starts_with(':') && !(is_separator && number(rest[end + 1..].trim_start()).is_none()) {
        return "";
    }
    let next = next_token(text, 0);
    let text = text[..next.unwrap_or(text.len())].trim_matches(is_margin);
    // Words between two numbers are the label of the second one, as `step` in `2026 step 100`, but for a rate.
    let is_label = next.is_some() && !text.contains('/');
    if is_label || text.contains(['=', ':']) {
        ""
    } else {
        text
    }
}

/// Returns whether the words after a number are a rate.
pub(super) fn is_rate(measure: &str) -> bool {
    ["/s", "/sec"].iter().any(|end| measure.ends_with(end))
}

/// Splits the text before a number into context and label, and returns whether `=` follows the label.
fn label_of(before: &str) -> (&str, &str, bool) {
    let trimmed = without_array(before, without_delimiters(before));
    let is_assigned = before[trimmed.len()..].contains('=');
    // A delimiter directly before the number leaves it without a label, except the brackets of `Loss (avg)`.
    let name = qualified(trimmed).map(|(name, _)| name);
    let start = delimiters(&before[..name.unwrap_or(trimmed).len()])
        .last()
        .map_or(0, |(_, end)| end);
    let mut label = trimmed[start..].trim_start_matches(is_margin);
    if is_assigned && name.is_none() {
        label = label.rsplit(char::is_whitespace).next().unwrap_or(label);
    }
    (&before[..trimmed.len() - label.len()], label, is_assigned)
}

/// Strips the name of an array that a number is printed in: `loss: tensor(`.
fn without_array<'a>(before: &str, trimmed: &'a str) -> &'a str {
    let is_in_brackets = before[trimmed.len()..].starts_with('(');
    let label = ARRAYS.iter().find_map(|name| trimmed.strip_suffix(*name));
    let label = label.filter(|label| is_in_brackets && without_delimiters(label).len() < label.len());
    label.map_or(trimmed, without_delimiters)
}

fn without_delimiters(label: &str) -> &str {
    label.trim_end_matches(|letter: char| letter.is_whitespace() || LABEL_DELIMITERS.contains(&letter))
}

/// The names of arrays with one number, as PyTorch, NumPy and JAX print them.
const ARRAYS: [&str; 5] = ["tensor", "np.float64", "np.float32", "array", "Array"];

/// Splits a label such as `Loss (avg)` or `Time (s)` into its name and the text in brackets.
pub(super) fn qualified(label: &str) -> Option<(&str, &str)> {
    let (name, qualifier) = label.strip_suffix(')')?.rsplit_once('(')?;
    let trimmed = name.trim_end();
    let is_name = trimmed.len() < name.len() && trimmed.ends_with(|last: char| !is_margin(last));
    let is_qualifier = !qualifier.is_empty() && next_token(qualifier, 0).is_none();
    (is_name && is_qualifier).then_some((trimmed, qualifier))
}

/// The characters between a label and its number.
const LABEL_DELIMITERS: [char; 11] = ['=', '>', ':', '(', '[', '{', '<', '"', '\'', '~', '→'];

/// Returns whether a character surrounds labels.
fn is_margin(letter: char) -> bool {
    letter.is_whitespace() || !letter.is_alphanumeric() && !matches!(letter, '_' | '%' | '@')
}

/// Iterates over the delimiters between labels: a bar, a comma, a bracket, a tab, ` - ` or `: `.
fn delimiters(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let bytes = text.as_bytes();
    let space = move |at: usize| bytes.get(at).is_none_or(u8::is_ascii_whitespace);
    text.char_indices().filter_map(move |(at, letter)| {
        let ends = match letter {
            '|' | ',' | ';' | '[' | ']' | '{' | '}' | '<' | '>' | '\t' => true,
            '(' => !is_call(text, at),
            ')' => text[..at].rfind('(').is_none_or(|open| !is_call(text, open)),
            '-' | '*' => at > 0 && space(at - 1) && space(at + 1),
            ':' => space(at + 1) && at + 1 < text.len(),
            letter => !letter.is_ascii() && !letter.is_alphanumeric(),
        };
        ends.then(|| (at, at + letter.len_utf8()))
    })
}

/// Returns whether a bracket is part of a word, as in `Epoch(train)`.
fn is_call(text: &str, open: usize) -> bool {
    text[..open].ends_with(char::is_alphanumeric)
}

impl<'a> Labelled<'a> {
    /// Returns the number as text of a value, with its unit.
    pub(super) fn text(&self) -> Cow<'a, str> {
        match self.number {
            LabelledNumber::Value(value, unit) => Cow::Owned(format!("{value}{unit}")),
            LabelledNumber::Fraction(done, total) => Cow::Owned((done / total).to_string()),
            LabelledNumber::Clock(seconds) => Cow::Owned(seconds.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let shown = labelled(line).into_iter().map(|number| {
            let name = match number.label {
                "" if matches!(number.number, LabelledNumber::Fraction(..)) => COUNT,
                "" => number.measure,
                label => label,
            };
            format!("{name}→{}", number.text())
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn labels_of_every_style_are_found() {
        for (line, expected) in [
            (
                "step 100 | loss 2.31 | lr 3e-4 | 1200 tok/s",
                "step→100 loss→2.31 lr→0.0003 tok/s→1200",
            ),
            ("step=10, loss=2.5, lr=[0.25]", "step→10 loss→2.5 lr→0.25"),
            (
                "lr 3e-4 1250.5 samples/sec 31250 tokens/sec 12.5 updates/sec",
                "lr→0.0003 samples/sec→1250.5 tokens/sec→31250 updates/sec→12.5",
            ),
            (
                "Speed: 1250.5 samples/sec 31250 tokens/sec 12.5 updates/sec",
                "Speed→1250.5 tokens/sec→31250 updates/sec→12.5",
            ),
            (
                "loss 2.5 (250 ms/step 4096 tok/s 41.5% mfu)",
                "loss→2.5 ms/step→250 tok/s→4096 mfu→41.5%",
            ),
            ("step: 5 tok/s 1200", "step→5 tok/s→1200"),
            (
                "Time 12.5s : 1234.5 words/s : gNorm 0.5",
                "Time→12.5s words/s→1234.5 gNorm→0.5",
            ),
            ("step: 5 tok/s : 1200", "step→5 tok/s→1200"),
            (
                "step: 5 loss: 2.31 tok/s 1200 ms/step 250",
                "step→5 loss→2.31 tok/s→1200 ms/step→250",
            ),
            (
                "step=1 loss=2.5 tokens/sec 1200 samples/sec 12",
                "step→1 loss→2.5 tokens/sec→1200 samples/sec→12",
            ),
            (
                "step: 1 loss: 2.5 it/s 3 tok/s 1200",
                "step→1 loss→2.5 it/s→3 tok/s→1200",
            ),
            (
                "step=5 loss=2.31 tok/s 1200 mem 20 GB",
                "step→5 loss→2.31 tok/s→1200 mem→20GB",
            ),
            (
                "iter 100: loss 2.4567, time 234.56ms, mfu 12.34%",
                "iter→100 loss→2.4567 time→234.56ms mfu→12.34%",
            ),
            (
                "step 250: train loss 2.4, val loss 2.5",
                "step→250 train loss→2.4 val loss→2.5",
            ),
            ("loss: -0.5 - acc: nan - x: 1,234", "loss→-0.5 acc→NaN x→1234"),
            ("time per step: 234 ms | a: 1", "time per step→234ms a→1"),
            (
                "step  100/1000 | loss 4.5 (+1.2z)| norm 1.25 (+0.1z)| 123.5 ms | 45.6% bf16 MFU | 12345 tok/s",
                "step→0.1 loss→4.5 →1.2z norm→1.25 →0.1z →123.5ms bf16 MFU→45.6% tok/s→12345",
            ),
            (
                "[11/01 11:27:04 d2.events]:  eta: 1 day, 0:12:34  Epoch(train) [2][10/40] time: 1",
                "eta→87154 Epoch(train)→2 n/total→0.25 time→1",
            ),
            (
                "step => 10 | loss => 2,3456 | lr 0,001 | eta 2d 03h | elapsed 1h02m03s | n (1,2)",
                "step→10 loss→2.3456 lr→0.001 eta→183600 elapsed→3723 n→1",
            ),
            (
                "Time (s): 3.1 Acc (%): 91.5 Loss (avg) 2.5 lr (x1e-4): 1.1 | acc (val) = 0.5 | batch 200/  982 |",
                "Time (s)→3.1 Acc→91.5% Loss (avg)→2.5 lr (x1e-4)→1.1 acc (val)→0.5 batch→0.20366598778004075",
            ),
            (
                "step 1,200/12,000 | n 10 / 12,500 | mem 61.2/80.0 GB | gpu 3GB/80GB | cpu 16/64GB",
                "step→0.1 n→0.0008 mem→61.2GB gpu→3GB cpu→16GB",
            ),
            (
                "loss: tensor(2.5, device='cuda:0', grad_fn=<MeanBackward0>) acc=np.float64(0.5) a → 3",
                "loss→2.5 acc→0.5 a→3",
            ),
            ("num_cuda:4, device=cuda:0", "num_cuda→4"),
            (
                "time=10 minutes and 3.5 seconds, eval time=31.5 seconds, 0.5 second/step, eta 1 hour",
                "time→603.5s time→31.5s second/step→0.5 eta→3600s",
            ),
            // The words between two numbers are the label of the second one.
            (
                "1714557600.5 step 100 loss 2.5",
                "→1714557600.5 step→100 loss→2.5",
            ),
            (
                "iter: 100  total_loss: 1.25  lr: 0.001  eta: 0:12:34",
                "iter→100 total_loss→1.25 lr→0.001 eta→754",
            ),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn progress_bar_yields_count_and_rate() {
        assert_eq!(
            shown("Epoch 1:  45%|####5     | 45/100 [00:31<01:38,  1.44it/s, loss=2.31, lr=3e-4]"),
            "Epoch→1 →45% n/total→0.45 →31 →98 →1.44it/s loss→2.31 lr→0.0003"
        );
    }

    #[test]
    fn digits_in_words_dates_and_versions_are_not_values() {
        for line in [
            "2026-01-02 v1.2.3 gpt-2 model_7 Acc@1 a1b2 0x7f 10-20",
            "info nanny infinite",
            "http://127.0.0.1/x",
        ] {
            assert_eq!(shown(line), "", "{line}");
        }
    }
}
