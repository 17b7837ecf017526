//! Reads the beginning of a log to suggest a mapping for it.

use std::{fs::File, io::Read, path::Path};

use pulsetrain_formats::suggest_mapping;
use pulsetrain_otlp::frames::inflated;

use crate::TailError;

/// The most bytes of a log that are read for a suggestion.
const MAX_BYTES: u64 = 64 << 20;

/// Returns the mapping for the log at `path`, as YAML with comments.
///
/// # Errors
/// A log that cannot be read, or in which no number has a label.
pub fn suggest_mapping_of(path: &Path) -> Result<String, TailError> {
    let failed = |error| TailError::open(path, error);
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    inflated(file)
        .take(MAX_BYTES)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(suggest_mapping(&path.display().to_string(), &bytes)?)
}
