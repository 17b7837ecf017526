//! Reads the beginning of a log to suggest a mapping for it.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use pulsetrain_formats::suggest_mapping;
use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::CancellationToken;

use crate::{
    LogInput, TailError, catch_panic,
    import::chunks::{ChunkReader, CountingReader, Next},
};

/// The most bytes of a log that are read for a suggestion.
const MAX_BYTES: usize = 64 << 20;

/// Returns the mapping for the log at `path`, as YAML with comments. The comments at its end show what the mapping delivers.
///
/// # Errors
/// A log that cannot be read, or that is not text.
pub fn suggest_mapping_of(path: &Path) -> Result<String, TailError> {
    let input = LogInput::Path(path.to_owned());
    let reader = CountingReader {
        opened: input.open()?,
        bytes_read: Arc::new(AtomicU64::new(0)),
    };
    let known_time = input.last_change().or(Some(UnixNanos::UNKNOWN));
    let mut chunks = ChunkReader::new(input.name(), reader, known_time, CancellationToken::new());
    let mut log = Vec::new();
    while log.len() < MAX_BYTES {
        match chunks.next() {
            Next::Bytes(chunk) => log.extend(chunk),
            Next::Idle => {}
            Next::End => break,
        }
    }
    let is_cut = log.len() >= MAX_BYTES;
    if let Some(error) = chunks.error.take() {
        return Err(error);
    }
    if log.is_empty() {
        return Err(TailError::Empty { name: input.name() });
    }
    let name = input.name();
    let suggested = catch_panic(|| suggest_mapping(&name, &log, chunks.read_time()));
    let mut text = suggested.map_err(|panic| TailError::panicked(&name, &*panic))??;
    if is_cut {
        text += &format!(
            "# Only the first {} MiB of the log are considered.\n",
            MAX_BYTES >> 20
        );
    }
    Ok(text)
}
