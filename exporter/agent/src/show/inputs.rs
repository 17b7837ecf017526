//! Finds the files that `show` reads: those on the command line, and the recognised files of folders.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use pulsetrain_backends::looks_like_response;
use pulsetrain_formats::{FormatError, LogFormat, detect, format_names};
use pulsetrain_otlp::frames::inflated;
use pulsetrain_tail::is_log_of;
use pulsetrain_trace_inputs::has_suffix;

use crate::failure::Failure;

/// Suffixes of files of OTLP messages and of Perfetto traces.
const RECORDED: [&str; 4] = [".binpb", ".pftrace", ".perfetto-trace", ".perfetto"];

/// The size of the head by which a file is recognised.
const HEAD: u64 = 64 << 10;

/// The maximum depth of the search in folders.
const DEPTH: usize = 6;

/// The limit on the files of all folders together.
const MAX_FILES: usize = 2_000;

/// The reader of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputKind {
    /// A log of a trainer.
    Log,
    /// OTLP, a Perfetto trace, or the answer of a trace store.
    Recorded,
}

/// A file to read.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) kind: InputKind,
}

/// The files to read.
#[derive(Debug, Default)]
pub(super) struct FoundInputs {
    pub(super) inputs: Vec<Input>,
    /// The folder in which the search stopped at [`MAX_FILES`] files, if any.
    pub(super) cut_off: Option<PathBuf>,
}

impl FoundInputs {
    /// Describes the files that were left out, with the remedy.
    pub(super) fn notice(&self) -> Option<String> {
        self.cut_off.as_ref().map(|folder| {
            format!(
                "{}: found more than {MAX_FILES} files and read only the first {MAX_FILES}; name folders with fewer files",
                folder.display()
            )
        })
    }
}

/// Returns the files to read; files of folders are sorted by name. With a format, other files than logs of this format are read only
/// if they are recorded.
///
/// # Errors
/// Returns an error if a path does not exist, a file has no known format, or a folder has no such files.
pub(super) fn find(paths: &[PathBuf], format: Option<&LogFormat>) -> Result<FoundInputs, Failure> {
    let mut found = FoundInputs::default();
    for path in paths {
        let metadata = fs::metadata(path).map_err(|error| {
            Failure::failed(format!("cannot open {}: {error}; check the path", path.display()))
        })?;
        if metadata.is_dir() {
            let before = found.inputs.len();
            of_folder(path, DEPTH, format, &mut found);
            if found.inputs.len() == before && found.cut_off.is_none() {
                return Err(Failure::failed(format!(
                    "{}: no readable file found in this folder or its subfolders: expected a log ({}), OTLP (.jsonl, .binpb) or a Perfetto trace; name \
                     another folder, or a file",
                    path.display(),
                    format_names()
                )));
            }
        } else {
            found.inputs.push(of_file(path, format)?);
        }
    }
    Ok(found)
}

fn of_file(path: &Path, format: Option<&LogFormat>) -> Result<Input, Failure> {
    let head =
        head_of(path).map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?;
    if head.is_empty() {
        return Err(Failure::failed(format!(
            "{}: the file is empty; name the log of a run",
            path.display()
        )));
    }
    match kind(path, &head, format) {
        Some(kind) => Ok(Input {
            path: path.to_owned(),
            kind,
        }),
        // The import reports what a log of the named format lacks.
        None if format.is_some() => Ok(Input {
            path: path.to_owned(),
            kind: InputKind::Log,
        }),
        None => Err(Failure::failed(unknown(path, &head))),
    }
}

/// Describes a file that no reader recognises: what was seen, and the next command.
fn unknown(path: &Path, head: &[u8]) -> String {
    let name = path.display().to_string();
    let seen = match detect(&name, head) {
        Err(FormatError::UnknownFormat { found, next, .. }) => format!("; {found}; {next}"),
        _ => String::new(),
    };
    format!(
        "{name}: unknown format: expected OTLP, a Perfetto trace or a log ({}){seen}",
        format_names()
    )
}

