//! Output files: each opened where it ended with the positions of the sources, and synced before these are written.

use std::path::Path;

use pulsetrain_sinks::{FileConfig, FileJournal, FileSink, SinkError};
use pulsetrain_tail::{OutputStart, Positions};

use super::BuiltSink;
use crate::{
    config::FileSection,
    log::{self, Subject},
};

/// Makes the file sink of a section.
pub(super) fn build(
    name: &str,
    section: &FileSection,
    positions: &Positions,
) -> Result<BuiltSink, SinkError> {
    // Invalid settings were reported by the check, before anything was started.
    let config = section.settings().unwrap_or_default();
    let sink = open(
        Subject::Sink(name),
        Path::new(&section.path.value),
        positions,
        &config,
    )?;
    Ok(BuiltSink {
        file: Some(sink.control()),
        ..BuiltSink::alone(Box::new(sink))
    })
}

/// Opens a file to append to it from where it ended with `positions`: what is read again from there on is cut off it, and
/// nothing else. Positions are written after the file is on the disk.
pub(super) fn open(
    subject: Subject<'_>,
    path: &Path,
    positions: &Positions,
    config: &FileConfig,
) -> Result<FileSink, SinkError> {
    let name = FileSink::output_name(path);
    let journal = positions.output_journal(&name).map(|journal| {
        let (settled, behind, name) = (positions.clone(), positions.clone(), name.clone());
        FileJournal::new(journal, move || settled.settled())
            .telling(move |error| behind.note_behind(&name, error))
    });
    let sink = match (positions.output_start(&name), journal) {
        (OutputStart::Recover, Some(journal)) => FileSink::recover(path, &journal, config)?,
        (OutputStart::Recover, None) => FileSink::append(path, config)?,
        (OutputStart::GoOn, journal) => FileSink::go_on(path, journal.as_ref(), config)?,
    };
    positions.note_opened(&name);
    let control = sink.control();
    positions.sync_before_saving(&name, move || control.sync());
    if let Some(notice) = sink.notice() {
        log::warn(subject, notice);
    }
    Ok(sink)
}
