//! Writes a mapping for a log: `pulsetrain import --suggest-mapping`.
//!
//! The log is read by its format, and the lines that the format leaves are counted by their shapes (`shape_list`). The mapping extends
//! the format, so it reads what the format reads; its patterns read left lines. A second reading by the mapping shows what it delivers
//! (`delivered`).

use std::{fmt::Write, sync::Arc};

use pulsetrain_mapping::{DICTIONARY, Mapping, MappingFile, trainer};
use pulsetrain_record::{ParseReport, Recorder, Run, SkipReason};

use super::{
    CSV, GENERIC,
    delivered::Delivered,
    key_use::{KeyUse, quoted},
    likeness::describe_columns,
    pattern_rows::PatternRows,
    shape_list::LeftLineShapes,
};
use crate::{
    FormatError, HEAD_BYTES, LogFormat, LogReader, ReadLimits, ReadTime,
    logs::{detect, encoding},
};

/// The most shapes of left lines that are listed.
const MOST_LEFT: usize = 10;

/// The most letters of an example.
const MOST_LETTERS: usize = 100;

/// A mapping for a log, as YAML with comments.
struct Suggestion<'a> {
    input: &'a str,
    format: &'static LogFormat,
    /// The reason for the format.
    signature: String,
    uses: Vec<KeyUse>,
    patterns: PatternRows,
}

/// The result of a reading.
struct Reading {
    uses: Vec<KeyUse>,
    left: LeftLineShapes,
    delivered: Delivered,
    ranks: Vec<i64>,
    skipped: ParseReport,
}

impl Reading {
    /// Reads a log as `import` does.
    fn new(format: &'static LogFormat, mapping: &Arc<Mapping>, log: &[u8], time: ReadTime) -> Self {
        let (left, mut delivered) = (LeftLineShapes::default(), Delivered::default());
        let mut recorder = Recorder::new(Run::default(), |message| delivered.add(&message));
        let mut reader = LogReader::mapped(format, mapping, ReadLimits::default());
        reader.count_left_lines(mapping, &left);
        reader.set_time(time);
        reader.push(log, &mut recorder);
        reader.finish(&mut recorder);
        let ranks = recorder.recorded_ranks().to_vec();
        let (_, skipped) = recorder.finish();
        Self {
            uses: reader.key_uses(),
            left,
            delivered,
            ranks,
            skipped,
        }
    }
}

/// Returns the mapping for a log, as YAML with comments, and at its end what the mapping delivers. `time` is that of lines without
/// one.
///
/// # Errors
/// Fails if the log is not text that can be read.
pub fn suggest_mapping(name: &str, log: &[u8], time: ReadTime) -> Result<String, FormatError> {
    if let Some(error) = encoding::unreadable(name, log) {
        return Err(error);
    }
    let head = &log[..log.len().min(HEAD_BYTES)];
    let (format, signature) = format_of(name, head);
    let first = Reading::new(format, &Arc::default(), log, time);
    if first.delivered.is_empty() && format.is_fallback() && describe_columns(head).is_some() {
        let table = Reading::new(&CSV_FORMAT, &Arc::default(), log, time);
        let text = of_table(name, &table.uses);
        return Ok(text + &summary(&table));
    }
    let suggestion = Suggestion {
        input: name,
        format,
        signature,
        patterns: PatternRows::new(&first.left, &first.uses, &first.delivered),
        uses: first.uses,
    };
    // The first one is never worse than the format alone, as far as is known.
    let forms = [(true, true), (false, true), (false, false)];
    let mut texts = forms
        .map(|(has_rows, has_patterns)| suggestion.text(has_rows, has_patterns))
        .into_iter();
    let found = texts.find_map(|text| {
        let mapping = MappingFile::parse(&text).ok()?.build().ok()?;
        let second = Reading::new(format, &Arc::new(mapping), log, time);
        second
            .delivered
            .covers(&first.delivered)
            .then(|| text + &summary(&second))
    });
    Ok(found.unwrap_or_else(|| heading(name)))
}

/// Returns the format of a log, and the reason for it.
fn format_of(name: &str, head: &[u8]) -> (&'static LogFormat, String) {
    match detect(name, head) {
        Ok((format, signature)) => (format, signature.to_owned()),
        Err(FormatError::AmbiguousFormat { candidates, .. }) => {
            (&GENERIC_FORMAT, format!("it may also be one of {candidates}"))
        }
        Err(_) => (&GENERIC_FORMAT, "no format recognises this log".to_owned()),
    }
}

/// The format of logs that no other format recognises.
static GENERIC_FORMAT: LogFormat = GENERIC;

static CSV_FORMAT: LogFormat = CSV;

fn heading(input: &str) -> String {
    let input = one_line(input);
    format!(
        "# Mapping for {input}. Edit it, then: pulsetrain import --mapping THIS_FILE {input}\n\
         # `pulsetrain semconv list --kind metric` lists the metrics.\n"
    )
}

