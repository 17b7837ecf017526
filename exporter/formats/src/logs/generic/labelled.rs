//! Parses numbers with labels in a printed line: `step 100 | loss: 2.31, lr=3e-4 (1200 tok/s)`, progress bars, fractions and
//! durations.

use pulsetrain_mapping::unit;
use std::borrow::Cow;

use super::{
    arrays::array,
    durations,
    phrase::{delimiters, is_margin, is_message_before_pairs, label_of, qualified},
    printed_number::{DecimalMark, counts_len, next_token, number, token_len},
};

pub(super) use super::printed_number::cell;

/// A number of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Labelled<'a> {
    /// The words before the number, up to the number or the delimiter before them.
    pub(super) label: &'a str,
    /// The text between the previous number and the label.
    pub(super) context: &'a str,
    /// Whether `=` separates the label from the number.
    pub(super) is_assigned: bool,
    /// Whether `:` or `=` separates the label from the number.
    pub(super) is_delimited: bool,
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
pub(super) fn labelled(line: &str, mark: DecimalMark) -> Vec<Labelled<'_>> {
    let mut found: Vec<Labelled<'_>> = Vec::new();
    let (mut at, mut label_start) = (0, 0);
    let has_message = is_message_before_pairs(line);
    while let Some(start) = next_token(line, at) {
        // A line can have megabytes without a number.
        let from = label_start.max(line.ceil_char_boundary(start.saturating_sub(MOST_BYTES)));
        let before = &line[from..start];
        let until = line.floor_char_boundary(start + MOST_BYTES);
        if let Some((label_end, value, end)) = array(&line[from..until], before.len()) {
            found.push(Labelled::unnamed(&before[..label_end], value));
            (at, label_start) = (from + end, from + end);
            continue;
        }
        let is_value = before.trim_end().ends_with([':', '=']);
        if is_placeholder(&line[start..]) {
            at = start + token_len(&line[start..]);
            continue;
        }
        if let Some(len) = counts_len(&line[start..]).or_else(|| bound_len(&line[..start], &line[start..])) {
            found.push(Labelled::unnamed("", None));
            (at, label_start) = (start + len, start + len);
            continue;
        }
        let Some((number, len)) = number(&line[start..], mark, is_value) else {
            at = start + token_len(&line[start..]);
            continue;
        };
        let end = start + len;
        if let Some(clock) = clock_after_date(number, &line[end..]) {
            at = end + clock;
            continue;
        }
        let is_first = found.last().is_none_or(|last| !last.is_assigned);
        let (context, label, is_assigned) = label_of(before, has_message && is_first);
        // `device='cuda:0'` in a printed tensor.
        if before.ends_with(':') && label.rsplit(is_margin).next() == Some("cuda") {
            (at, label_start) = (end, end);
            continue;
        }
        let number = with_next_word(number, &line[end..]);
        let (label, number) = with_unit_of_label(label, number);
        // The unit shows that it is a count: `Progress on:train 11.0it/80.0it`.
        let is_count = matches!(number.0, LabelledNumber::Fraction(..)) && line[start..end].ends_with("it");
        let label = if is_count { "" } else { label };
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
            is_delimited: is_value,
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
    let Some((number, len)) = number(text, DecimalMark::default(), false) else {
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
    most == 0
        || self::number(rest, DecimalMark::default(), false).is_none()
        || begins_with_measured(rest, most - 1)
}

/// Returns whether a number is progress, given the text after it.
fn is_progress(number: LabelledNumber<'_>, rest: &str) -> bool {
    match number {
        LabelledNumber::Fraction(..) => true,
        LabelledNumber::Value(_, "%") => rest.starts_with('|'),
        LabelledNumber::Value(..) | LabelledNumber::Clock(_) => false,
    }
}

/// Returns the length of the time after a date such as `11/01`.
fn clock_after_date(number: LabelledNumber<'_>, rest: &str) -> Option<usize> {
    let time = rest.strip_prefix(' ')?;
    let len = token_len(time);
    let is_date = matches!(number, LabelledNumber::Fraction(..));
    (is_date && durations::clock(&time[..len]).is_some()).then_some(1 + len)
}

/// Adds a unit after a space, such as `234 ms`. Returns its length.
pub(super) fn with_next_word<'a>(number: LabelledNumber<'a>, rest: &'a str) -> (LabelledNumber<'a>, usize) {
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
    if rest[end..].starts_with(':')
        && !(is_separator && number(rest[end + 1..].trim_start(), DecimalMark::default(), false).is_none())
    {
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

/// Returns whether a number is the format of one in a printed source: `{loss:.4f}`.
fn is_placeholder(text: &str) -> bool {
    let token = &text[..token_len(text)];
    text[token.len()..].starts_with('}') && token.ends_with(['f', 'e', 'g', 'd', '%'])
}

/// Returns the length of a number that is only a bound of the value: `<0.001`, `>1000`.
fn bound_len(before: &str, text: &str) -> Option<usize> {
    let sign = before.chars().next_back().filter(|sign| "<>≤≥".contains(*sign))?;
    let outside = &before[..before.len() - sign.len_utf8()];
    let len = token_len(text);
    let is_arrow = sign == '>' && (outside.ends_with(['-', '=', '~', '>']) || outside.contains('<'));
    let is_enclosed = sign == '<' && text[len..].starts_with('>');
    // `00:31<01:38` of a bar.
    let is_between = outside.ends_with(char::is_alphanumeric);
    (!is_arrow && !is_enclosed && !is_between).then_some(len)
}

impl<'a> Labelled<'a> {
    /// Returns the number in an array after `before`, or a number without a label if it has none or several.
    fn unnamed(before: &'a str, value: Option<f64>) -> Self {
        let (context, label, is_assigned) = label_of(before, false);
        Self {
            label: if value.is_some() { label } else { "" },
            context,
            is_assigned,
            is_delimited: before.trim_end().ends_with([':', '=']),
            is_adjacent: false,
            is_integer: false,
            is_remark: false,
            is_progress: false,
            measure: "",
            number: LabelledNumber::Value(value.unwrap_or_default(), ""),
        }
    }

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
        let shown = labelled(line, DecimalMark::default()).into_iter().map(|number| {
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
                "time→603.5s eval time→31.5s second/step→0.5 eta→3600s",
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