/// Adds the recognised files of a folder. Files that cannot be opened are skipped, because they were not requested by
/// name.
fn of_folder(folder: &Path, depth: usize, format: Option<&LogFormat>, found: &mut FoundInputs) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.into_iter().filter(|path| !is_hidden(path)) {
        if path.is_dir() && depth > 0 && !path.is_symlink() {
            of_folder(&path, depth - 1, format, found);
            if found.cut_off.is_some() {
                return;
            }
        } else if path.is_file()
            && let Ok(head) = head_of(&path)
            && let Some(kind) = kind(&path, &head, format)
        {
            if found.inputs.len() >= MAX_FILES {
                found.cut_off = Some(folder.to_owned());
                return;
            }
            found.inputs.push(Input { path, kind });
        }
    }
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

/// Returns the first bytes of a file, decompressed.
fn head_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    inflated(File::open(path)?).take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}

fn kind(path: &Path, head: &[u8], format: Option<&LogFormat>) -> Option<InputKind> {
    let is_log = match format {
        Some(format) => is_log_of(format, head),
        None => matches!(
            detect(&path.to_string_lossy(), head),
            Ok(_) | Err(FormatError::AmbiguousFormat { .. })
        ),
    };
    if is_otlp_json(head) || looks_like_response(head) {
        Some(InputKind::Recorded)
    } else if is_log {
        Some(InputKind::Log)
    } else {
        has_suffix(path, &RECORDED).then_some(InputKind::Recorded)
    }
}

/// Returns whether JSON begins like OTLP: with one of its three lists of resources.
fn is_otlp_json(head: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(&head[..head.len().min(512)]);
    let lists = [
        "resourceMetrics",
        "resourceSpans",
        "resourceLogs",
        "resource_metrics",
        "resource_spans",
        "resource_logs",
    ];
    begin.trim_start_matches('\u{feff}').trim_start().starts_with('{')
        && lists.iter().any(|list| begin.contains(&format!("\"{list}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_a_file_follows_from_its_content_then_its_name() {
        let of = |name: &str, head: &[u8]| kind(Path::new(name), head, None);
        assert_eq!(
            of("a.jsonl", b"{\"resourceMetrics\":[]}"),
            Some(InputKind::Recorded)
        );
        assert_eq!(
            of(
                "a.txt",
                b"[\n  {\"log\": \"cmd\", \"time\": \"2026-11-21 00:18:40\", \"step\": 0}\n]"
            ),
            Some(InputKind::Log)
        );
        assert_eq!(of("a.binpb.gz", b"\x05\x00\x00\x00"), Some(InputKind::Recorded));
        assert_eq!(of("notes.txt", b"buy milk\n"), None);
        let text = pulsetrain_formats::format_by_name("text");
        assert_eq!(
            kind(Path::new("notes.txt"), b"buy milk\n", text),
            Some(InputKind::Log)
        );
        assert_eq!(
            kind(Path::new("a.jsonl"), b"{\"resourceMetrics\":[]}", text),
            Some(InputKind::Recorded)
        );
    }

    #[test]
    fn more_files_than_the_limit_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let add = |number: usize| {
            let path = folder.path().join(format!("{number:05}.jsonl"));
            fs::write(path, "{\"resourceMetrics\":[]}").unwrap();
        };
        (0..MAX_FILES).for_each(add);
        let paths = [folder.path().to_owned()];
        let found = find(&paths, None).unwrap();
        assert_eq!((found.inputs.len(), found.notice()), (MAX_FILES, None));
        add(MAX_FILES);
        let found = find(&paths, None).unwrap();
        assert_eq!(found.inputs.len(), MAX_FILES);
        let notice = found.notice().unwrap();
        assert!(notice.contains("2000 files") && notice.contains(&folder.path().display().to_string()));
    }
}
