//! Records that are printed over several lines.
//!
//! In a block, each line after a heading such as `[step=3/1000,epoch=0]` or `Learning iteration 3/1500` has one number with its
//! label (OLMo, rsl_rl). The tables of Stable-Baselines3 have a row for each value, below the row of a section:
//! `| rollout/ |  |`.

use pulsetrain_mapping::Field;
use std::borrow::Cow;

use super::{
    labelled::{Labelled, cell},
    section::EVAL_PREFIX,
};

/// The section of a table with values of an evaluation.
const EVALUATION: &str = "eval/";

/// The state of a log between lines.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The heading of the current block.
    heading: Option<Heading>,
    /// Whether the newest line is in a table with sections.
    in_table: bool,
    /// Whether the section of the table is `eval/`.
    is_evaluation: bool,
}

/// The heading of a block.
#[derive(Debug)]
pub(super) struct Heading {
    pub(super) step: BlockProgress,
    /// The epoch, if the heading has one, until it is recorded.
    pub(super) epoch: Option<BlockProgress>,
}

/// A step or an epoch.
#[derive(Debug)]
pub(super) struct BlockProgress {
    pub(super) key: String,
    pub(super) value: f64,
    pub(super) total: Option<f64>,
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

    /// Begins a block.
    pub(super) fn begin(&mut self, heading: Heading) {
        self.heading = Some(heading);
    }

    /// Returns the heading of the block that a line belongs to: an indented line, or one that begins with the label of its only
    /// number. Any other line with a number ends the block.
    pub(super) fn heading_of(&mut self, text: &str, numbers: &[Labelled<'_>]) -> Option<&mut Heading> {
        let is_value = match numbers {
            [] => true,
            [only] => text
                .strip_prefix(only.label)
                .is_some_and(|rest| rest.starts_with([':', '='])),
            _ => false,
        };
        if !is_value && !text.starts_with(char::is_whitespace) {
            self.heading = None;
        }
        self.heading.as_mut()
    }

    /// Ends a block.
    pub(super) fn end(&mut self) {
        self.heading = None;
    }
}
