//! The rows of one kind of record.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use crate::{
    CoverageRow, FieldMapping, field_mapping::ResolvedMapping, key_pattern::KeyPattern, trainer::trainer,
};

/// Rows by key. Exact keys precede forms and expressions; among these the first that matches counts.
#[derive(Clone, Debug, Default)]
pub struct FieldTable {
    rows: Vec<Arc<FieldMapping>>,
    exact: HashMap<String, usize>,
    /// The rows whose keys are forms or expressions.
    patterns: Vec<usize>,
    /// Beginnings of keys, and what takes their place where no row has the key.
    prefixes: Vec<(String, String)>,
}

impl FieldTable {
    /// Adds a row. Of two rows for one exact key the first counts.
    pub fn add(&mut self, row: FieldMapping) {
        let index = self.rows.len();
        match &row.keys {
            KeyPattern::Exact(key) => {
                self.exact.entry(key.clone()).or_insert(index);
            }
            KeyPattern::Form(_) | KeyPattern::Regex(_) => self.patterns.push(index),
        }
        self.rows.push(Arc::new(row));
    }

    /// Looks up keys that begin with `from` and have no row with `to` in its place.
    pub fn add_prefix(&mut self, from: &str, to: &str) {
        self.prefixes.push((from.to_owned(), to.to_owned()));
    }

    /// Returns the row for a key, or `None`.
    pub fn resolve(&self, key: &str) -> Option<ResolvedMapping> {
        self.row_of(key).or_else(|| {
            let mut shorter = self.prefixes.iter().filter_map(|(from, to)| {
                let rest = key.strip_prefix(from.as_str())?;
                self.row_of(&[to, rest].concat())
            });
            shorter.next()
        })
    }

    fn row_of(&self, key: &str) -> Option<ResolvedMapping> {
        let exact = self
            .exact
            .get(key)
            .and_then(|index| self.rows[*index].resolve(key));
        exact.or_else(|| {
            let mut patterns = self.patterns.iter();
            patterns.find_map(|index| self.rows[*index].resolve(key))
        })
    }

    /// Returns the row of an exact key.
    pub fn row(&self, key: &str) -> Option<&FieldMapping> {
        let index = self.exact.get(key)?;
        Some(&self.rows[*index])
    }

    /// Iterates over the rows in the order of the mapping.
    pub fn rows(&self) -> impl Iterator<Item = &FieldMapping> {
        self.rows.iter().map(|row| &**row)
    }

    /// Describes the rows for the documentation.
    pub fn coverage(&self) -> Vec<CoverageRow> {
        self.rows().map(FieldMapping::coverage_row).collect()
    }
}

/// The rows that the mapping of a trainer has for one kind of record: a static that loads them when they are first used.
#[derive(Debug)]
pub struct RecordTable {
    trainer: &'static str,
    kind: &'static str,
    table: OnceLock<&'static FieldTable>,
}

impl RecordTable {
    /// Names the rows `records: {kind: ...}` of `mappings/<trainer>.yaml`.
    pub const fn new(trainer: &'static str, kind: &'static str) -> Self {
        Self {
            trainer,
            kind,
            table: OnceLock::new(),
        }
    }

    /// Describes the rows of several tables for the documentation. Keys are qualified by the kind of record where a trainer has
    /// several.
    pub fn coverage_of(tables: &[&Self]) -> Vec<CoverageRow> {
        tables.iter().flat_map(|table| table.coverage()).collect()
    }
}

impl Deref for RecordTable {
    type Target = FieldTable;

    fn deref(&self) -> &FieldTable {
        self.table.get_or_init(|| {
            let table = trainer(self.trainer).mapping().records(self.kind);
            table.unwrap_or_else(|| panic!("invariant: {} has records of {}", self.trainer, self.kind))
        })
    }
}
