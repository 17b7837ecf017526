//! `pulsetrain convert`: OTLP into a Perfetto trace, a Perfetto trace into OTLP, OTLP into its other form.
//!
//! `input` brings every input into OTLP messages, `output` writes them, `summary` tells what came of it.

mod arguments;
mod input;
mod output;
mod summary;

use std::{path::PathBuf, process::ExitCode};

pub(crate) use self::arguments::ConvertArguments;
use self::output::Output;
use crate::{failure::Failure, topology};

/// Runs the command.
pub(crate) fn run(arguments: &ConvertArguments) -> Result<ExitCode, Failure> {
    topology::refuse_input(&arguments.output, arguments.inputs.iter().map(PathBuf::as_path))?;
    let mut output = Output::of(&arguments.output, arguments.perfetto())?;
    let mut reports = Vec::new();
    for path in &arguments.inputs {
        let mut deliver = |signal, bytes| output.deliver(signal, bytes);
        reports.push(input::read(path, &mut deliver)?);
    }
    let written = output.finish()?;
    summary::print(&reports, &arguments.output, &written, arguments.json)
}
