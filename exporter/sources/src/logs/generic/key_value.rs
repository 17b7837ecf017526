//! Lines of `key=value`.

use std::sync::Arc;

use super::{mapping::Mapping, pairs::PairReader, record::Records};
use crate::{
    emptied::emptied,
    logs::lines::{Line, LineFormat},
};
use pulsetrain_record::Recorder;

/// Reads lines of `key=value`.
#[derive(Debug)]
pub(super) struct KeyValueLines {
    pairs: PairReader,
    records: Records,
}

impl KeyValueLines {
    pub(super) fn of(mapping: &Arc<Mapping>) -> Self {
        Self {
            pairs: PairReader::default(),
            records: Records::of(mapping),
        }
    }
}

impl LineFormat for KeyValueLines {
    fn sign(_: &str) -> Option<&'static str> {
        None
    }

    fn is_begun(text: &str) -> bool {
        text.contains(['=', ':'])
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Self { pairs, records } = self;
        let Some((mut fields, body)) = records.lined(line.text) else {
            return false;
        };
        let alike = pairs.read(body, &records.mapping.pairs, &mut fields);
        records.look_up(&fields, alike);
        let is_record = records.keys.are_of_record();
        if is_record {
            records.record(&fields, line, recorder);
        }
        records.room = emptied(fields);
        is_record
    }
}
