//! Finds the logs in a folder, for users who name the folder of a run and not its files.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use pulsetrain_formats::{FormatError, HEAD_BYTES, LogFormat, detect, without_byte_order_mark};
use pulsetrain_otlp::frames::inflated;

use crate::event_files::run_files;

/// Returns the recognised files in a folder, and the event files and wandb runs below it, sorted by name. With a format, returns its
/// files only, or all files if the format takes a mapping. Hidden files are ignored.
pub fn logs_in(folder: &Path, format: Option<&LogFormat>) -> Vec<PathBuf> {
    let files = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let logs = files.filter(|path| !is_hidden(path) && path.is_file() && is_log(path, format));
    let below = run_files(folder, format);
    logs.chain(below).collect::<BTreeSet<_>>().into_iter().collect()
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

/// Returns whether a file is a log. Unreadable files and files of several formats count, so that their import reports
/// them.
fn is_log(path: &Path, format: Option<&LogFormat>) -> bool {
    let Ok(head) = head_of(path) else { return true };
    match format {
        Some(format) => is_log_of(format, &head),
        None => matches!(
            detect("", &head),
            Ok(_) | Err(FormatError::AmbiguousFormat { .. })
        ),
    }
}

/// Returns whether a file with this head is read as a log of a format that the user named.
pub fn is_log_of(format: &LogFormat, head: &[u8]) -> bool {
    format.takes_mapping() || (format.detect)(without_byte_order_mark(head)).is_some()
}

fn head_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    inflated(File::open(path)?)
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)?;
    Ok(head)
}
