//! The logs in a folder: what a user means who names the folder of a run and not its files.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use pulsetrain_formats::{FormatError, HEAD_BYTES, LogFormat, TENSORBOARD, recognise, without_mark};
use pulsetrain_otlp::frames::inflated;

use crate::event_files::event_files;

/// The files in a folder that are recognised, and the event files below it, in the order of their names. Where a format is
/// named, its files only; all files where any could be of it. Hidden files are left alone.
pub fn logs_in(folder: &Path, format: Option<&LogFormat>) -> Vec<PathBuf> {
    let files = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let logs = files.filter(|path| !is_hidden(path) && path.is_file() && is_log(path, format));
    let takes_events = format.is_none_or(|format| format.name == TENSORBOARD.name);
    let below = takes_events.then(|| event_files(folder)).into_iter().flatten();
    logs.chain(below).collect::<BTreeSet<_>>().into_iter().collect()
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

/// Whether a file is a log; one that cannot be read counts, and so does one that several formats recognise: it is told.
fn is_log(path: &Path, format: Option<&LogFormat>) -> bool {
    let Ok(head) = head_of(path) else { return true };
    match format {
        Some(format) => format.takes_mapping() || (format.recognise)(without_mark(&head)).is_some(),
        None => matches!(
            recognise("", &head),
            Ok(_) | Err(FormatError::AmbiguousFormat { .. })
        ),
    }
}

fn head_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    inflated(File::open(path)?)
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)?;
    Ok(head)
}
