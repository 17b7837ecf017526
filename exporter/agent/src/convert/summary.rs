//! The outcome of a conversion: as text lines, or as one JSON object.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use pulsetrain_otlp::Signal;
use pulsetrain_to_perfetto::PerfettoSummary;
use pulsetrain_trace_inputs::InputReport;
use serde_json::{Map, Value, json};

use super::output::WriteReport;
use crate::{
    failure::{Failure, INCOMPLETE},
    terminal,
};

/// Prints the summary to the standard error and returns the exit code.
pub(super) fn print(
    inputs: &[InputReport],
    output: &Path,
    written: &WriteReport,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let mut out = terminal::stderr();
    let printed = if as_json {
        out.write_all(terminal::json_line(&to_json(inputs, output, written)).as_bytes())
    } else {
        write_text(inputs, output, written, &mut out)
    };
    printed.map_err(|error| Failure::failed(format!("cannot print the summary: {error}")))?;
    let is_complete = inputs.iter().all(|input| input.lost == 0) && written.problems.is_empty();
    Ok(if is_complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INCOMPLETE)
    })
}

fn write_text(
    inputs: &[InputReport],
    output: &Path,
    written: &WriteReport,
    out: &mut impl Write,
) -> io::Result<()> {
    for input in inputs {
        for problem in &input.problems {
            writeln!(out, "{}: {problem}", input.name)?;
        }
        for note in &input.notes {
            writeln!(out, "{}: note: {note}", input.name)?;
        }
    }
    for problem in &written.problems {
        writeln!(out, "{}: {problem}", output.display())?;
    }
    for path in &written.over_size {
        writeln!(
            out,
            "{} exceeds --split: a single span has that many bytes; --attributes can drop some",
            path.display()
        )?;
    }
    for note in notes(written) {
        writeln!(out, "{}: note: {note}", output.display())?;
    }
    if written.files.is_empty() {
        return writeln!(
            out,
            "{} messages: {} is not written",
            written.messages,
            output.display()
        );
    }
    let counts = mapped(written).chain(items(written));
    let counts = counts.map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
    let counts: Vec<String> = counts.collect();
    let WriteReport { messages, bytes, .. } = written;
    let colon = if counts.is_empty() { "" } else { ": " };
    writeln!(
        out,
        "{messages} messages -> {} ({bytes} bytes){colon}{}{}",
        output.display(),
        counts.join(", "),
        time_range(written).map_or_else(String::new, |range| format!("; {range}")),
    )
}

/// The maximum number of rows and counters that viewers open without trouble: for 100,000, trace_processor needs 7 s and
/// 0.5 GB.
const MANY_ROWS: u64 = 10_000;

/// The limit on the pairs of processes with clock skew that the text lists.
const MAX_SKEWS: usize = 5;

/// Returns notes about an output for its user, such as too many rows or clock skew.
fn notes(written: &WriteReport) -> Vec<String> {
    let mut notes = Vec::new();
    if written.left_out > 0 {
        notes.push(format!(
            "{} spans and log records are left out: OpenMetrics has only metrics",
            written.left_out
        ));
    }
    let Some(mapped) = &written.mapped else {
        return notes;
    };
    let rows = mapped.lanes + mapped.counters;
    if rows > MANY_ROWS {
        notes.push(format!(
            "{rows} rows and counters make viewers slow; draw fewer with --window, --step, --rank or --downsample, or give \
             --memory more where one trace has many"
        ));
    }
    if !mapped.unknown_process_names.is_empty() {
        notes.push(format!(
            "no resource has an attribute that names processes ({}); processes have their usual names",
            mapped.unknown_process_names.join(", ")
        ));
    }
    if !mapped.unknown_rows.is_empty() {
        notes.push(format!(
            "no span has an attribute for rows ({})",
            mapped.unknown_rows.join(", ")
        ));
    }
    let between = mapped.backward_flows_between;
    if between > 0 {
        notes.push(format!(
            "{between} children begin before their parents, by up to {:?}: the clocks of their processes differ, and viewers draw \
             these arrows from the child to the parent",
            Duration::from_nanos(mapped.clock_skew_nanos)
        ));
    }
    let others = mapped.backward_flows - between;
    if others > 0 {
        notes.push(format!(
            "{others} children begin before their parents on the rows of one process, and viewers draw these arrows from the \
             child to the parent"
        ));
    }
    for skew in mapped.clock_skews.iter().take(MAX_SKEWS) {
        notes.push(format!(
            "the clock of {} is at least {:?} earlier than that of {} ({} children)",
            skew.children,
            Duration::from_nanos(skew.nanos),
            skew.parents,
            skew.count
        ));
    }
    notes
}

/// Returns the start time of a trace and its length.
fn time_range(written: &WriteReport) -> Option<String> {
    let (first, last) = written.mapped.as_ref()?.time_range?;
    let time = jiff::Timestamp::from_nanosecond(i128::from(first)).ok()?;
    Some(format!("{:?} from {time}", Duration::from_nanos(last - first)))
}

/// Returns the counts of a trace and of the repairs, without zeros.
fn mapped(written: &WriteReport) -> impl Iterator<Item = (&'static str, u64)> {
    let named = written.mapped.as_ref().map(PerfettoSummary::named);
    named.into_iter().flatten().filter(|(_, count)| *count > 0)
}

/// Returns the number of spans, points and log records in an OTLP output.
fn items(written: &WriteReport) -> impl Iterator<Item = (&'static str, u64)> {
    written.items.iter().map(|(signal, count)| {
        let name = match signal {
            Signal::Traces => "spans",
            Signal::Metrics => "points",
            Signal::Logs => "logs",
        };
        (name, *count)
    })
}

fn to_json(inputs: &[InputReport], output: &Path, written: &WriteReport) -> Value {
    let input = |input: &InputReport| {
        json!({
            "input": input.name,
            "form": input.form,
            "messages": input.messages,
            "lost": input.lost,
            "spilled_bytes": input.spilled_bytes,
            "problems": input.problems,
            "notes": input.notes,
        })
    };
    let named = written.mapped.as_ref().map(PerfettoSummary::named);
    let skews = written.mapped.iter().flat_map(|mapped| &mapped.clock_skews);
    let skews = skews.map(|skew| {
        json!({"parents": skew.parents, "children": skew.children, "count": skew.count, "nanos": skew.nanos})
    });
    let named = named.into_iter().flatten();
    let names = |paths: &[PathBuf]| {
        let names = paths.iter().map(|path| path.display().to_string());
        names.collect::<Vec<_>>()
    };
    json!({
        "inputs": inputs.iter().map(input).collect::<Vec<_>>(),
        "output": output.display().to_string(),
        "files": names(&written.files),
        "over_size": names(&written.over_size),
        "messages": written.messages,
        "bytes": written.bytes,
        "items": items(written).map(|(name, count)| (name.to_owned(), json!(count))).collect::<Map<_, _>>(),
        "problems": written.problems,
        "notes": notes(written),
        "clock_skews": skews.collect::<Vec<_>>(),
        "time_range": written.mapped.as_ref().and_then(|mapped| mapped.time_range),
        "mapped": named.map(|(name, count)| (name.to_owned(), json!(count))).collect::<Map<_, _>>(),
    })
}
