//! The public view of the table of rows, as data and as Markdown.

use std::fmt::Write;

use pulsetrain_semconv::Metric;

use super::{
    row::{Read, Row},
    rows,
};
use crate::reading::Cadence;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableRow {
    /// The metric that it fills.
    pub metric: &'static Metric,
    /// Other metrics that the same answer fills.
    pub also: &'static [&'static Metric],
    /// The call, the field, the counter or the event of NVML.
    pub call: &'static str,
    /// The cadence of the query, as text.
    pub every: &'static str,
    /// The meaning of a missing answer.
    pub absent: &'static str,
}

/// Returns the rows that are read for every GPU.
pub fn table() -> Vec<TableRow> {
    rows::of_gpu().map(TableRow::from).collect()
}

impl From<&Row> for TableRow {
    fn from(row: &Row) -> Self {
        let every = match (&row.read, row.cadence) {
            (Read::Event, _) => "on each event",
            (_, Cadence::Tick) => "every interval",
            (_, Cadence::Infrequent) => "every 5 s",
            (_, Cadence::Once) => "once",
        };
        Self {
            metric: row.metric,
            also: row.also,
            call: row.call,
            every,
            absent: row.absent,
        }
    }
}

/// Returns the table as Markdown, with one line per metric and call.
pub fn markdown() -> String {
    let mut out = String::from("| metric | NVML | read | without a value |\n|---|---|---|---|\n");
    let mut last = None;
    for row in table() {
        let this = (row.metric.name, row.call, row.every, row.absent);
        if last.replace(this) == Some(this) {
            continue;
        }
        let (metric, call, every, absent) = this;
        let also: String = row
            .also
            .iter()
            .map(|metric| format!(", `{}`", metric.name))
            .collect();
        // Writing into a String cannot fail.
        let _ = writeln!(out, "| `{metric}`{also} | `{call}` | {every} | {absent} |");
    }
    out
}
