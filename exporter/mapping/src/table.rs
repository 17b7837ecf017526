//! The rows of one kind of record.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use crate::{
    CoverageRow, FieldMapping, field_mapping::ResolvedMapping, key_pattern::KeyPattern, mapping::loose,
    trainer::trainer,
};

/// Rows by key. Exact keys precede forms and expressions; among these, the first match counts.
#[derive(Clone, Debug, Default)]
pub struct FieldTable {
    /// The name under which fields without a row are kept, of a table of a trainer.
    pub(crate) owner: String,
    rows: Vec<Arc<FieldMapping>>,
    exact: HashMap<String, usize>,
    /// The rows whose keys are forms or expressions.
    patterns: Vec<usize>,
    /// Prefixes of keys, and their replacements for keys without a row.
    prefixes: Vec<(String, String)>,
}

impl FieldTable {
    /// Adds a row. Of two rows for the same exact key, the first counts.
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

    /// Adds the rows of another table after those of this one.
    pub(crate) fn extend(&mut self, other: &Self) {
        other
            .rows
            .iter()
            .for_each(|row| self.add(FieldMapping::clone(row)));
    }

    /// Returns the table with each exact key in the spelling of loose keys.
    pub(crate) fn in_loose_spelling(&self) -> Self {
        let mut table = Self {
            owner: self.owner.clone(),
            prefixes: self.prefixes.clone(),
            ..Self::default()
        };
        for row in self.rows() {
            let mut row = row.clone();
            if let KeyPattern::Exact(key) = &mut row.keys {
                *key = loose(key);
            }
            table.add(row);
        }
        table
    }

    /// Returns the table with the rows and prefixes of `base` after its own.
    pub(crate) fn before(&self, base: &Self) -> Self {
        let mut table = self.clone();
        table.owner.clone_from(&base.owner);
        table.extend(base);
        table.prefixes.extend_from_slice(&base.prefixes);
        table
    }

    /// Replaces the prefix `from` by `to` in the lookup of keys that have no row.
    pub fn add_prefix(&mut self, from: &str, to: &str) {
        self.prefixes.push((from.to_owned(), to.to_owned()));
    }

    /// Returns the row for a key, or `None`. The key itself is looked up before the key with replaced prefixes: first among
    /// exact keys, then among forms and expressions.
    pub fn resolve(&self, key: &str) -> Option<ResolvedMapping> {
        let prefixes = self.prefixes.iter();
        let others: Vec<String> = prefixes
            .filter_map(|(from, to)| replaced(key, from, to))
            .collect();
        let keys = || std::iter::once(key).chain(others.iter().map(String::as_str));
        keys()
            .find_map(|key| self.rows[*self.exact.get(key)?].resolve(key))
            .or_else(|| keys().find_map(|key| self.by_pattern(key)))
    }

    fn by_pattern(&self, key: &str) -> Option<ResolvedMapping> {
        let mut patterns = self.patterns.iter();
        patterns.find_map(|index| self.rows[*index].resolve(key))
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

/// Replaces the prefix `from` of a key by `to`.
fn replaced(key: &str, from: &str, to: &str) -> Option<String> {
    key.strip_prefix(from).map(|rest| [to, rest].concat())
}

/// The rows of a trainer's mapping for one kind of record: a static that loads them at the first use.
#[derive(Debug)]
pub struct RecordTable {
    trainer: &'static str,
    kind: &'static str,
    table: OnceLock<&'static FieldTable>,
}

impl RecordTable {
    /// Refers to the rows `records: {kind: ...}` of `mappings/<trainer>.yaml`.
    pub const fn new(trainer: &'static str, kind: &'static str) -> Self {
        Self {
            trainer,
            kind,
            table: OnceLock::new(),
        }
    }

    /// Describes the rows of several kinds of records for the documentation, and then the rules of their parser.
    pub fn coverage_of(tables: &[&Self], rules: impl IntoIterator<Item = CoverageRow>) -> Vec<CoverageRow> {
        let rows = tables.iter().flat_map(|table| {
            table.coverage().into_iter().map(|row| CoverageRow {
                record: if tables.len() > 1 { table.kind } else { "" },
                ..row
            })
        });
        rows.chain(rules).collect()
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

#[cfg(test)]
mod tests {
    use crate::MappingFile;

    #[test]
    fn exact_keys_with_a_replaced_prefix_take_precedence_over_patterns() {
        let yaml = "prefixes: {eval/: eval_}
values:
  - {key: 'eval/{data.name}_loss', metric: eval.loss}
  - {key: eval_nll_loss, metric: eval.perplexity}
";
        let mapping = MappingFile::parse(yaml).unwrap().build().unwrap();
        let metric = |key| {
            let resolved = mapping.table().resolve(key)?;
            resolved.mapping.target.metric().map(|metric| metric.name)
        };
        assert_eq!(metric("eval/nll_loss"), Some("eval.perplexity"));
        assert_eq!(metric("eval/squad_loss"), Some("eval.loss"));
        assert_eq!(metric("loss"), None);
    }
}
