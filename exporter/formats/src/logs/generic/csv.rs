//! Parses tables: a header with the keys, and a row for each record.

use pulsetrain_mapping::{Field, FieldValue, Mapping};
use std::{borrow::Cow, sync::Arc};

use super::class_table::ClassTable;
use super::columns::{Columns, TableHead};
use super::key_use::KeyUse;
use super::label_keys::LabelKeys;
use super::record::Records;
use super::row_names::without_run;
use crate::logs::lines::{Line, LineFormat};
use pulsetrain_record::{Recorder, SkipReason};

/// The delimiters of a table's cells, the most usual first.
const DELIMITERS: [char; 3] = [',', '\t', ';'];

/// The most columns of a table.
const MAX_COLUMNS: usize = 1024;

/// The header of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    delimiter: char,
    keys: Vec<String>,
    /// Whether the values of each key are kept as `train.custom`; empty if none is.
    kept: Vec<bool>,
}

impl Header {
    /// Parses a header: distinct names without numbers.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let count = |delimiter: &char| line.matches(*delimiter).count();
        let delimiter = DELIMITERS.into_iter().rev().max_by_key(count)?;
        let mut keys: Vec<String> = cells(line, delimiter).map(Cow::into_owned).collect();
        (keys.len() > 1 && are_names(&keys)).then_some(())?;
        let kept = without_run(&mut keys).unwrap_or_default();
        Some(Self {
            delimiter,
            keys,
            kept,
        })
    }

    /// Returns the keys, in their order.
    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Returns whether the values of a key are kept as `train.custom`.
    pub(super) fn keeps(&self, key: &str) -> bool {
        let kept = self.keys.iter().zip(&self.kept);
        kept.into_iter().any(|(kept, is_kept)| *is_kept && kept == key)
    }

    /// Returns whether the table has columns of several runs.
    pub(super) fn has_runs(&self) -> bool {
        self.kept.contains(&true)
    }

    /// Returns the fields of a row, without its empty cells, or `None` if the row has another number of cells.
    pub(super) fn fields<'a>(&'a self, line: &'a str) -> Option<Vec<Field<'a>>> {
        let cells: Vec<Cow<'a, str>> = cells(line, self.delimiter).collect();
        if cells.len() != self.keys.len() {
            return None;
        }
        let named = self.keys.iter().zip(cells);
        let filled = named.filter(|(key, cell)| !key.is_empty() && !cell.is_empty());
        Some(
            filled
                .map(|(key, cell)| (Cow::Borrowed(key.as_str()), value(cell)))
                .collect(),
        )
    }
}

/// Returns whether all keys are distinct names. The first column, that of the index in tables of pandas, can lack a name.
pub(super) fn are_names(keys: &[String]) -> bool {
    let keys = keys.strip_prefix(&[String::new()]).unwrap_or(keys);
    let is_name = |key: &String| key.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let is_once = |key: &String| keys.iter().filter(|other| *other == key).count() == 1;
    keys.len() <= MAX_COLUMNS && keys.iter().all(|key| is_name(key) && is_once(key))
}

fn value(cell: Cow<'_, str>) -> FieldValue<'_> {
    match FieldValue::parse(&cell).number() {
        Some(number) => FieldValue::Number(number),
        None => FieldValue::Text(cell),
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

/// The header of a table in a log.
#[derive(Debug, Default)]
pub(super) struct Table {
    header: Option<Header>,
    columns: Option<Columns>,
    head: TableHead,
    classes: ClassTable,
}

impl Table {
    /// Returns the newest header of cells with delimiters.
    pub(super) fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Returns whether the log has had a header.
    pub(super) fn has_header(&self) -> bool {
        self.header.is_some() || self.columns.is_some()
    }

    /// Returns the fields of a row of the newest table.
    pub(super) fn fields<'a>(&'a self, line: &'a str) -> Option<Vec<Field<'a>>> {
        match (&self.header, &self.columns) {
            (Some(header), _) => header.fields(line),
            (None, Some(columns)) => columns.fields(line),
            (None, None) => None,
        }
    }

    /// Returns the fields of a row of an evaluation's table of classes.
    pub(super) fn class_row(&mut self, line: &str) -> Option<Vec<Field<'static>>> {
        self.classes.row(line)
    }

    /// Parses a header whose names satisfy `is_header`. Returns whether the line is one. A writer that adds a column writes a
    /// new header. Only the first header can have an unnamed column, because a row can have an empty first cell.
    pub(super) fn take_header(&mut self, line: &str, is_header: impl Fn(&[String]) -> bool) -> bool {
        let is_first = |header: &Header| !(self.has_header() && header.keys[0].is_empty());
        let is_table = |header: &Header| header.has_runs() || is_header(&header.keys);
        if let Some(header) = Header::parse(line).filter(is_first).filter(is_table) {
            self.header = Some(header);
            (self.columns, self.head) = (None, TableHead::default());
            return true;
        }
        if let Some(columns) = self.head.line(line, is_header) {
            (self.header, self.columns) = (None, Some(columns));
        }
        false
    }
}

/// Reads a table.
#[derive(Debug)]
pub(super) struct CsvLines {
    table: Table,
    records: Records,
    keys: LabelKeys,
}

impl CsvLines {
    pub(super) fn new(mapping: &Arc<Mapping>) -> Self {
        Self {
            table: Table::default(),
            records: Records::new(mapping),
            keys: LabelKeys::new(mapping),
        }
    }
}

impl LineFormat for CsvLines {
    fn is_record_start(text: &str) -> bool {
        text.contains(DELIMITERS)
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        if let Some(fields) = self.table.class_row(line.text) {
            self.records.look_up(&fields);
            self.records.record(&fields, line, recorder);
            return true;
        }
        if self.table.take_header(line.text, |_| true) {
            return false;
        }
        let Some(mut fields) = self.table.fields(line.text) else {
            // A log has other lines between rows of aligned columns.
            if let Some(header) = self.table.header() {
                recorder.report(SkipReason::MalformedRecord, line.position(), || {
                    format!(
                        "the row has a different number of cells than the header with {} columns; the row is skipped",
                        header.keys.len()
                    )
                });
            }
            return false;
        };
        self.keys.rename_if_marked(&mut fields);
        self.records.look_up(&fields);
        if let Some(header) = self.table.header() {
            self.records.keep(&fields, |key| header.keeps(key));
        }
        self.records.record(&fields, line, recorder);
        true
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        self.records.key_uses()
    }
}
