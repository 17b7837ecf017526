//! The advice for a log that no format detects: its keys, its most frequent line and the next command.

use pulsetrain_mapping::{DICTIONARY, trainer};
use pulsetrain_record::{Recorder, Run};

use super::{
    auto::{self, has_records},
    csv::Header,
    labelled::labelled,
    objects::object,
    pattern_lines::counted_lines,
    printed_number::DecimalMark,
    shape_list::LeftLineShapes,
    suggestion::one_line,
};
use crate::logs::{ReadTime, Window, lines::each_message};

/// The most keys of a log that no rule knows.
const MOST_KEYS: usize = 100;

/// The fewest numbers in a line of a log that no format detects: other text has lines with one.
const SEVERAL: usize = 2;

/// The maximum number of keys in a message.
const MOST: usize = 12;

/// The hint for a log that no format detects.
pub(in crate::logs) struct FormatHint {
    /// The keys that were found.
    pub(in crate::logs) found: String,
    /// The next command to run.
    pub(in crate::logs) next: String,
}

/// Describes the keys in the head of a log that a mapping does not fit, or returns `None` if it has no numbers under keys.
pub fn found_keys(head: &[u8]) -> Option<String> {
    describe_keys(head, SEVERAL).or_else(|| describe_keys(head, 1))
}

/// Describes the columns of a table with a header in the first line that has several cells.
pub(super) fn describe_columns(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().skip_while(|line| Header::parse(line).is_none());
    let header = Header::parse(lines.next()?)?;
    let row = header.fields(lines.next()?)?;
    let has_numbers = row.iter().any(|(_, value)| value.number().is_some());
    let more = if header.keys().len() > MOST { ", ..." } else { "" };
    let keys = &header.keys()[..header.keys().len().min(MOST)];
    has_numbers.then(|| [&keys.join(", "), more].concat())
}

/// Describes the keys in lines with at least `fewest` numbers.
fn describe_keys(head: &[u8], fewest: usize) -> Option<String> {
    let keys = seen_keys(head, fewest);
    let more = if keys.len() > MOST { ", ..." } else { "" };
    (!keys.is_empty()).then(|| format!("found the keys {}{more}", keys[..keys.len().min(MOST)].join(", ")))
}

/// Returns the keys in the head of a log, its most frequent line, and the command to run next.
pub(in crate::logs) fn format_hint(input: &str, head: &[u8]) -> FormatHint {
    let found = match (describe_keys(head, SEVERAL), describe_columns(head)) {
        (Some(keys), _) => {
            format!(
                "{keys}, but not the 3 records with usual keys, among at most 5 lines each, of a training log"
            )
        }
        (None, Some(columns)) => {
            format!("found a table with the columns {columns}, but no usual name of a measurement among them")
        }
        (None, None) => "found no lines with several numbers under keys".to_owned(),
    };
    let next = match has_records(head) {
        true => "--format generic reads the records that there are; ",
        false => "check that it is a training log, or name its format with --format; ",
    };
    let command = suggestion_command(input);
    FormatHint {
        found: format!("{found}{}", describe_lines(head)),
        next: format!(
            "{next}`{command}` writes a mapping for every line with numbers: edit it, and give it with --mapping mapping.yaml"
        ),
    }
}

/// Returns the command that writes a mapping for a log. The name of an input with spaces, such as that of the output of a command, is
/// not a word of a command line; `LOG` takes its place.
pub fn suggestion_command(input: &str) -> String {
    let input = if input.contains(char::is_whitespace) {
        "LOG"
    } else {
        input
    };
    format!("pulsetrain import --suggest-mapping {input} > mapping.yaml")
}

/// Describes the lines of a head: their number, and the most frequent one with a number.
fn describe_lines(head: &[u8]) -> String {
    let shapes = LeftLineShapes::default();
    let mut parser = auto::parser(trainer(DICTIONARY).mapping());
    parser.set_left_line_readers(counted_lines(None, &shapes));
    let window = Window {
        bytes: head,
        start: pulsetrain_record::SourcePosition::default(),
        is_last: true,
        time: ReadTime::default(),
    };
    parser.parse(window, &mut Recorder::new(Run::default(), |_| {}));
    let list = shapes.list();
    let shapes = list.by_frequency();
    let mut numbered = shapes.iter().filter(|(_, shape)| !shape.numbers.is_empty());
    match (numbered.next(), list.lines) {
        (_, 0) => String::new(),
        (None, lines) => format!("; {lines} lines without numbers"),
        (Some((_, shape)), lines) => {
            let example = one_line(shape.line.trim());
            format!("; of {lines} lines, {} are like {example:?}", shape.lines)
        }
    }
}

/// Returns the keys of the numbers of a log with their first values, those of lines with at least `fewest` numbers.
fn seen_keys(log: &[u8], fewest: usize) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    each_message(log, |line| {
        let named = number_keys(line);
        if named.len() < fewest {
            return;
        }
        for key in named {
            if keys.len() < MOST_KEYS && !keys.contains(&key) {
                keys.push(key);
            }
        }
    });
    keys
}

/// Returns the keys of the numbers of a line: those of its object, otherwise those with a label.
fn number_keys(line: &str) -> Vec<String> {
    if let Some((_, fields)) = object(line) {
        let numbers = fields.into_iter().filter(|(_, value)| value.number().is_some());
        return numbers.map(|(key, _)| key.into_owned()).collect();
    }
    let is_name = |label: &str| label.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let numbers = labelled(line, DecimalMark::default()).into_iter();
    let names = numbers.filter(|number| is_name(number.label));
    names.map(|number| number.label.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrecognised_log_error_lists_keys_and_suggests_the_next_command() {
        for (text, expected) in [
            (
                "starting\n{\"it\": 1, \"alpha\": 2.5}\n",
                "found the keys it, alpha, but",
            ),
            ("12:00 INFO beta=1 gamma: 2\n", "found the keys beta, gamma, but"),
            (
                "beta 1 | gamma 2\n",
                "of a training log; of 1 lines, 1 are like \"beta 1 | gamma 2\"",
            ),
            ("beta 1 | gamma 2\n", "--suggest-mapping x.log > mapping.yaml"),
            (
                "step 1 | loss 2\n",
                "--format generic reads the records that there are",
            ),
            (
                "Wall time,Step,Value\n1.5,1,2.5\n",
                "found a table with the columns Wall time, Step, Value, but no",
            ),
            ("note=fine x=1\n", "check that it is a training log"),
            ("no pairs here\n", "; 1 lines without numbers; check"),
            ("warm 1\nwarm 2\nready\n", "of 3 lines, 2 are like \"warm 1\""),
            ("", "--suggest-mapping x.log"),
        ] {
            let hint = format_hint("x.log", text.as_bytes());
            let message = format!("{}; {}", hint.found, hint.next);
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert_eq!(found_keys(b"Loss: 2.5\n").as_deref(), Some("found the keys Loss"));
    }
}
