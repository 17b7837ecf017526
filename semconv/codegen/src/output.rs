//! The generated files: generating them, finding stale ones on the disk, and writing them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::docs;
use crate::error::Error;
use crate::registry::Registry;
use crate::rust;

/// The folders below `semconv/` that contain only generated files.
const OWN_FOLDERS: [&str; 2] = ["docs", "src/generated"];

/// A generated file.
#[derive(Debug, PartialEq)]
pub struct Output {
    /// The path, relative to `semconv/`.
    pub path: PathBuf,
    /// The content of the file.
    pub contents: String,
}

/// Generates every file from a registry that follows the rules.
///
/// # Errors
/// rustfmt cannot be started, or rejects the generated source.
pub fn generate(registry: &Registry) -> Result<Vec<Output>, Error> {
    let mut outputs = Vec::new();
    for (path, source) in rust::files(registry) {
        let path = PathBuf::from(path);
        let contents = rustfmt(&path, &source)?;
        outputs.push(Output { path, contents });
    }
    outputs.extend(docs::files(registry));
    Ok(outputs)
}

/// Returns the sorted paths below `semconv` of files that differ from the outputs, are missing, or are left over.
///
/// # Errors
/// A folder that cannot be read.
pub fn stale(semconv: &Path, outputs: &[Output]) -> Result<Vec<PathBuf>, Error> {
    let is_current = |output: &Output| {
        fs::read_to_string(semconv.join(&output.path)).is_ok_and(|contents| contents == output.contents)
    };
    let differing = outputs
        .iter()
        .filter(|output| !is_current(output))
        .map(|output| output.path.clone());
    let mut stale: Vec<PathBuf> = differing.chain(left_over(semconv, outputs)?).collect();
    stale.sort();
    Ok(stale)
}

/// Returns the message for a stale path below `semconv`, with the command that writes it.
pub fn out_of_date(path: &Path) -> String {
    format!(
        "semconv/{} is out of date; write it with `cargo run -p pulsetrain-codegen`",
        path.display()
    )
}

/// Writes every file below `semconv` and removes generated files that are no longer among the outputs.
///
/// # Errors
/// The first file that cannot be written or removed.
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
    for path in left_over(semconv, outputs)? {
        let path = semconv.join(path);
        fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
    }
    Ok(())
}

/// Returns the files in the folders of generated files that are not among the outputs.
fn left_over(semconv: &Path, outputs: &[Output]) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for folder in OWN_FOLDERS {
        let path = semconv.join(folder);
        let read = |source| Error::Read {
            path: path.clone(),
            source,
        };
        for entry in fs::read_dir(&path).map_err(read)? {
            let path = Path::new(folder).join(entry.map_err(read)?.file_name());
            if !outputs.iter().any(|output| output.path == path) {
                paths.push(path);
            }
        }
    }
    Ok(paths)
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
