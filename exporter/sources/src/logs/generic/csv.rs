//! Tables: a header with the keys, and a row a record.

use std::{borrow::Cow, sync::Arc};

use super::{mapping::Mapping, record::Records};
use crate::logs::{
    fields::{Field, Value},
    lines::{Line, LineFormat},
};
use pulsetrain_record::{Recorder, SkipReason};

/// What separates the cells of a table, the most usual first.
const DELIMITERS: [char; 3] = [',', '\t', ';'];

/// The header of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    delimiter: char,
    keys: Vec<String>,
}

impl Header {
    /// Returns the header that a line is: names without numbers, each once.
    pub(super) fn of(line: &str) -> Option<Self> {
        let count = |delimiter: &char| line.matches(*delimiter).count();
        let delimiter = DELIMITERS.into_iter().rev().max_by_key(count)?;
        let keys: Vec<String> = cells(line, delimiter).map(Cow::into_owned).collect();
        let is_name = |key: &String| key.starts_with(|first: char| first.is_alphabetic() || first == '_');
        let is_once = |key: &String| keys.iter().filter(|other| *other == key).count() == 1;
        let is_header = keys.len() > 1 && keys.iter().all(|key| is_name(key) && is_once(key));
        is_header.then_some(Self { delimiter, keys })
    }

    /// The keys, in their order.
    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Returns the fields of a row, without its empty cells, or `None` if the row has another number of cells.
    pub(super) fn fields<'a>(&'a self, line: &'a str) -> Option<Vec<Field<'a>>> {
        let cells: Vec<Cow<'a, str>> = cells(line, self.delimiter).collect();
        if cells.len() != self.keys.len() {
            return None;
        }
        let named = self.keys.iter().zip(cells);
        let filled = named.filter(|(_, cell)| !cell.is_empty());
        Some(
            filled
                .map(|(key, cell)| (Cow::Borrowed(key.as_str()), value(cell)))
                .collect(),
        )
    }
}

fn value(cell: Cow<'_, str>) -> Value<'_> {
    match Value::of(&cell).number() {
        Some(number) => Value::Number(number),
        None => Value::Text(cell),
    }
}

/// Returns the cells of a line, without their quotes.
fn cells(line: &str, delimiter: char) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = cell_len(text, delimiter);
        rest = text
            .get(end + delimiter.len_utf8()..)
            .filter(|_| end < text.len());
        Some(unquoted(text[..end].trim()))
    })
}

/// The length of the first cell: up to the first delimiter outside of quotes.
fn cell_len(text: &str, delimiter: char) -> usize {
    let mut is_quoted = false;
    let end = text.find(|letter: char| {
        is_quoted ^= letter == '"';
        letter == delimiter && !is_quoted
    });
    end.unwrap_or(text.len())
}

fn unquoted(cell: &str) -> Cow<'_, str> {
    let inner = cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"'));
    match inner {
        Some(inner) if inner.contains("\"\"") => Cow::Owned(inner.replace("\"\"", "\"")),
        Some(inner) => Cow::Borrowed(inner),
        None => Cow::Borrowed(cell),
    }
}

/// Reads a table.
#[derive(Debug)]
pub(super) struct CsvLines {
    header: Option<Header>,
    records: Records,
}

impl CsvLines {
    pub(super) fn of(mapping: &Arc<Mapping>) -> Self {
        Self {
            header: None,
            records: Records::of(mapping),
        }
    }
}

impl LineFormat for CsvLines {
    fn sign(_: &str) -> Option<&'static str> {
        None
    }

    fn is_begun(text: &str) -> bool {
        text.contains(DELIMITERS)
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        // A writer that adds a column begins a new table.
        if let Some(header) = Header::of(line.text) {
            self.header = Some(header);
            return false;
        }
        let Self {
            header: Some(header),
            records,
        } = self
        else {
            return false;
        };
        let Some(fields) = header.fields(line.text) else {
            recorder.skip(SkipReason::MalformedRecord, line.place(), || {
                format!(
                    "the row has another number of cells than the header, which has {}",
                    header.keys.len()
                )
            });
            return false;
        };
        records.look_up(&fields, None);
        records.record(&fields, line, recorder);
        true
    }
}
