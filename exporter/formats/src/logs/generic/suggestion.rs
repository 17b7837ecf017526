//! Writes a mapping for a log: `pulsetrain import --suggest-mapping`.

use std::fmt::Write;

use super::{
    auto::GenericLines,
    key_use::{KeyUse, key_entry, quoted},
    labelled::labelled,
    objects::object,
    printed_number::DecimalMark,
    section::EVAL_PREFIX,
};
use crate::{
    FormatError,
    logs::{
        encoding,
        lines::{LineParser, each_message},
        parser::{LogParser, ReadTime, Window},
    },
};
use pulsetrain_record::{Recorder, Run};

/// The most keys of a log that no rule knows.
const MOST_KEYS: usize = 100;

/// The fewest numbers in a line of a log that no format detects: other text has lines with one.
pub(super) const SEVERAL: usize = 2;

/// Returns the mapping for a log, as YAML with comments.
///
/// # Errors
/// Fails if the log is not text or no number in it has a label.
pub fn suggest_mapping(name: &str, log: &[u8]) -> Result<String, FormatError> {
    if let Some(error) = encoding::unreadable(name, log) {
        return Err(error);
    }
    suggestion(name, encoding::without_byte_order_mark(log)).ok_or_else(|| FormatError::NoKeys {
        name: name.to_owned(),
    })
}

/// Returns the mapping for a log, or `None` for one in which no number has a label.
fn suggestion(name: &str, log: &[u8]) -> Option<String> {
    let mut parser = LineParser::<GenericLines>::default();
    let window = Window {
        bytes: log,
        start: pulsetrain_record::SourcePosition { offset: 0, line: 1 },
        is_last: true,
        time: ReadTime::default(),
    };
    let mut recorder = Recorder::new(Run::default(), |_| {});
    parser.parse(window, &mut recorder);
    let uses = parser.key_uses();
    if uses.is_empty() {
        let keys = seen_keys(log, SEVERAL);
        return (!keys.is_empty()).then(|| template(name, &keys));
    }
    let format = if parser.format().is_table() { "csv" } else { "text" };
    Some(mapping(name, format, &uses))
}

fn head(name: &str, format: &str) -> String {
    format!(
        "# Mapping for {name}. Edit it, then: pulsetrain import --mapping THIS_FILE {name}\n\
         # `pulsetrain semconv list --kind metric` lists the metrics.\n\
         format: {format}\n"
    )
}

fn mapping(name: &str, format: &str, uses: &[KeyUse]) -> String {
    let mut text = head(name, format);
    let mut steps: Vec<(usize, String)> = uses.iter().filter_map(step).collect();
    steps.sort();
    if !steps.is_empty() {
        let keys: Vec<String> = steps.into_iter().map(|(_, key)| key).collect();
        writeln!(text, "step: [{}]", keys.join(", ")).ok();
    }
    if let Some(time) = uses.iter().find(|used| used.outcome.is_time) {
        writeln!(text, "time: {}  # {}", quoted(&time.key), time.example).ok();
    }
    text.push_str("values:\n");
    for used in uses {
        let example = one_line(&used.example);
        match &used.row {
            Some(row) => writeln!(text, "  - {row}  # {example}").ok(),
            // Only a row lets a value of a marked record have the key of an evaluation.
            None if used.outcome.is_custom && used.key.starts_with(EVAL_PREFIX) => {
                writeln!(text, "  - {{{}, keep: true}}  # {example}", key_entry(&used.key)).ok()
            }
            None if used.outcome.is_custom => writeln!(text, "{}", commented(&used.key, &example)).ok(),
            None => None,
        };
    }
    text
}

fn step(used: &KeyUse) -> Option<(usize, String)> {
    Some((used.step_rank?, quoted(&used.key)))
}

/// Formats a row that the user has to complete.
fn commented(key: &str, example: &str) -> String {
    format!(
        "  # - {{{}, metric: }}  # {example}; kept as train.custom",
        key_entry(key)
    )
}

fn template(name: &str, keys: &[(String, String)]) -> String {
    let mut text = head(name, "text");
    text.push_str("# No key is known. Name the step, and give keys their metrics.\n# step: \nvalues:\n");
    for (key, example) in keys {
        writeln!(text, "{}", commented(key, example)).ok();
    }
    text
}

fn one_line(example: &str) -> String {
    let line: String = example.chars().take(40).collect();
    line.replace(['\n', '\r'], " ")
}

/// Returns the keys of the numbers of a log with their first values, those of lines with at least `fewest` numbers.
pub(super) fn seen_keys(log: &[u8], fewest: usize) -> Vec<(String, String)> {
    let mut keys: Vec<(String, String)> = Vec::new();
    each_message(log, |line| {
        let named = numbers(line);
        if named.len() < fewest {
            return;
        }
        for (key, value) in named {
            if keys.len() < MOST_KEYS && keys.iter().all(|(known, _)| *known != key) {
                keys.push((key, value));
            }
        }
    });
    keys
}

/// Returns the keys and values of the numbers of a line: those of its object, otherwise those with a label.
fn numbers(line: &str) -> Vec<(String, String)> {
    if let Some((_, fields)) = object(line) {
        let numbers = fields
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.number()?)));
        return numbers
            .map(|(key, value)| (key.into_owned(), value.to_string()))
            .collect();
    }
    let is_name = |label: &str| label.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let numbers = labelled(line, DecimalMark::default())
        .into_iter()
        .filter(|number| is_name(number.label));
    numbers
        .map(|number| (number.label.to_owned(), number.text().into_owned()))
        .collect()
}
