//! The paths of the recorded inputs.

use std::path::{Path, PathBuf};

/// Returns the path of a file in `tests/corpus`; panics if it does not exist.
pub fn corpus(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    assert!(path.exists(), "{} is not there", path.display());
    path
}
