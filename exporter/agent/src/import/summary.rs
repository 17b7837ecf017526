//! The summary of an import: as text, or as one JSON object.

use std::{
    collections::BTreeMap,
    fmt::Display,
    io::{self, Write},
    process::ExitCode,
};

use pulsetrain_pipeline::{Dropped, SinkReport};
use pulsetrain_record::{Counts, ParseReport, Problem, SkipReason};
use pulsetrain_tail::ImportReport;
use serde_json::{Map, Value, json};

use crate::{
    failure::{Failure, INCOMPLETE},
    losses, terminal,
};

/// The reports of all sources and sinks.
pub(crate) struct Summary {
    inputs: Vec<ImportReport>,
    sinks: Vec<SinkReport>,
    counts: Counts,
    skipped: ParseReport,
    delivered: u64,
    dropped: BTreeMap<&'static str, u64>,
    /// Notices about several inputs together.
    notices: Vec<String>,
}

impl Summary {
    pub(crate) fn new(inputs: Vec<ImportReport>, sinks: Vec<SinkReport>) -> Self {
        let (mut counts, mut skipped) = (Counts::default(), ParseReport::default());
        for input in &inputs {
            counts.merge(input.counts);
            skipped.merge(input.skipped.clone());
        }
        let dropped = by_reason(sinks.iter().flat_map(|sink| &sink.counts.dropped));
        let delivered = sinks.iter().map(|sink| sink.counts.delivered).sum();
        Self {
            inputs,
            sinks,
            counts,
            skipped,
            delivered,
            dropped,
            notices: Vec::new(),
        }
    }

    /// Adds notices about several inputs together.
    pub(super) fn with_notices(self, notices: Vec<String>) -> Self {
        Self { notices, ..self }
    }

    /// Prints the summary to the standard error and returns the exit code.
    pub(super) fn print(&self, as_json: bool) -> Result<ExitCode, Failure> {
        let mut out = terminal::stderr();
        let printed = if as_json {
            out.write_all(terminal::json_line(&self.to_json()).as_bytes())
        } else {
            self.write_text(&mut out)
        };
        printed.map_err(|error| Failure::failed(format!("cannot print the summary: {error}")))?;
        Ok(if self.is_complete() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(INCOMPLETE)
        })
    }

    /// Returns whether everything was understood and delivered.
    pub(crate) fn is_complete(&self) -> bool {
        !self.skipped.has_losses()
            && self.sinks.iter().all(|sink| sink.counts.lost_items() == 0)
            && self.inputs.iter().all(|input| input.error.is_none())
            && self.sinks.iter().all(|sink| sink.finished.is_ok())
    }

    /// Writes the summary as text.
    pub(crate) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        for input in &self.inputs {
            write_input(input, out)?;
        }
        for notice in &self.notices {
            writeln!(out, "{notice}")?;
        }
        for message in self.sinks.iter().flat_map(sink_messages) {
            writeln!(out, "{message}")?;
        }
        let Counts {
            records,
            points,
            spans,
            events,
        } = self.counts;
        // Values of unknown names and of repeated steps are not skipped.
        let (recorded, skipped): (Vec<_>, Vec<_>) = self
            .skipped
            .counts()
            .partition(|(reason, _)| reason.is_recorded());
        let recorded: Vec<String> = recorded
            .iter()
            .map(|(reason, count)| match reason {
                SkipReason::UnknownName => format!("unknown names kept: {count}"),
                reason => format!("{}: {count}", reason.as_str().replace('_', " ")),
            })
            .collect();
        let kept = match recorded.is_empty() {
            true => String::new(),
            false => format!(" ({})", recorded.join(", ")),
        };
        let skipped = skipped.iter().map(|(reason, count)| (reason.as_str(), *count));
        writeln!(
            out,
            "{records} records: {points} points{kept}, {spans} spans, {events} events; skipped {}; delivered {}, dropped {}",
            tally(skipped),
            self.delivered,
            tally(self.dropped.iter().map(|(reason, count)| (*reason, *count))),
        )
    }

    /// Prints only the notices about the inputs.
    pub(crate) fn write_notices(&self, out: &mut impl Write) -> io::Result<()> {
        let mut inputs = self.inputs.iter();
        inputs.try_for_each(|input| write_lines(input, &input.notices, out))
    }

    fn to_json(&self) -> Value {
        let counts = |counts: &mut dyn Iterator<Item = (&'static str, u64)>| {
            counts
                .map(|(reason, count)| (reason.to_owned(), json!(count)))
                .collect::<Map<_, _>>()
        };
        json!({
            "records": self.counts.records,
            "points": self.counts.points,
            "spans": self.counts.spans,
            "events": self.counts.events,
            "skipped": counts(&mut self.skipped.counts().map(|(reason, count)| (reason.as_str(), count))),
            "delivered": self.delivered,
            "dropped": counts(&mut self.dropped.iter().map(|(reason, count)| (*reason, *count))),
            "notices": self.notices,
            "inputs": self.inputs.iter().map(input_json).collect::<Vec<_>>(),
            "targets": self.sinks.iter().map(sink_json).collect::<Vec<_>>(),
        })
    }
}

