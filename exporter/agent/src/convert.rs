//! `pulsetrain convert`: OTLP to a Perfetto trace, a Perfetto trace to OTLP, OTLP to its other encoding.
//!
//! `input` and `backends` convert every input to OTLP messages, `output` writes them (`trace` the files of a Perfetto
//! trace), `summary` reports the outcome, and `open` serves the trace to the Perfetto UI.

mod arguments;
mod backends;
mod open;
mod output;
mod progress;
mod summary;
pub(crate) mod trace;

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode};

use pulsetrain_pipeline::spill::MemoryBudget;
use pulsetrain_tail::RunOptions;
use pulsetrain_trace_inputs::{ClockAlignment, InputReport, ReadOptions, read_input};

pub(crate) use self::arguments::ConvertArguments;
pub(crate) use self::progress::ConvertProgress;
use self::{
    arguments::FEW_TRACES,
    backends::{FoundTraces, SpanSummary},
    open::TraceServer,
    output::Output,
};
use crate::{failure::Failure, input_guard, topology};

/// The note that each trace has its own row, because the traces are few.
const BY_TRACE: &str =
    "each trace has a row of its own, since they are few; --by process draws the rows of processes";

/// The note about a file that is given twice. Spans are deduplicated by their ids; points and log records have no ids.
const REPEATED: &str =
    "the file was already read: its points and log records are duplicated, and deltas are added twice";

/// Runs the command.
pub(crate) fn run(arguments: &ConvertArguments) -> Result<ExitCode, Failure> {
    let file = topology::open_metrics_path(&arguments.output.to_string_lossy());
    let file = file.as_deref().unwrap_or(&arguments.output);
    input_guard::refuse_input(file, arguments.inputs.iter().map(PathBuf::as_path))?;
    arguments.check_drawing(trace::is_name(file))?;
    let server = match arguments.open {
        true => Some(TraceServer::bind(arguments.open_port)?),
        false => None,
    };
    let config = arguments.perfetto()?;
    let room = MemoryBudget {
        bytes: config.memory_bytes,
        folder: config.temporary.clone(),
    };
    let mut output = Output::for_path(&arguments.output, config, arguments.split)?;
    if arguments.derive {
        output = output.deriving();
    }
    let found = backends::search(&arguments.backends, arguments.window.as_ref())?;
    let by_trace = draw_few_by_trace(arguments, found.as_ref(), &mut output);
    let progress = ConvertProgress::for_inputs(&arguments.inputs, arguments.json);
    let mut reports = read_inputs(arguments, found, &room, &progress, &mut output)?;
    progress.writing();
    let written = match output.is_empty() {
        true => output.abandon(reports.iter().any(|report| report.lost > 0)),
        false => output.finish(&arguments.inputs)?,
    };
    progress.finish();
    if let Some(report) = reports.first_mut()
        && (by_trace || written.is_by_trace)
    {
        report.notes.push(BY_TRACE.to_owned());
    }
    let code = summary::print(&reports, &arguments.output, &written, arguments.json)?;
    if let (Some(server), Some(file)) = (server, written.files.first()) {
        let mapped = written.mapped.as_ref();
        let focus = mapped.and_then(|mapped| mapped.first_error.or(mapped.longest_step));
        server.serve(file, focus, arguments.json)?;
    }
    Ok(code)
}

/// Reads the files and the stores into the output, with aligned clocks if requested.
fn read_inputs(
    arguments: &ConvertArguments,
    found: Option<FoundTraces>,
    room: &MemoryBudget,
    progress: &ConvertProgress,
    output: &mut Output,
) -> Result<Vec<InputReport>, Failure> {
    let run = RunOptions {
        start_unix_nanos: arguments.start_time,
        ..RunOptions::default()
    };
    let options = ReadOptions { run: &run, room };
    let mut reports = Vec::new();
    let mut seen = SpanSummary::default();
    let mut clocks = match arguments.align_clocks {
        true => Some(ClockAlignment::new(room)?),
        false => None,
    };
    let mut take = |signal, bytes: Vec<u8>| match &mut clocks {
        Some(clocks) => Ok(clocks.add(signal, &bytes)?),
        None => output.deliver(signal, bytes),
    };
    let mut deliver = |signal, bytes: Vec<u8>| {
        if arguments.backends.asks_for_metrics() {
            seen.record(signal, &bytes);
        }
        take(signal, bytes)
    };
    let mut known = BTreeSet::new();
    for path in &arguments.inputs {
        let mut report = read_input(path, options, |input| progress.watch(input), &mut deliver)?;
        if path.canonicalize().is_ok_and(|path| !known.insert(path)) {
            report.notes.push(REPEATED.to_owned());
        }
        reports.push(report);
    }
    let window = arguments.window.as_ref();
    reports.extend(backends::read_traces(
        &arguments.backends,
        window,
        found,
        &mut deliver,
    )?);
    reports.extend(backends::read_samples(
        &arguments.backends,
        window,
        &seen,
        &mut take,
    )?);
    if let Some(clocks) = clocks {
        let moved = clocks.align(&mut |signal, bytes| output.deliver(signal, bytes))?;
        if let Some(report) = reports.first_mut() {
            report.record_clocks(&moved);
        }
    }
    Ok(reports)
}

/// Draws each trace on its own row if the only inputs are few traces of stores. Returns `false` if the number of traces is
/// not known before they arrive.
fn draw_few_by_trace(arguments: &ConvertArguments, found: Option<&FoundTraces>, output: &mut Output) -> bool {
    if !arguments.draws_few_by_trace() {
        return false;
    }
    match backends::most_traces(&arguments.backends, found) {
        Some(traces) => (1..=FEW_TRACES).contains(&traces) && output.draw_by_trace(),
        None => {
            output.draw_few_by_trace(FEW_TRACES);
            false
        }
    }
}
