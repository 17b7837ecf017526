//! The generated files: what they are, whether the ones on the disk are still the same, and writing them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::registry::Registry;
use crate::rust;

/// A generated file.
#[derive(Debug, PartialEq)]
pub struct Output {
    /// Where it goes, relative to `semconv/`.
    pub path: PathBuf,
    /// What it holds.
    pub contents: String,
}

/// Generates every file from a registry that keeps the rules.
///
/// # Errors
/// rustfmt is not there, or refuses what was generated.
pub fn generate(registry: &Registry) -> Result<Vec<Output>, Error> {
    let mut outputs = Vec::new();
    for (path, source) in rust::files(registry) {
        let path = PathBuf::from(path);
        let contents = rustfmt(&path, &source)?;
        outputs.push(Output { path, contents });
    }
    Ok(outputs)
}

/// Returns the paths, relative to `semconv`, of which the file on the disk is not what was generated.
pub fn stale(semconv: &Path, outputs: &[Output]) -> Vec<PathBuf> {
    let differs = |output: &&Output| {
        fs::read_to_string(semconv.join(&output.path)).ok().as_ref() != Some(&output.contents)
    };
    outputs
        .iter()
        .filter(differs)
        .map(|output| output.path.clone())
        .collect()
}

/// Writes every file below `semconv`.
///
/// # Errors
/// The first file that cannot be written.
pub fn write(semconv: &Path, outputs: &[Output]) -> Result<(), Error> {
    for output in outputs {
        let path = semconv.join(&output.path);
        let folder = path.parent().unwrap_or(semconv);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, &output.contents))
            .map_err(|source| Error::Write {
                path: path.clone(),
                source,
            })?;
    }
    Ok(())
}

/// Formats Rust as the workspace does, so that `cargo fmt` finds nothing to change.
fn rustfmt(path: &Path, source: &str) -> Result<String, Error> {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::StartFormatter)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(source.as_bytes())
            .map_err(Error::StartFormatter)?;
    }
    let output = child.wait_with_output().map_err(Error::StartFormatter)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Format {
            path: path.to_owned(),
            stderr,
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
