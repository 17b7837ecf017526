//! Advice for a file that cannot be opened or written.

use std::io::{Error, ErrorKind};

use pulsetrain_pipeline::Problem;

use super::output::WrittenCounts;

/// Returns the advice for a file that cannot be opened.
pub(super) fn open(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "create the directory first",
        ErrorKind::PermissionDenied => "choose a place where you may write, or change the permissions",
        ErrorKind::IsADirectory => "name a file in it",
        ErrorKind::ReadOnlyFilesystem => "choose a place on a writable disk",
        _ => "choose another file",
    }
}

/// Returns the problem of a record that cannot be written after `written`.
pub(super) fn write(error: &Error, written: &WrittenCounts) -> Problem {
    let remedy = match error.kind() {
        ErrorKind::StorageFull => "make room on the disk or write to another one",
        ErrorKind::QuotaExceeded => "make room in the quota or write to another disk",
        ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f)",
        ErrorKind::BrokenPipe => "make the reader read to the end, or write to a file",
        _ => "write to another file",
    };
    let WrittenCounts { records, bytes } = written;
    Problem::new(format!(
        "{error}; {records} complete records ({bytes} bytes) are written"
    ))
    .with_remedy(remedy)
}