fn write_lines(input: &ImportReport, lines: &[impl Display], out: &mut impl Write) -> io::Result<()> {
    let mut lines = lines.iter();
    lines.try_for_each(|line| writeln!(out, "{}: {line}", input.input))
}

fn write_input(input: &ImportReport, out: &mut impl Write) -> io::Result<()> {
    if let Some((format, sign)) = input.format {
        let name = if input.run.name.is_empty() {
            String::new()
        } else {
            format!(" {:?}", input.run.name)
        };
        writeln!(
            out,
            "{}: {format} ({sign}), run{name} {}",
            input.input, input.run.id
        )?;
    }
    if let Some(timezone) = &input.timezone {
        writeln!(out, "{}: times without a zone read in {timezone}", input.input)?;
    }
    write_lines(input, &input.notices, out)?;
    write_lines(input, &input.keys, out)?;
    let is_listed = |problem: &&Problem| !input.keys.is_empty() && problem.reason == SkipReason::UnknownName;
    for problem in input
        .skipped
        .problems()
        .iter()
        .filter(|problem| !is_listed(problem))
    {
        let place = problem.position;
        let reason = problem.reason.as_str().replace('_', " ");
        writeln!(
            out,
            "{}:{}: {reason} at byte {}: {}",
            input.input, place.line, place.offset, problem.message
        )?;
    }
    input.error.iter().try_for_each(|error| writeln!(out, "{error}"))
}

/// Sums dropped items by reason.
fn by_reason<'a>(drops: impl IntoIterator<Item = &'a Dropped>) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    for drop in drops {
        *sums.entry(drop.reason.as_str()).or_default() += drop.items;
    }
    sums
}

/// Returns the messages of a target in addition to its counts.
fn sink_messages(sink: &SinkReport) -> Vec<String> {
    let counts = &sink.counts;
    let mut messages = losses::messages(counts);
    messages.extend(
        counts
            .warning_message
            .iter()
            .map(|warning| format!("{} warns: {warning}", counts.name)),
    );
    messages.extend(
        sink.finished
            .as_ref()
            .err()
            .map(|error| format!("{}: {error}", counts.name)),
    );
    messages
}

/// Formats counts as `3 (malformed_record 1, not_measured 2)`, or `0`.
fn tally<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> String {
    let counts: Vec<(&str, u64)> = counts.collect();
    let sum: u64 = counts.iter().map(|(_, count)| count).sum();
    if counts.is_empty() {
        return sum.to_string();
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    format!("{sum} ({})", parts.join(", "))
}

fn input_json(input: &ImportReport) -> Value {
    let problems = input.skipped.problems().iter().map(|problem| {
        json!({
            "reason": problem.reason.as_str(),
            "line": problem.position.line,
            "offset": problem.position.offset,
            "message": problem.message,
        })
    });
    let notices = input.notices.iter().map(ToString::to_string);
    json!({
        "input": input.input,
        "format": input.format.map(|(name, _)| name),
        "recognised_by": input.format.map(|(_, sign)| sign),
        "run_id": input.run.id,
        "run_name": input.run.name,
        "timezone": input.timezone.as_ref().map(|timezone| timezone.zone.name()),
        "records": input.counts.records,
        "notices": notices.chain(input.keys.iter().cloned()).collect::<Vec<_>>(),
        "problems": problems.collect::<Vec<_>>(),
        "error": input.error.as_ref().map(ToString::to_string),
    })
}

fn sink_json(sink: &SinkReport) -> Value {
    let counts = &sink.counts;
    json!({
        "target": counts.name,
        "accepted": counts.accepted,
        "delivered": counts.delivered,
        "dropped": by_reason(&counts.dropped),
        "retries": counts.retries,
        "messages": sink_messages(sink),
    })
}
