//! `import --follow`: selects the inputs to follow and their start offsets, and reports their events.

use std::{
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use pulsetrain_pipeline::Source;
use pulsetrain_tail::{Checkpointer, LogInput, RunOptions, TailConfig, TailEvent, TailSource};

use super::{Reports, add, resource::on_this_machine};
use crate::{
    cli::ImportArguments,
    failure::Failure,
    log::{self, Subject},
    topology,
};

/// Opens the checkpoints in the state folder. Without a state folder they are in memory.
pub(super) fn checkpointer(arguments: &ImportArguments) -> Result<Checkpointer, Failure> {
    let Some(folder) = &arguments.state else {
        return Ok(Checkpointer::in_memory());
    };
    let checkpointer = Checkpointer::open(folder).map_err(Failure::failed)?;
    if let Some(notice) = checkpointer.notice() {
        log::warn(Subject::Program, notice);
    }
    Ok(checkpointer)
}

/// Splits the inputs into those that are followed, and those that can only be read to their end: the standard input,
/// pipes, terminals.
pub(super) fn divide(inputs: Vec<LogInput>, follow: bool) -> (Vec<PathBuf>, Vec<LogInput>) {
    let (mut followed, mut read) = (Vec::new(), Vec::new());
    for input in inputs {
        match input {
            LogInput::Path(path) if follow && !is_pipe(&path) => followed.push(path),
            input => read.push(input),
        }
    }
    (followed, read)
}

/// Returns the source of all followed inputs, or `None` if there are none.
pub(super) fn source(
    paths: Vec<PathBuf>,
    arguments: &ImportArguments,
    options: &RunOptions,
    checkpointer: &Checkpointer,
    reports: &Reports,
) -> Option<Box<dyn Source>> {
    if paths.is_empty() {
        return None;
    }
    let (service, resource) = on_this_machine((options.service.clone(), options.resource.clone()));
    let config = TailConfig {
        options: RunOptions {
            service,
            resource,
            ..options.clone()
        },
        // The user names the logs, and reads with his own rights.
        follow_links: true,
        poll_interval: arguments.poll_interval,
        ..TailConfig::new(paths)
    };
    let reports = Arc::clone(reports);
    let source = TailSource::new(config, checkpointer.clone(), move |event| match event {
        TailEvent::Ended(report) => add(&reports, *report),
        event => log::write(topology::level(&event), Subject::Program, event),
    });
    Some(Box::new(source))
}

fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_fifo() || kind.is_char_device() || kind.is_socket()
    })
}
