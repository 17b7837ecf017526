//! Output files: truncated to the checkpoints of the sources on start, and synced before checkpoints are written.

use std::path::Path;

use pulsetrain_sinks::{FileConfig, FileJournal, FileSink, SinkError};
use pulsetrain_tail::{Checkpointer, OpenMode};

use super::BuiltSink;
use crate::{
    config::FileSection,
    log::{self, Subject},
};

/// Creates the file sink of a section.
pub(super) fn build(
    name: &str,
    section: &FileSection,
    checkpointer: &Checkpointer,
) -> Result<BuiltSink, SinkError> {
    // Invalid settings were reported by the check, before anything was started.
    let config = section.settings().unwrap_or_default();
    let sink = open(
        Subject::Sink(name),
        Path::new(&section.path.value),
        checkpointer,
        &config,
    )?;
    Ok(BuiltSink {
        file: Some(sink.control()),
        ..BuiltSink::alone(Box::new(sink))
    })
}

/// Opens a file for appending. On start, the data after the checkpoints is truncated, because it is read again. The file
/// is synced before checkpoints are written.
pub(super) fn open(
    subject: Subject<'_>,
    path: &Path,
    checkpointer: &Checkpointer,
    config: &FileConfig,
) -> Result<FileSink, SinkError> {
    let name = FileSink::output_name(path);
    let journal = checkpointer.output_journal(&name).map(|journal| {
        let (acked, journals, name) = (checkpointer.clone(), checkpointer.clone(), name.clone());
        FileJournal::new(journal, move || acked.first_unacked())
            .on_error(move |error| journals.report_journal_error(&name, error))
    });
    let sink = match (checkpointer.open_mode(&name), journal) {
        (OpenMode::Recover, Some(journal)) => FileSink::recover(path, &journal, config)?,
        (OpenMode::Recover, None) => FileSink::append(path, config)?,
        (OpenMode::Append, journal) => FileSink::resume(path, journal.as_ref(), config)?,
    };
    checkpointer.record_opened(&name);
    let control = sink.control();
    checkpointer.sync_before_saving(&name, move || control.sync());
    if let Some(notice) = sink.notice() {
        log::warn(subject, notice);
    }
    Ok(sink)
}
