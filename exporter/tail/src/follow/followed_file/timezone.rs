//! The time zone of a followed log's times without one.

use std::{
    fs::{File, Metadata},
    os::unix::fs::FileExt,
    time::{Duration, UNIX_EPOCH},
};

use pulsetrain_formats::{NEWEST_BYTES, infer_timezone};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::clock;
use pulsetrain_record::UsedTimezone;

use super::FollowedFile;
use crate::follow::context::TailContext;

/// A file with a write in this time is being written.
const LIVE: Duration = Duration::from_secs(120);

impl FollowedFile {
    /// Returns the user's zone, else the zone that fits the newest time of a log that is being written, else that of the
    /// previous run.
    pub(super) fn timezone_of(
        &self,
        file: &File,
        metadata: &Metadata,
        context: &TailContext,
    ) -> UsedTimezone {
        let previous = self.previous_timezone.clone().unwrap_or_default();
        UsedTimezone {
            last_local_unix_nanos: previous.last_local_unix_nanos,
            ..UsedTimezone::named(context.options().timezone.as_ref())
                .or_else(|| inferred(file, metadata))
                .unwrap_or(previous)
        }
    }
}

/// Infers the zone from the newest time in a file and its modification time. Returns `None` for a file at rest, because its last
/// write may be that of a copy.
fn inferred(file: &File, metadata: &Metadata) -> Option<UsedTimezone> {
    let written = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    if clock::unix_now().abs_diff(written) > LIVE {
        return None;
    }
    let start = metadata.len().saturating_sub(NEWEST_BYTES as u64);
    let mut end = vec![0; NEWEST_BYTES];
    let len = file.read_at(&mut end, start).ok()?;
    infer_timezone(&end[..len], UnixNanos::since_1970(written))
}
