//! Tables with sections in logs with a mapping: a row for each value, below the row of a section: `| rollout/ |  |`.

use pulsetrain_mapping::Field;
use std::borrow::Cow;

use super::{labelled::cell, section::EVAL_PREFIX};

/// The section of a table with values of an evaluation.
const EVALUATION: &str = "eval/";

/// The state of a log between lines.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Whether the newest line is in a table with sections.
    in_table: bool,
    /// Whether the section of the table is `eval/`.
    is_evaluation: bool,
}

impl Blocks {
    /// Returns the value in a row of a table.
    pub(super) fn row<'a>(&mut self, text: &'a str) -> Option<Field<'a>> {
        let text = text.trim();
        let Some(row) = text.strip_prefix('|').and_then(|text| text.strip_suffix('|')) else {
            // Lines of dashes surround a table. Any other line that is not empty ends it.
            self.in_table &= text.bytes().all(|byte| byte == b'-');
            return None;
        };
        let (key, value) = row.split_once('|')?;
        let (key, value) = (key.trim(), value.trim());
        if value.is_empty() {
            self.in_table = key.ends_with('/');
            self.is_evaluation = key == EVALUATION;
        }
        let value = cell(value).filter(|value| value.number().is_some() && self.in_table)?;
        let key = match self.is_evaluation {
            true => Cow::Owned([EVAL_PREFIX, key].concat()),
            false => Cow::Borrowed(key),
        };
        Some((key, value))
    }

    /// Returns whether the newest line is in a table.
    pub(super) fn is_in_table(&self) -> bool {
        self.in_table
    }
}
