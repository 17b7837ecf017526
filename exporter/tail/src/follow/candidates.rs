//! Resolves the configured paths, directories and patterns to files.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{DirEntryExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use glob::{MatchOptions, glob_with};

use super::identity::{FileIdentity, Inode};
use crate::{TailError, event_files::run_files};

/// Hidden files do not match, and `*` does not match a path separator.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The inputs of a follower: paths and patterns.
#[derive(Debug)]
pub(super) struct Candidates(Vec<Input>);

#[derive(Debug, PartialEq, Eq)]
enum Input {
    /// A file or a folder that may not exist yet. A folder names the files in it, and the event files and wandb runs below
    /// it.
    Path(PathBuf),
    /// A pattern, with the last folder before its first wildcard.
    Pattern { pattern: String, folder: PathBuf },
}

impl Candidates {
    /// Parses the inputs. An invalid pattern is an error, and its text is used as a path.
    pub(super) fn new(inputs: &[PathBuf]) -> (Self, Vec<TailError>) {
        let mut errors = Vec::new();
        let inputs = inputs
            .iter()
            .map(|input| Input::new(input, &mut errors))
            .collect();
        (Self(inputs), errors)
    }

    /// Returns the paths that are not patterns.
    pub(super) fn named(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|input| match input {
            Input::Path(path) => Some(path.as_path()),
            Input::Pattern { .. } => None,
        })
    }

    /// Returns the files that folders and patterns name now.
    pub(super) fn found(&self) -> Vec<PathBuf> {
        self.0.iter().flat_map(Input::files).collect()
    }

    /// Returns the folders in which new files may appear.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|input| match input {
            Input::Path(path) if path.is_dir() => Some(path.as_path()),
            Input::Path(path) => path.parent(),
            Input::Pattern { folder, .. } => Some(folder.as_path()),
        })
    }
}

impl Input {
    fn new(input: &Path, errors: &mut Vec<TailError>) -> Self {
        let path = std::path::absolute(input).unwrap_or_else(|_| input.to_owned());
        let has_wildcard = |part: &Path| part.to_string_lossy().contains(['*', '?', '[']);
        if path.exists() || !has_wildcard(&path) {
            return Self::Path(path);
        }
        let pattern = path.to_string_lossy().into_owned();
        if let Err(error) = glob::Pattern::new(&pattern) {
            errors.push(TailError::Pattern {
                pattern,
                place: error.pos,
                message: error.msg,
            });
            return Self::Path(path);
        }
        let folder = path
            .ancestors()
            .find(|part| !has_wildcard(part))
            .unwrap_or(Path::new("/"));
        Self::Pattern {
            folder: folder.to_owned(),
            pattern,
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let found: Vec<PathBuf> = match self {
            Self::Path(path) => path
                .read_dir()
                .map(|folder| {
                    folder
                        .flatten()
                        .map(|entry| entry.path())
                        .filter(|path| !is_hidden(path))
                        .chain(run_files(path, None))
                        .collect()
                })
                .unwrap_or_default(),
            Self::Pattern { pattern, .. } => glob_with(pattern, MATCHING)
                .map(|paths| paths.flatten().collect())
                .unwrap_or_default(),
        };
        found.into_iter().filter(|path| path.is_file()).collect()
    }
}

/// Returns the files that a path, a folder or a pattern of a follower names now.
pub fn followed_files(path: &Path) -> Vec<PathBuf> {
    let (candidates, _) = Candidates::new(&[path.to_owned()]);
    let named = candidates.named().filter(|path| path.is_file());
    let mut files: Vec<PathBuf> = named.map(Path::to_owned).collect();
    files.extend(candidates.found());
    files.sort();
    files
}

/// Opens a regular file. Pipes and devices cannot be followed.
pub(super) fn open(path: &Path) -> io::Result<(File, Inode)> {
    // Opening a pipe without a writer would block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "only regular files can be followed",
        ));
    }
    Ok((file, Inode::from_metadata(&metadata)))
}

/// Finds the file of `identity` in the folder of `path` under any name.
pub(super) fn find_renamed(path: &Path, identity: &FileIdentity) -> Option<(File, Inode)> {
    let siblings = path.parent()?.read_dir().ok()?;
    siblings
        .flatten()
        .filter(|entry| identity.inode.has_number(entry.ino()))
        .filter_map(|entry| open(&entry.path()).ok())
        .find(|(file, inode)| *inode == identity.inode && identity.has_content(file).unwrap_or(false))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(candidates: &Candidates) -> Vec<String> {
        let mut names: Vec<String> = candidates
            .found()
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn patterns_and_folders_find_new_files_but_not_hidden_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (pattern, errors) = Candidates::new(&[folder.path().join("run*/training.json")]);
        let (folder_itself, _) = Candidates::new(&[folder.path().join("run1")]);
        assert!(errors.is_empty());
        assert_eq!((names(&pattern), names(&folder_itself)), (vec![], vec![]));
        fs::create_dir(folder.path().join("run1")).unwrap();
        for name in ["training.json", "other.log", ".hidden"] {
            fs::write(folder.path().join("run1").join(name), "").unwrap();
        }
        assert_eq!(names(&pattern), ["training.json"]);
        assert_eq!(names(&folder_itself), ["other.log", "training.json"]);
        assert_eq!(pattern.folders().collect::<Vec<_>>(), [folder.path()]);
    }

    #[test]
    fn an_existing_path_is_not_a_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run[1].json");
        fs::write(&path, "").unwrap();
        let (candidates, _) = Candidates::new(std::slice::from_ref(&path));
        assert_eq!(candidates.named().collect::<Vec<_>>(), [path]);
    }

    #[test]
    fn an_invalid_pattern_is_reported() {
        let (_, errors) = Candidates::new(&["/nowhere/[".into()]);
        assert!(errors[0].to_string().contains("/nowhere/["), "{}", errors[0]);
    }
}