/// Returns the mapping for a table without usual names of columns.
fn of_table(input: &str, uses: &[KeyUse]) -> String {
    let mut text = heading(input);
    text.push_str("format: csv\n# Name the column of the step.\n# step: \nvalues:\n");
    for used in uses {
        let key = quoted(&used.key);
        writeln!(
            text,
            "  # - {{key: {key}, metric: }}  # {}; kept as train.custom",
            examples(used)
        )
        .unwrap_or_default();
    }
    text
}

impl Suggestion<'_> {
    /// Returns the mapping without the summary.
    fn text(&self, has_rows: bool, has_patterns: bool) -> String {
        let mut text = heading(self.input);
        let name = self.format.name;
        writeln!(text, "# {name} reads it: {}.\nextends: {name}", self.signature).unwrap_or_default();
        if has_patterns {
            self.patterns.write_patterns(name, &mut text);
        }
        self.write_places(&mut text);
        text.push_str("values:\n");
        let mut spellings = Vec::new();
        for used in &self.uses {
            let spelling = trainer(DICTIONARY).mapping().spelling(&used.key).into_owned();
            let is_first = !spellings.contains(&spelling);
            let row = row(used).filter(|_| is_first && has_rows && self.format.is_fallback());
            match row {
                Some(row) => {
                    writeln!(
                        text,
                        "  - {{key: {}, {row}}}  # {}",
                        quoted(&spelling),
                        examples(used)
                    )
                    .unwrap_or_default();
                    spellings.push(spelling);
                }
                None => self.write_comment(used, &mut text),
            }
        }
        if has_patterns {
            self.patterns.write_rows(&mut text);
        }
        text
    }

    /// Writes the keys of the step and of the time.
    fn write_places(&self, text: &mut String) {
        let mut steps: Vec<_> = self
            .uses
            .iter()
            .filter_map(|used| Some((used.step_rank?, used)))
            .collect();
        steps.sort_by_key(|(rank, _)| *rank);
        for (_, used) in steps {
            writeln!(text, "# step: {}  # {}", quoted(&used.key), examples(used)).unwrap_or_default();
        }
        for used in self.uses.iter().filter(|used| used.outcome.is_time) {
            writeln!(text, "# time: {}  # {}", quoted(&used.key), examples(used)).unwrap_or_default();
        }
    }

    /// Writes a key without a row of its own.
    fn write_comment(&self, used: &KeyUse, text: &mut String) {
        let outcome = match used.outcome {
            outcome if outcome.is_custom => "kept as train.custom".to_owned(),
            outcome if outcome.is_text => "a text, kept in an event".to_owned(),
            outcome if outcome.is_mapped => format!("read as {}", used.target),
            outcome if outcome.is_step || outcome.is_time => return,
            outcome if outcome.is_used => "not delivered; the place of other lines".to_owned(),
            _ => "not used".to_owned(),
        };
        let key = quoted(&used.key);
        writeln!(
            text,
            "  # - {{key: {key}, metric: }}  # {}; {outcome}",
            examples(used)
        )
        .unwrap_or_default();
    }
}

/// Returns the row of a key without the key itself, for a metric of the registry.
fn row(used: &KeyUse) -> Option<&str> {
    let row = used
        .row
        .as_deref()
        .filter(|_| used.outcome.is_mapped && !used.outcome.is_step)?;
    let (_, rest) = row.split_once(", metric: ")?;
    let start = row.len() - rest.len() - "metric: ".len();
    row[start..].strip_suffix('}')
}

/// Returns the number of values of a key with the first ones.
fn examples(used: &KeyUse) -> String {
    let shown: Vec<String> = used.examples.iter().map(|example| one_line(example)).collect();
    format!("{} x {}", used.count, shown.join(", "))
}

/// Describes what a reading delivers and leaves, as comments.
fn summary(reading: &Reading) -> String {
    let mut text = String::from("# Delivered by this mapping as it is:\n");
    reading.delivered.write(&mut text);
    if reading.ranks.len() > 1 {
        let ranks: Vec<String> = reading.ranks.iter().map(i64::to_string).collect();
        writeln!(text, "#   ranks {}", ranks.join(", ")).unwrap_or_default();
    }
    let skipped = reading.skipped.counts();
    for (reason, count) in skipped.filter(|(reason, _)| *reason != SkipReason::UnknownName) {
        writeln!(text, "#   counted, not delivered: {} {count}", reason.as_str()).unwrap_or_default();
    }
    let list = reading.left.list();
    if list.lines > 0 {
        writeln!(text, "# Lines left: {}, such as", list.lines).unwrap_or_default();
    }
    let shapes = list.by_frequency();
    for (_, shape) in shapes.iter().take(MOST_LEFT) {
        writeln!(text, "#   {} x {}", shape.lines, one_line(shape.line.trim())).unwrap_or_default();
    }
    if shapes.len() > MOST_LEFT || list.others > 0 {
        let shown: u64 = shapes.iter().take(MOST_LEFT).map(|(_, shape)| shape.lines).sum();
        writeln!(text, "#   {} lines of other shapes", list.lines - shown).unwrap_or_default();
    }
    text
}

/// Returns the beginning of a text without line breaks and control characters.
pub(super) fn one_line(text: &str) -> String {
    let line: String = text.chars().take(MOST_LETTERS).collect();
    line.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests;
