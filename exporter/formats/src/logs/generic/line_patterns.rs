//! Applies the line patterns of a mapping: they select the records, and their groups are fields.

use pulsetrain_mapping::{Field, FieldValue};
use std::borrow::Cow;

use super::record::Records;

/// The fields of a line, and the rest of the line with further fields.
type LineFields<'a> = (Vec<Field<'a>>, &'a str);

/// The group of a pattern of lines that holds the record.
const RECORD: &str = "record";

/// The group of a pattern of lines after which a line repeats an earlier record.
const SKIP_NEXT: &str = "skip_next";

impl Records {
    /// Returns the fields of the first matching pattern, or `None` for a line without a record.
    pub(super) fn match_line<'a>(&mut self, text: &'a str) -> Option<LineFields<'a>> {
        let patterns = self.mapping.lines();
        if patterns.is_empty() {
            return Some((Vec::with_capacity(16), text));
        }
        if std::mem::take(&mut self.skips_next) {
            return None;
        }
        let (pattern, captures) = patterns
            .iter()
            .find_map(|pattern| Some((pattern, pattern.captures(text)?)))?;
        if captures.name(SKIP_NEXT).is_some() {
            self.skips_next = true;
            return None;
        }
        let named = pattern.capture_names().flatten();
        let groups = named.filter_map(|name| Some((name, captures.name(name)?.as_str())));
        let mut fields = Vec::with_capacity(16);
        let mut record = None;
        for (name, group) in groups {
            if name == RECORD {
                record = Some(group);
            } else {
                fields.push((Cow::Owned(name.to_owned()), FieldValue::of(group)));
            }
        }
        // If groups name fields, the rest of the line has no further ones.
        let rest = if fields.is_empty() { text } else { "" };
        Some((fields, record.unwrap_or(rest)))
    }

    /// Looks up the keys of fields.
    pub(super) fn look_up(&mut self, fields: &[Field<'_>]) {
        self.keys.look_up(fields, &self.mapping);
    }
}
