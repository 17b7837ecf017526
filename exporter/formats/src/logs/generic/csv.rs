//! Parses tables: a header with the keys, and a row for each record.

use pulsetrain_mapping::{Field, FieldValue, Mapping};
use std::{borrow::Cow, sync::Arc};

use super::class_table::ClassTable;
use super::key_use::KeyUse;
use super::label_keys::LabelKeys;
use super::labelled;
use super::record::Records;
use super::section::EVAL_PREFIX;
use crate::logs::lines::{Line, LineFormat};
use pulsetrain_record::{Recorder, SkipReason};

/// The delimiters of a table's cells, the most usual first.
const DELIMITERS: [char; 3] = [',', '\t', ';'];

/// The delimiter of a table with aligned columns.
const SPACES: char = ' ';

/// The minimum number of aligned columns: two words are a sentence.
const FEWEST_ALIGNED: usize = 3;

/// The columns of fastai before and after the metrics of its evaluation.
const FASTAI: [&str; 4] = ["epoch", "train_loss", "valid_loss", "time"];

/// The most columns of a table.
const MAX_COLUMNS: usize = 1024;

/// The header of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    delimiter: char,
    keys: Vec<String>,
    /// Whether spaces precede the first key, as if a column had no name.
    is_indented: bool,
}

impl Header {
    /// Parses a header: distinct names without numbers.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let count = |delimiter: &char| line.matches(*delimiter).count();
        let delimiter = DELIMITERS.into_iter().rev().max_by_key(count)?;
        let keys: Vec<String> = cells(line, delimiter).map(Cow::into_owned).collect();
        (keys.len() > 1 && are_names(&keys)).then_some(Self {
            delimiter,
            keys,
            is_indented: false,
        })
    }

    /// Parses a possible header of aligned columns. Only the next row shows whether it is one.
    pub(super) fn aligned(line: &str) -> Option<Self> {
        let mut keys: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let is_header = keys.len() >= FEWEST_ALIGNED && are_names(&keys);
        if let [epoch, train, valid, metrics @ .., time] = keys.as_mut_slice()
            && [epoch.as_str(), train.as_str(), valid.as_str(), time.as_str()] == FASTAI
        {
            metrics.iter_mut().for_each(|key| key.insert_str(0, EVAL_PREFIX));
        }
        is_header.then_some(Self {
            delimiter: SPACES,
            keys,
            is_indented: line.starts_with(char::is_whitespace),
        })
    }

    /// Returns the fields of a row with aligned columns, which a progress bar may follow; `None` unless all cells are numbers.
    fn aligned_fields<'a>(&'a self, line: &'a str) -> Option<Vec<Field<'a>>> {
        let mut cells = line.split_whitespace();
        if self.has_index(line) {
            cells.next();
        }
        let fields = self.keys.iter().map(|key| {
            let value = labelled::cell(cells.next()?)?;
            Some((Cow::Borrowed(key.as_str()), value))
        });
        fields.collect()
    }

    /// Returns whether a row begins with its index, as pandas prints it in a column without a name.
    fn has_index(&self, line: &str) -> bool {
        let cells = || line.split_whitespace();
        self.is_indented
            && cells().count() == self.keys.len() + 1
            && cells().all(|cell| labelled::cell(cell).is_some())
    }

    /// The keys, in their order.
    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Returns the fields of a row, without its empty cells, or `None` if the row has another number of cells.
    pub(super) fn fields<'a>(&'a self, line: &'a str) -> Option<Vec<Field<'a>>> {
        if self.delimiter == SPACES {
            return self.aligned_fields(line);
        }
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
fn are_names(keys: &[String]) -> bool {
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
    /// The previous line, if it can be the header of aligned columns.
    aligned: Option<Header>,
    classes: ClassTable,
}

impl Table {
    /// Returns the newest header.
    pub(super) fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Returns the fields of a row of an evaluation's table of classes.
    pub(super) fn class_row(&mut self, line: &str) -> Option<Vec<Field<'static>>> {
        self.classes.row(line)
    }

    /// Parses a header that satisfies `is_header`. Returns whether the line is one. A writer that adds a column writes a new
    /// header. Only the first header can have an unnamed column, because a row can have an empty first cell.
    pub(super) fn take_header(&mut self, line: &str, is_header: impl Fn(&Header) -> bool) -> bool {
        let has_header = self.header.is_some();
        let is_first = |header: &Header| !(has_header && header.keys[0].is_empty());
        if let Some(header) = Header::parse(line).filter(is_first).filter(&is_header) {
            self.header = Some(header);
            self.aligned = None;
            return true;
        }
        if let Some(aligned) = self
            .aligned
            .take()
            .filter(|aligned| aligned.fields(line).is_some())
        {
            self.header = Some(aligned);
        }
        self.aligned = Header::aligned(line).filter(is_header);
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
        let Some(header) = self.table.header() else {
            return false;
        };
        let Some(mut fields) = header.fields(line.text) else {
            // A log has other lines between rows of aligned columns.
            if header.delimiter != SPACES {
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
        self.records.record(&fields, line, recorder);
        true
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        self.records.key_uses()
    }
}
