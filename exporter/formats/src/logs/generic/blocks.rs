//! Records that are printed over several lines.
//!
//! In a block, each line after a heading such as `[step=3/1000,epoch=0]` or `Learning iteration 3/1500` has one number with its
//! label (OLMo, rsl_rl). The tables of Stable-Baselines3 have a row for each value, below the row of a section:
//! `| rollout/ |  |`.

use pulsetrain_mapping::{Field, FieldValue};
use std::borrow::Cow;

use super::labelled::{Labelled, cell};

/// The state of a log between lines.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The heading of the current block.
    heading: Option<Heading>,
    in_table: bool,
}

/// The heading of a block.
#[derive(Debug)]
pub(super) struct Heading {
    pub(super) step: Location,
    /// The epoch, if the heading has one, until it is recorded.
    pub(super) epoch: Option<Location>,
}

/// A step or an epoch.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) key: String,
    pub(super) value: f64,
    pub(super) total: Option<f64>,
}

impl Blocks {
    /// Returns the value in a row of a table.
    pub(super) fn row<'a>(&mut self, text: &'a str) -> Option<Field<'a>> {
        let text = text.trim();
        let Some(row) = text.strip_prefix('|').and_then(|text| text.strip_suffix('|')) else {
            // The line around a table.
            self.in_table &= text.bytes().all(|byte| byte == b'-');
            return None;
        };
        let (key, value) = row.split_once('|')?;
        let (key, value) = (key.trim(), value.trim());
        if value.is_empty() {
            self.in_table = key.ends_with('/');
        }
        match cell(value)? {
            value @ FieldValue::Number(_) if self.in_table && !key.is_empty() => {
                Some((Cow::Borrowed(key), value))
            }
            _ => None,
        }
    }

    /// Returns whether the newest line is in a table.
    pub(super) fn is_in_table(&self) -> bool {
        self.in_table
    }

    /// Begins a block.
    pub(super) fn begin(&mut self, heading: Heading) {
        self.heading = Some(heading);
    }

    /// Returns the heading of the block that a line belongs to. A line with several numbers that is not indented ends a block.
    pub(super) fn heading_of(&mut self, text: &str, numbers: &[Labelled<'_>]) -> Option<&mut Heading> {
        if numbers.len() > 1 && !text.starts_with(char::is_whitespace) {
            self.heading = None;
        }
        self.heading.as_mut()
    }
}
