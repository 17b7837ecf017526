//! The advice for a log that no format detects: its keys and the next command.

use super::{
    auto::has_records,
    csv::Header,
    suggestion::{SEVERAL, seen_keys},
};

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
fn describe_columns(head: &[u8]) -> Option<String> {
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
    let keys: Vec<String> = seen_keys(head, fewest).into_iter().map(|(key, _)| key).collect();
    let more = if keys.len() > MOST { ", ..." } else { "" };
    (!keys.is_empty()).then(|| format!("found the keys {}{more}", keys[..keys.len().min(MOST)].join(", ")))
}

/// Returns the keys in the head of a log, and the command to run next.
pub(in crate::logs) fn format_hint(input: &str, head: &[u8]) -> FormatHint {
    let Some(keys) = describe_keys(head, SEVERAL) else {
        if let Some(columns) = describe_columns(head) {
            return FormatHint {
                found: format!(
                    "found a table with the columns {columns}, but no usual name of a measurement among them"
                ),
                next: "give the metric of a column with --mapping mapping.yaml, with `format: csv` in it"
                    .to_owned(),
            };
        }
        return FormatHint {
            found: "found no lines with several numbers under keys".to_owned(),
            next: "check that it is a training log, or name its format with --format (--format generic reads every line \
                   with a usual key)"
                .to_owned(),
        };
    };
    let by_name = match has_records(head) {
        true => "--format generic reads the records that there are; ",
        false => "",
    };
    FormatHint {
        found: format!(
            "{keys}, but not the 3 records with usual keys, among at most 5 lines each, of a training log"
        ),
        next: format!(
            "{by_name}for other keys write a mapping with `pulsetrain import --suggest-mapping {input} > mapping.yaml`, \
             edit it, and give it with --mapping mapping.yaml"
        ),
    }
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
            ("beta 1 | gamma 2\n", "of a training log; for other keys"),
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
            ("no pairs here\n", "--format"),
            ("", "--format"),
        ] {
            let hint = format_hint("x.log", text.as_bytes());
            let message = format!("{}; {}", hint.found, hint.next);
            assert!(message.contains(expected), "{text}: {message}");
        }
        assert_eq!(found_keys(b"Loss: 2.5\n").as_deref(), Some("found the keys Loss"));
    }
}
