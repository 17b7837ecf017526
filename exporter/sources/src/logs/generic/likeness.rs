//! What a log of no known system looks like: the format that reads it is never chosen by itself, because nobody but the user
//! knows what its keys mean, but it can be named.

use super::pairs::{PairReader, Pairs};
use crate::logs::{clean::clean, fields::Value, literal};

/// How many lines are looked at.
const LINES: usize = 50;

/// What to do about a log whose first bytes are these; nothing where it looks like no log.
pub(in crate::logs) fn instead(head: &[u8]) -> &'static str {
    let lines = head.split(|byte| matches!(byte, b'\n' | b'\r')).take(LINES);
    let mut has_pairs = false;
    for line in lines.map(clean) {
        if is_object(&line) {
            return "its lines are JSON objects: --format json reads them, and --mapping says what their keys mean";
        }
        has_pairs |= has_numbers(&line);
    }
    if has_pairs {
        "its lines hold key=value: --format keyvalue reads them, and --mapping says what their keys mean"
    } else {
        "name one with --format"
    }
}

/// Whether a line holds an object with a number.
fn is_object(line: &str) -> bool {
    let start = line.find("{\"");
    let object = start.and_then(|start| literal::object(&line[start..]));
    object.is_some_and(|(fields, _)| fields.iter().any(|(_, value)| matches!(value, Value::Number(_))))
}

/// Whether a line holds two numbers under keys.
fn has_numbers(line: &str) -> bool {
    if !line.contains('=') {
        return false;
    }
    let mut fields = Vec::new();
    PairReader::default().read(line, &Pairs::default(), &mut fields);
    let numbers = fields
        .iter()
        .filter(|(_, value)| matches!(value, Value::Number(_)));
    numbers.count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_that_would_read_it_is_named() {
        for (text, expected) in [
            ("starting\n{\"step\": 1, \"loss\": 2.5}\n", "--format json"),
            ("12:00 INFO {\"step\": 1}\n", "--format json"),
            ("starting\n12:00 step=1 loss=2.5\n", "--format keyvalue"),
            ("note=fine x=1\n", "name one with"),
            ("{\"name\": \"x\"}\n", "name one with"),
            ("no pairs here\n", "name one with"),
            ("", "name one with"),
        ] {
            assert!(instead(text.as_bytes()).contains(expected), "{text}");
        }
    }
}
