//! `pulsetrain convert`: OTLP into a Perfetto trace, a Perfetto trace into OTLP, OTLP into its other form.
//!
//! `input` brings every input into OTLP messages, `output` writes them, `summary` tells what came of it.

mod arguments;
mod input;
mod output;
mod summary;

use std::{path::Path, process::ExitCode};

pub(crate) use self::arguments::ConvertArguments;
use self::output::Output;
use crate::failure::Failure;

/// Runs the command.
pub(crate) fn run(arguments: &ConvertArguments) -> Result<ExitCode, Failure> {
    for input in &arguments.inputs {
        refuse_output(&arguments.output, input)?;
    }
    let mut output = Output::of(&arguments.output, arguments.perfetto())?;
    let mut reports = Vec::new();
    for path in &arguments.inputs {
        let mut deliver = |signal, bytes| output.deliver(signal, bytes);
        reports.push(input::read(path, &mut deliver)?);
    }
    let written = output.finish()?;
    summary::print(&reports, &arguments.output, &written, arguments.json)
}

/// An output that is an input would be emptied before it is read.
fn refuse_output(output: &Path, input: &Path) -> Result<(), Failure> {
    let same = output
        .canonicalize()
        .is_ok_and(|output| input.canonicalize().is_ok_and(|input| input == output));
    if same {
        return Err(Failure::usage(format!(
            "{} is both input and output; name another output",
            input.display()
        )));
    }
    Ok(())
}
