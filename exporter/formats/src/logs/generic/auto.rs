//! Parses logs that no other format detects, by the dictionary in `mappings/generic.yaml` and without configuration.

use pulsetrain_mapping::{Field, trainer};
use std::collections::{BTreeSet, HashMap};

use super::{
    csv::{Header, Table},
    key_use::KeyUse,
    text::{TextLines, is_context},
};
use crate::logs::lines::{Line, LineFormat, LineParser, each_message, identify_by};
use crate::logs::{LogFormat, ParserFactory};
use pulsetrain_record::Recorder;

/// The mapping with the dictionary of usual keys.
pub(super) const DICTIONARY: &str = "generic";

/// The row in the table of formats. Its `detect` is tried after those of all others.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "generic",
    brief: "any log with usual keys, without configuration",
    framework: "custom",
    continues_after_truncate: true,
    splits: false,
    detect: |head| agree(head).then_some(AGREEMENT),
    identify: |head| identify_by(parser(), head),
    parser: ParserFactory::Fallback(parser),
    coverage: || trainer(DICTIONARY).mapping().coverage(),
};

const AGREEMENT: &str = "lines with usual keys";

/// The minimum number of records with the same keys.
const MIN_RECORDS: usize = 3;

/// The maximum number of lines for one record, between the first and the last record.
const MAX_LINES_A_RECORD: usize = 5;

fn parser() -> Box<dyn crate::logs::LogParser> {
    Box::new(LineParser::<GenericLines>::default())
}

/// Reads tables and printed text.
#[derive(Debug)]
pub(super) struct GenericLines {
    table: Table,
    text: TextLines,
}

impl Default for GenericLines {
    fn default() -> Self {
        Self {
            table: Table::default(),
            text: TextLines::new(trainer(DICTIONARY).mapping()),
        }
    }
}

impl GenericLines {
    /// Returns whether the log is a table.
    pub(super) fn is_table(&self) -> bool {
        self.table.header().is_some()
    }

    /// Returns the fields of a line that is a record.
    fn fields<'a>(&'a mut self, text: &'a str) -> Option<(Vec<Field<'a>>, &'a mut TextLines)> {
        if let Some(fields) = self.table.class_row(text) {
            self.text.records.look_up(&fields);
            return Some((fields, &mut self.text));
        }
        if self.table.take_header(text, has_result) {
            return None;
        }
        let Self {
            table, text: lines, ..
        } = self;
        if let Some(mut fields) = table.header().and_then(|header| header.fields(text)) {
            lines.keys.rename_if_marked(&mut fields);
            lines.records.look_up(&fields);
            return Some((fields, lines));
        }
        let fields = lines.fields(text)?;
        Some((fields, lines))
    }
}

/// Returns whether a table has a column of a known measurement.
fn has_result(header: &Header) -> bool {
    let mapping = trainer(DICTIONARY).mapping();
    let mut metrics = header
        .keys()
        .iter()
        .filter_map(|key| mapping.resolve(None, key)?.mapping.target.metric());
    metrics.any(|metric| !is_context(metric))
}

impl LineFormat for GenericLines {
    const IS_UNKNOWN: bool = true;

    fn is_complete(text: &str) -> bool {
        TextLines::is_complete(text)
    }

    fn is_record_start(text: &str) -> bool {
        TextLines::is_record_start(text)
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        if self.text.report_truncated(line, recorder) {
            return false;
        }
        let Some((fields, lines)) = self.fields(line.text) else {
            self.text.records.report_unused(recorder);
            return false;
        };
        lines.records.record(&fields, line, recorder);
        true
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        self.text.key_uses()
    }
}

/// The records of a head that have the same known result.
#[derive(Default)]
struct Group {
    records: usize,
    /// The steps with their values: those of a training change.
    moves: BTreeSet<[u64; 2]>,
    /// Whether a record has a step, or several numbers.
    is_series: bool,
}

/// Returns whether the head of a log has enough records with the same known result.
fn agree(head: &[u8]) -> bool {
    let mut lines = GenericLines::default();
    let mut groups: HashMap<String, Group> = HashMap::new();
    let (mut records, mut since_first, mut span) = (0, 0, 0);
    if memchr::memchr(0, head).is_some() {
        return false;
    }
    each_message(head, |text| {
        since_first += usize::from(records > 0 && !text.trim().is_empty());
        if let Some((fields, lines)) = lines.fields(text) {
            records += 1;
            span = since_first;
            record(&fields, lines, &mut groups);
        }
    });
    let is_agreed = |group: &Group| group.records >= MIN_RECORDS && group.moves.len() > 1 && group.is_series;
    records * MAX_LINES_A_RECORD >= span && groups.values().any(is_agreed)
}

/// Returns whether the head of a log has a record.
pub(super) fn has_records(head: &[u8]) -> bool {
    let mut lines = GenericLines::default();
    let mut found = false;
    each_message(head, |text| found = found || lines.fields(text).is_some());
    found
}

fn record(fields: &[Field<'_>], lines: &mut TextLines, groups: &mut HashMap<String, Group>) {
    let step = lines.records.keys.step();
    for result in lines.results(fields) {
        let group = groups.entry(fields[result].0.to_string()).or_default();
        let number = |field: usize| fields[field].1.number().unwrap_or_default().to_bits();
        group.records += 1;
        group
            .moves
            .insert([number(step.unwrap_or(result)), number(result)]);
        group.is_series |= step.is_some() || fields.len() > 1 || lines.blocks.is_in_table();
    }
}

#[cfg(test)]
mod tests;
