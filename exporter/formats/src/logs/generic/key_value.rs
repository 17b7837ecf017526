//! Lines of `key=value`.

use pulsetrain_mapping::Mapping;
use std::sync::Arc;

use super::key_use::KeyUse;
use super::pairs;
use super::record::Records;
use crate::logs::lines::{Line, LineFormat};
use pulsetrain_record::{Rank, Recorder};

/// Reads lines of `key=value`.
#[derive(Debug)]
pub(super) struct KeyValueLines {
    records: Records,
}

impl KeyValueLines {
    pub(super) fn new(mapping: &Arc<Mapping>) -> Self {
        Self {
            records: Records::new(mapping),
        }
    }
}

impl LineFormat for KeyValueLines {
    fn is_record_start(text: &str) -> bool {
        text.contains(['=', ':'])
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let records = &mut self.records;
        let Some((mut fields, body)) = records.match_line(line.text) else {
            records.report_unmatched(line, recorder);
            return false;
        };
        pairs::read(body, records.mapping.pairs(), &mut fields);
        records.name_role(&mut fields);
        records.look_up(&fields);
        let is_record = records.keys.are_of_record();
        if is_record {
            records.record(&fields, line, recorder);
        }
        is_record
    }

    fn rank(&mut self, text: &str) -> Option<Rank> {
        let records = &mut self.records;
        records.mapping.rank()?;
        let (mut fields, body) = records.match_line(text)?;
        pairs::read(body, records.mapping.pairs(), &mut fields);
        records.rank(&fields)
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        self.records.key_uses()
    }
}
