//! Parses logs that no other format detects, by the dictionary in `mappings/generic.yaml` and without configuration.

use pulsetrain_mapping::{DICTIONARY, Field, FieldValue, Mapping, known_tail, trainer};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::{
    csv::Table,
    document::{Document, DocumentLine},
    doubles::Doubles,
    grid::{Grid, GridLine},
    json_lists::History,
    key_use::KeyUse,
    record_keys::MAX_KEYS,
    row_names::RowName,
    text::{TextLines, is_context, names_loss},
};
use crate::logs::lines::{Line, LineFormat, LineParser, each_message, identify_by};
use crate::logs::literal;
use crate::logs::{LogFormat, LogParser, ParserFactory};
use pulsetrain_record::{Recorder, SkipReason};

/// The row in the table of formats. Its `detect` is tried after those of all others.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "generic",
    brief: "any log with usual keys, without configuration",
    framework: "custom",
    continues_after_truncate: true,
    splits: false,
    detect: |head| agree(head).then_some(AGREEMENT),
    identify: |head| identify_by(dictionary_parser(), head),
    parser: ParserFactory::Fallback(dictionary_parser),
    coverage: || trainer(DICTIONARY).mapping().coverage(),
};

const AGREEMENT: &str = "lines with usual keys";

/// The most lists of objects in each other.
const MAX_NESTED: usize = literal::DEPTH;

/// The minimum number of records with the same keys.
const MIN_RECORDS: usize = 3;

/// The maximum number of lines for one record, between the first and the last record.
const MAX_LINES_A_RECORD: usize = 5;

fn dictionary_parser() -> Box<dyn LogParser> {
    parser(trainer(DICTIONARY).mapping())
}

/// Returns the parser with a mapping that extends the dictionary.
pub(super) fn parser(mapping: &Arc<Mapping>) -> Box<dyn LogParser> {
    let mapping = Arc::clone(mapping);
    Box::new(LineParser::of_ranks(move || GenericLines::new(&mapping)))
}

/// The reason of lines that begin a document of JSON and do not continue it.
const BROKEN: &str = "broken_json";

/// The reason of the values of a two-column table without a step, before the log repeats it.
const WITHOUT_STEP: &str = "table_without_step";

/// The reason of lines that come twice.
const REPEATED: &str = "repeated_line";

