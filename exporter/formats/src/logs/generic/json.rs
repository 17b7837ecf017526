//! Parses JSON lines and Python dictionaries.

use pulsetrain_mapping::Mapping;
use std::sync::Arc;

use super::key_use::KeyUse;
use super::record::Records;
use crate::logs::{
    lines::{Line, LineFormat},
    literal,
};
use pulsetrain_record::{Rank, Recorder, SkipReason};

/// Reads JSON lines.
#[derive(Debug)]
pub(super) struct JsonLines {
    records: Records,
}

impl JsonLines {
    pub(super) fn new(mapping: &Arc<Mapping>) -> Self {
        Self {
            records: Records::new(mapping),
        }
    }
}

impl LineFormat for JsonLines {
    fn is_complete(text: &str) -> bool {
        text.trim_end().ends_with('}')
    }

    fn is_record_start(text: &str) -> bool {
        text.contains('{')
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some((mut fields, body)) = self.records.match_line(line.text) else {
            self.records.report_unmatched(line, recorder);
            return false;
        };
        // Nearly every line begins with the object.
        let start = if body.starts_with('{') {
            Some(0)
        } else {
            body.find('{')
        };
        let Some(start) = start else {
            return false;
        };
        let Some(object) = literal::read(&body[start..], literal::DEPTH, &mut fields) else {
            recorder.report(SkipReason::MalformedRecord, line.position(), || {
                "the line is not a complete JSON object; it is skipped".to_owned()
            });
            return false;
        };
        recorder.skip_values(SkipReason::NotMeasured, object.nulls);
        self.records.name_role(&mut fields);
        self.records.look_up(&fields);
        self.records.record(&fields, line, recorder);
        true
    }

    fn rank(&mut self, text: &str) -> Option<Rank> {
        self.records.mapping.rank()?;
        let (mut fields, body) = self.records.match_line(text)?;
        literal::read(&body[body.find('{')?..], literal::DEPTH, &mut fields)?;
        self.records.rank(&fields)
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        self.records.key_uses()
    }
}
