//! What a format's tables say of the names upstream: the source of the coverage tables in the documentation.

use super::row::Row;

/// A name upstream and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The name as the log spells it.
    pub key: &'static str,
    /// The metric, event, span or attribute of the registry; a sentence in brackets where a rule drops it.
    pub name: &'static str,
    /// The attributes that its points carry.
    pub attributes: String,
    /// How its unit is converted.
    pub conversion: String,
}

/// The rows of several tables, in order.
pub(super) fn tables(tables: &[&[Row]]) -> Vec<Covered> {
    tables
        .iter()
        .flat_map(|rows| rows.iter())
        .map(Row::covered)
        .collect()
}

/// What is no number and has a rule instead of a row: `key` becomes `name`.
pub(crate) fn covered(key: &'static str, name: &'static str, conversion: &str) -> Covered {
    Covered {
        key,
        name,
        attributes: String::new(),
        conversion: conversion.to_owned(),
    }
}