/// Reads tables, documents and printed text.
#[derive(Debug)]
pub(super) struct GenericLines {
    table: Table,
    grid: Grid,
    document: Document,
    doubles: Doubles,
    /// The first keys of two-column tables.
    repeated: HashSet<String>,
    /// Values that are no records.
    ignored: Vec<(&'static str, u64)>,
    /// Whether the newest line is part of a table or a document.
    is_part: bool,
    text: TextLines,
}

/// Receives the records of a line.
type Receiver<'r> = &'r mut dyn FnMut(&[Field<'_>], &mut TextLines);

impl Default for GenericLines {
    fn default() -> Self {
        Self::new(trainer(DICTIONARY).mapping())
    }
}

impl GenericLines {
    fn new(mapping: &Arc<Mapping>) -> Self {
        Self {
            table: Table::default(),
            grid: Grid::default(),
            document: Document::default(),
            doubles: Doubles::default(),
            repeated: HashSet::new(),
            ignored: Vec::new(),
            is_part: false,
            text: TextLines::new(mapping),
        }
    }

    /// Calls `receive` with each record of a line. Returns whether the line is of a table or a document, which can have many
    /// lines for a record.
    fn each_record(&mut self, text: &str, receive: Receiver<'_>) -> bool {
        let text = &*trainer(DICTIONARY).mapping().words().english(text);
        if text.is_empty() {
            return false;
        }
        match self.document.line(text) {
            DocumentLine::Part(objects) => {
                objects
                    .iter()
                    .for_each(|object| self.object(object, true, MAX_NESTED, receive));
                return true;
            }
            DocumentLine::Broken => self.ignored.push((BROKEN, 1)),
            DocumentLine::Text => {}
        }
        if let Some(pairs) = self.grid.unfinished(text) {
            self.pairs(pairs, receive);
        }
        match self.grid.line(text, is_heading) {
            GridLine::Layout => {
                self.table.take_header(text, has_result);
            }
            GridLine::Pairs(pairs) => self.pairs(pairs, receive),
            GridLine::Row(name, fields) => self.row(name, fields, receive),
            GridLine::Text(text) => {
                self.printed(text, receive);
                return false;
            }
        }
        true
    }

    /// Reads a row of a table without bars, or printed text.
    fn printed(&mut self, text: &str, receive: Receiver<'_>) {
        if let Some(fields) = self.table.class_row(text) {
            self.text.records.look_up(&fields);
            return receive(&fields, &mut self.text);
        }
        if self.table.take_header(text, has_result) {
            return;
        }
        if let Some(mut fields) = self.table.fields(text) {
            let lines = &mut self.text;
            lines.keys.rename_if_marked(&mut fields);
            lines.records.look_up(&fields);
            if let Some(header) = self.table.header() {
                lines.records.keep(&fields, |key| header.keeps(key));
            }
            return receive(&fields, lines);
        }
        if text.starts_with('{') && !self.text.has_objects() && text.contains('[') {
            return self.object(text, false, MAX_NESTED, receive);
        }
        if let Some(fields) = self.text.fields(text) {
            receive(&fields, &mut self.text);
        }
    }

    /// Reads an object: a history, a record, or one with a list of records. An object over several lines can be of settings, and
    /// is a record only with a step or an epoch.
    fn object(&mut self, text: &str, is_document: bool, most_nested: usize, receive: Receiver<'_>) {
        let mut fields = Vec::new();
        if literal::read(text, literal::DEPTH, &mut fields).is_some() {
            let is_number = |(_, value): &Field<'_>| matches!(value, FieldValue::Number(_));
            let scalars: Vec<String> = fields
                .iter()
                .filter(|field| is_number(field))
                .map(|(key, _)| key.to_string())
                .collect();
            let histories = match has_result(&scalars) {
                true => Vec::new(),
                false => History::parse(&fields),
            };
            let known: Vec<_> = histories
                .iter()
                .filter(|history| has_result(&history.names()))
                .collect();
            if !known.is_empty() {
                for history in known {
                    for record in history.records() {
                        self.text.records.look_up(&record);
                        receive(&record, &mut self.text);
                    }
                }
                return;
            }
            let mut has_list = false;
            for (_, value) in &fields {
                if most_nested > 0
                    && let FieldValue::Text(list) = value
                    && list.starts_with("[{")
                    && let DocumentLine::Part(objects) = Document::default().line(list)
                {
                    has_list = true;
                    objects
                        .iter()
                        .for_each(|object| self.object(object, true, most_nested - 1, receive));
                }
            }
            if has_list && is_document {
                return;
            }
        }
        let lines = &mut self.text;
        let Some(fields) = lines.fields(text) else { return };
        let is_placed =
            lines.records.keys.step().is_some() || fields.iter().any(|(key, _)| lines.keys.is_epoch(key));
        if is_placed || !is_document {
            receive(&fields, lines);
        } else {
            let numbers = fields
                .iter()
                .filter(|(_, value)| value.number().is_some())
                .count();
            lines.records.count_settings(numbers as u64);
        }
    }

    /// Reads a row of a table under a heading.
    fn row(&mut self, name: RowName<'_>, mut fields: Vec<Field<'static>>, receive: Receiver<'_>) {
        let lines = &mut self.text;
        let mut is_run = false;
        match name {
            RowName::Empty | RowName::Split(false) => {}
            RowName::Split(true) => lines.keys.rename_to_evaluation(&mut fields),
            RowName::Place(key, number) => {
                fields.insert(0, (key.to_owned().into(), FieldValue::Number(number)));
            }
            RowName::Run(run) => {
                is_run = true;
                for (key, _) in &mut fields {
                    *key = [run, " ", key].concat().into();
                }
            }
        }
        if !is_run && !fields.iter().any(|(key, _)| lines.keys.is_step(key)) {
            lines.add_place(&mut fields, &mut Vec::new());
            lines.end_of_record(false);
        }
        lines.records.look_up(&fields);
        lines.records.keep(&fields, |_| is_run);
        receive(&fields, lines);
    }

    /// Reads pairs of keys and values: a record if they or the heading above them have a step or an epoch, or if the table has
    /// sections or is repeated.
    fn pairs(&mut self, mut fields: Vec<Field<'static>>, receive: Receiver<'_>) {
        let Some(first) = fields.first().map(|(key, _)| key.to_string()) else {
            return;
        };
        let lines = &mut self.text;
        lines.keys.rename_if_marked(&mut fields);
        let mut is_place = |(key, _): &Field<'_>| lines.keys.is_step(key) || lines.keys.is_epoch(key);
        let mut is_record = self.grid.has_sections() || fields.len() > 1 && fields.iter().any(&mut is_place);
        if !fields.iter().any(|(key, _)| lines.keys.is_step(key)) {
            let own = fields.len();
            is_record |= lines.headings.is_in_block();
            lines.add_place(&mut fields, &mut vec![None; own]);
        }
        let is_new = self.repeated.len() < MAX_KEYS && self.repeated.insert(first);
        if !is_record && is_new {
            self.ignored.push((WITHOUT_STEP, fields.len() as u64));
            return;
        }
        lines.end_of_record(false);
        lines.records.look_up(&fields);
        receive(&fields, lines);
    }
}

/// Returns whether a table has a column of a known measurement, or of a loss.
fn has_result(keys: &[String]) -> bool {
    let mapping = trainer(DICTIONARY).mapping();
    let mut metrics = keys.iter().filter_map(|key| {
        let resolved = mapping
            .resolve(None, key)
            .or_else(|| mapping.resolve(None, &known_tail(key, mapping)?));
        resolved?.mapping.target.metric()
    });
    metrics.any(|metric| !is_context(metric))
        || keys
            .iter()
            .any(|key| !key.contains(['=', ':']) && names_loss(key))
}

/// Returns whether cells are the columns of a table: names, with a known measurement after the first one.
fn is_heading(columns: &[String]) -> bool {
    let is_name = |column: &String| {
        column.is_empty() || column.starts_with(|first: char| first.is_alphabetic() || first == '_')
    };
    columns.iter().all(is_name) && has_result(&columns[1..])
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
        let mut doubles = std::mem::take(&mut self.doubles);
        let mut is_record = false;
        self.is_part = self.each_record(line.text, &mut |fields, lines| {
            let has_step = lines.records.keys.step().is_some();
            match doubles.repeats(fields, has_step) {
                true => recorder.skip_values(SkipReason::Ignored(REPEATED), fields.len() as u64),
                false => lines.records.record(fields, line, recorder),
            }
            is_record = true;
        });
        self.doubles = doubles;
        for (reason, count) in self.ignored.drain(..) {
            recorder.skip_values(SkipReason::Ignored(reason), count);
        }
        is_record
    }

    fn report_left(&mut self, _line: &Line<'_>, recorder: &mut Recorder<'_>) {
        self.text.records.report_unused(recorder);
    }

    fn leaves_line(&self) -> bool {
        !self.is_part
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
        let before = records;
        let is_part = lines.each_record(text, &mut |fields, lines| {
            records += 1;
            record(fields, lines, &mut groups);
        });
        since_first += usize::from(before > 0 && !is_part && !text.trim().is_empty());
        if records > before {
            span = since_first;
        }
    });
    let is_agreed = |group: &Group| group.records >= MIN_RECORDS && group.moves.len() > 1 && group.is_series;
    records * MAX_LINES_A_RECORD >= span && groups.values().any(is_agreed)
}

/// Returns whether the head of a log has a record.
pub(super) fn has_records(head: &[u8]) -> bool {
    let mut lines = GenericLines::default();
    let mut found = false;
    each_message(head, |text| {
        if !found {
            lines.each_record(text, &mut |_, _| found = true);
        }
    });
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
        let is_in_block = lines.blocks.is_in_table() || lines.headings.is_in_block();
        group.is_series |= step.is_some() || fields.len() > 1 || is_in_block;
    }
}

#[cfg(test)]
mod tests;
