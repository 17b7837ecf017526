//! The mapping of a key, as the documentation lists it.

use std::borrow::Cow;

use pulsetrain_semconv::metric;

/// A key of a trainer and the mapping of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageRow {
    /// The kind of the record, if a format has several kinds.
    pub record: &'static str,
    /// The key as the log spells it.
    pub key: Cow<'static, str>,
    /// The metric, event, span or attribute of the registry; a reason in parentheses if values are dropped.
    pub name: Cow<'static, str>,
    /// The attributes of the points.
    pub attributes: String,
    /// The conversion of the unit.
    pub conversion: String,
}

impl CoverageRow {
    /// Returns the row for a key that a parser maps to `name` in code.
    pub fn rule(key: &'static str, name: &'static str, conversion: &str) -> Self {
        Self {
            record: "",
            key: Cow::Borrowed(key),
            name: Cow::Borrowed(name),
            attributes: String::new(),
            conversion: conversion.to_owned(),
        }
    }

    /// Returns the row for the key of the step. `record` is what has a step: a line, an entry.
    pub fn step(key: impl Into<Cow<'static, str>>, record: &str) -> Self {
        let conversion =
            format!("as it is; `train.steps` increases by the steps since the previous {record}");
        Self {
            key: key.into(),
            ..Self::rule("", metric::TRAIN_GLOBAL_STEP.name, &conversion)
        }
    }
}

/// Builds an array of rows: `KEYS => NAME, CONVERSION;` is a key that a parser maps in code, `ROW;` is any other row.
#[macro_export]
macro_rules! coverage_rules {
    (@row $row:expr) => { $row };
    (@row $keys:expr, $name:expr, $conversion:expr) => {
        $crate::CoverageRow::rule($keys, $name, $conversion)
    };
    ($($keys:expr $(=> $name:expr, $conversion:expr)?;)*) => {
        [$($crate::coverage_rules!(@row $keys $(, $name, $conversion)?)),*]
    };
}
