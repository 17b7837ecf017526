//! In which zone the local times of a followed log are.

use std::{
    fs::{File, Metadata},
    os::unix::fs::FileExt,
    time::{Duration, UNIX_EPOCH},
};

use pulsetrain_formats::{NEWEST_BYTES, infer_timezone};
use pulsetrain_pipeline::clock;

use super::Stream;
use crate::follow::outlet::Outlet;
use pulsetrain_record::UsedTimezone;

/// A file that was written to so lately is being written now.
const LIVE: Duration = Duration::from_secs(120);

impl Stream {
    /// The zone that the user names, or that the newest time of a log that is being written has, or that of the run before.
    pub(super) fn timezone_of(&self, file: &File, metadata: &Metadata, outlet: &Outlet) -> UsedTimezone {
        UsedTimezone::named(outlet.options().timezone.as_ref())
            .or_else(|| inferred(file, metadata))
            .or_else(|| self.previous_timezone.clone())
            .unwrap_or_default()
    }
}

/// Compares the newest time of a file with the clock of its file system when it was written. A file at rest gives none: what
/// last wrote it may have copied it.
fn inferred(file: &File, metadata: &Metadata) -> Option<UsedTimezone> {
    let written = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    if clock::unix_now().abs_diff(written) > LIVE {
        return None;
    }
    let start = metadata.len().saturating_sub(NEWEST_BYTES as u64);
    let mut end = vec![0; NEWEST_BYTES];
    let len = file.read_at(&mut end, start).ok()?;
    infer_timezone(&end[..len], u64::try_from(written.as_nanos()).ok()?)
}
