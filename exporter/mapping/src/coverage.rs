//! What becomes of a key, as the documentation lists it.

use std::borrow::Cow;

/// A key of a trainer and what becomes of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageRow {
    /// The kind of the record, where a format has several.
    pub record: &'static str,
    /// The key as the log spells it.
    pub key: Cow<'static, str>,
    /// The metric, event, span or attribute of the registry; a reason in parentheses where values are left out.
    pub name: Cow<'static, str>,
    /// The attributes of the points.
    pub attributes: String,
    /// How the unit is converted.
    pub conversion: String,
}

impl CoverageRow {
    /// Returns the row of something that a parser handles by a rule of its own: `key` becomes `name`.
    pub fn rule(key: &'static str, name: &'static str, conversion: &str) -> Self {
        Self {
            record: "",
            key: Cow::Borrowed(key),
            name: Cow::Borrowed(name),
            attributes: String::new(),
            conversion: conversion.to_owned(),
        }
    }
}
