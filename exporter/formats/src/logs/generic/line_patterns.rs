//! Applies the line patterns of a mapping: they select the records, and their groups are fields.

use pulsetrain_mapping::{DICTIONARY, Field, FieldValue, trainer};
use pulsetrain_record::{Recorder, SkipReason};
use std::borrow::Cow;

use super::{record::Records, text::TextLines};
use crate::logs::lines::Line;

/// The fields of a line, and the rest of the line with further fields.
type LineFields<'a> = (Vec<Field<'a>>, &'a str);

/// The group of a pattern of lines that holds the record.
const RECORD: &str = "record";

/// The group of a pattern of lines after which a line repeats an earlier record.
const SKIP_NEXT: &str = "skip_next";

/// The reason of lines with values of training that no pattern matches.
const UNMATCHED: &str = "unmatched_line";

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
        let found = patterns
            .iter()
            .find_map(|pattern| Some((pattern, pattern.captures(text)?)));
        self.is_unmatched = found.is_none();
        let (pattern, captures) = found?;
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
                fields.push((Cow::Owned(name.to_owned()), FieldValue::parse(group)));
            }
        }
        // If groups name fields, the rest of the line has no further ones.
        let rest = if fields.is_empty() { text } else { "" };
        Some((fields, record.unwrap_or(rest)))
    }

    /// Counts the newest line if no pattern matches it and it has values of training under usual keys.
    pub(super) fn report_unmatched(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) {
        let has_digit = || line.text.bytes().any(|byte| byte.is_ascii_digit());
        if !std::mem::take(&mut self.is_unmatched) || !has_digit() {
            return;
        }
        let dictionary = self
            .dictionary
            .get_or_insert_with(|| Box::new(TextLines::new(trainer(DICTIONARY).mapping())));
        if dictionary.fields(line.text).is_some() {
            recorder.report(SkipReason::Ignored(UNMATCHED), line.position(), || {
                "no pattern of the trainer's lines matches this line with values of training; it is skipped"
                    .to_owned()
            });
        }
    }

    /// Looks up the keys of fields.
    pub(super) fn look_up(&mut self, fields: &[Field<'_>]) {
        self.keys.look_up(fields, &self.mapping);
    }
}
