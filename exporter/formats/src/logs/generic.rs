//! Logs of no known system: JSON lines, lines of `key=value`, printed text and tables, by a [`Mapping`] of the user.
//!
//! `json`, `key_value`, `text` and `csv` parse lines into fields, `record` and `field` record the fields, whose roles
//! `field_role` decides. `record_keys` caches the row of each key, `key_path` finds the row of a path, and `clock` parses times.
//! `section` distinguishes training from evaluations, and `epoch_steps` converts counts within an epoch.
//!
//! Records over several lines: `heading` reads blocks below a line with a step, `grid` tables with bars, `columns` tables between
//! spaces, `document` and `json_lists` JSON over several lines and histories of lists, `class_table` evaluations of classes.
//! `row_names` keeps the runs in one table apart, `part` the tasks and layers of one run, and `doubles` drops lines that come twice.

mod arrays;
mod auto;
mod blocks;
mod class_table;
mod clock;
mod columns;
mod csv;
mod delivered;
mod document;
mod doubles;
mod durations;
mod epoch_steps;
mod evaluation_line;
mod field;
mod field_role;
mod grid;
mod heading;
mod json;
mod json_lists;
mod key_path;
mod key_use;
mod key_value;
mod label_keys;
mod labelled;
mod likeness;
mod line_patterns;
mod objects;
mod pairs;
mod part;
mod pattern_lines;
mod pattern_rows;
mod phrase;
mod printed_number;
mod record;
mod record_keys;
mod row_names;
mod section;
mod shape;
mod shape_list;
mod suggestion;
mod text;

use std::sync::Arc;

use pulsetrain_mapping::{CoverageRow, MappedFormat, Mapping};
use pulsetrain_semconv::{event, metric};

pub(super) use auto::FORMAT as GENERIC;
pub use key_use::{KeyUse, key_notices, suggestion_hint, unused_notice};
pub(super) use likeness::{FormatHint, format_hint};
pub use likeness::{found_keys, suggestion_command};
pub(super) use objects::object_prefix;
pub(super) use pattern_lines::{counted_lines, pattern_lines};
pub(super) use section::is_evaluation;
pub use shape_list::LeftLineShapes;
pub use suggestion::suggest_mapping;

use self::{csv::CsvLines, json::JsonLines, key_value::KeyValueLines, text::TextLines};
use super::lines::{LineFormat, LineParser, identify_by};
use super::{LogFormat, LogParser, ParserFactory};

/// JSON lines in the table of formats.
pub(super) const JSON: LogFormat = mapped(
    MappedFormat::Json,
    "JSON lines of any system, by a mapping",
    |mapping| parser(MappedFormat::Json, mapping),
    |head| identify_by(parser(MappedFormat::Json, &Arc::default()), head),
);

/// Lines of `key=value` in the table of formats.
pub(super) const KEY_VALUE: LogFormat = mapped(
    MappedFormat::KeyValue,
    "lines of key=value of any system, by a mapping",
    |mapping| parser(MappedFormat::KeyValue, mapping),
    |head| identify_by(parser(MappedFormat::KeyValue, &Arc::default()), head),
);

/// Printed text in the table of formats.
pub(super) const TEXT: LogFormat = mapped(
    MappedFormat::Text,
    "numbers with labels in printed lines of any system, by a mapping",
    |mapping| parser(MappedFormat::Text, mapping),
    |head| identify_by(parser(MappedFormat::Text, &Arc::default()), head),
);

/// Tables in the table of formats.
pub(super) const CSV: LogFormat = LogFormat {
    // A new file begins with a header.
    continues_after_truncate: false,
    ..mapped(
        MappedFormat::Csv,
        "tables with a header of any system, by a mapping",
        |mapping| parser(MappedFormat::Csv, mapping),
        |head| identify_by(parser(MappedFormat::Csv, &Arc::default()), head),
    )
};

const fn mapped(
    format: MappedFormat,
    brief: &'static str,
    parser: fn(&Arc<Mapping>) -> Box<dyn LogParser>,
    identify: fn(&[u8]) -> super::RunHeader,
) -> LogFormat {
    LogFormat {
        name: format.name(),
        brief,
        framework: "custom",
        continues_after_truncate: true,
        splits: false,
        detect: |_| None,
        identify,
        parser: ParserFactory::Mapped(parser),
        coverage,
    }
}

/// Returns the parser of the format that a mapping names, or of printed text if it names none.
pub(super) fn mapped_parser(mapping: &Arc<Mapping>) -> Box<dyn LogParser> {
    parser_of(
        mapping.format().unwrap_or(MappedFormat::Text),
        mapping,
        Prefixes::Stripped,
    )
}

/// Returns the parser of a format whose mapping the user extends.
pub(super) fn extended_parser(format: &LogFormat, mapping: &Arc<Mapping>) -> Box<dyn LogParser> {
    match format.is_fallback() {
        true => auto::parser(mapping),
        false => mapped_parser(mapping),
    }
}

/// Returns the parser for a mapping of the user. Its patterns may match the prefixes of launchers, unless it names the format.
fn parser(format: MappedFormat, mapping: &Arc<Mapping>) -> Box<dyn LogParser> {
    let prefixes = match mapping.named_format() {
        Some(_) => Prefixes::Stripped,
        None => Prefixes::Kept,
    };
    parser_of(format, mapping, prefixes)
}

/// Whether the prefixes of launchers are part of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefixes {
    Stripped,
    Kept,
}

fn parser_of(format: MappedFormat, mapping: &Arc<Mapping>, prefixes: Prefixes) -> Box<dyn LogParser> {
    match format {
        MappedFormat::Json => lines(mapping, JsonLines::new, prefixes),
        MappedFormat::KeyValue => lines(mapping, KeyValueLines::new, prefixes),
        MappedFormat::Text => lines(mapping, TextLines::new, prefixes),
        MappedFormat::Csv => lines(mapping, CsvLines::new, prefixes),
    }
}

fn lines<F: LineFormat + 'static>(
    mapping: &Arc<Mapping>,
    begin: fn(&Arc<Mapping>) -> F,
    prefixes: Prefixes,
) -> Box<dyn LogParser> {
    let has_rank = mapping.rank().is_some();
    let of_rank = {
        let mapping = Arc::clone(mapping);
        move || begin(&mapping)
    };
    Box::new(match prefixes {
        Prefixes::Kept if has_rank => LineParser::with_mapped_ranks(of_rank),
        Prefixes::Kept => LineParser::new(begin(mapping)),
        Prefixes::Stripped => LineParser::of_ranks(of_rank),
    })
}

fn coverage() -> Vec<CoverageRow> {
    vec![
        CoverageRow::step("the step's key", "record"),
        CoverageRow::rule(
            "keys of the mapping",
            "the metric of the mapping",
            "converted by the unit, the factor or the suffix of the value",
        ),
        CoverageRow::rule(
            "the name of a metric",
            "that metric",
            "as it is, or by its suffix",
        ),
        CoverageRow::rule("other numbers", metric::TRAIN_CUSTOM.name, "as it is"),
        CoverageRow::rule(
            "other text",
            event::TRAIN_CUSTOM_RECORD.name,
            "one event a record, its body the keys and texts",
        ),
    ]
}

#[cfg(test)]
mod tests;
