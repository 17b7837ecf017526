//! Which files are to be followed: what paths, directories and patterns name at the moment.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{DirEntryExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use glob::{MatchOptions, glob_with};

use super::identity::{FileIdentity, Inode};
use crate::{TailError, event_files::event_files};

/// Hidden files are left alone, and `*` does not reach into folders.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The inputs of a follower.
#[derive(Debug)]
pub(super) struct Candidates(Vec<Input>);

#[derive(Debug, PartialEq, Eq)]
enum Input {
    /// A file or a folder, which may not be there yet. Of a folder the files in it are meant, and the event files below it.
    Path(PathBuf),
    /// A pattern, with the folder in which its first wildcard is looked for.
    Pattern { pattern: String, folder: PathBuf },
}

impl Candidates {
    /// Understands the inputs; a pattern that is none is an error and taken for a path.
    pub(super) fn new(inputs: &[PathBuf]) -> (Self, Vec<TailError>) {
        let mut errors = Vec::new();
        let inputs = inputs
            .iter()
            .map(|input| Input::new(input, &mut errors))
            .collect();
        (Self(inputs), errors)
    }

    /// The paths that were named by themselves: they are waited for.
    pub(super) fn named(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|input| match input {
            Input::Path(path) => Some(path.as_path()),
            Input::Pattern { .. } => None,
        })
    }

    /// The files that folders and patterns name now.
    pub(super) fn found(&self) -> Vec<PathBuf> {
        self.0.iter().flat_map(Input::files).collect()
    }

    /// The folders in which something may come.
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
                        .chain(event_files(path))
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

/// Opens a file to follow it. Only a regular file can be followed: a pipe is read to its end, and a device has none.
pub(super) fn open(path: &Path) -> io::Result<(File, Inode)> {
    // A pipe without a writer would hold up the opening.
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
            "it is no regular file, so it cannot be followed",
        ));
    }
    Ok((file, Inode::of(&metadata)))
}

/// A file in the folder of `path` that is the one of `identity`, under whatever name it has by now.
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
    fn patterns_and_folders_find_what_comes_later_but_nothing_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let (pattern, errors) = Candidates::new(&[folder.path().join("run*/training.json")]);
        let (whole, _) = Candidates::new(&[folder.path().join("run1")]);
        assert!(errors.is_empty());
        assert_eq!((names(&pattern), names(&whole)), (vec![], vec![]));
        fs::create_dir(folder.path().join("run1")).unwrap();
        for name in ["training.json", "other.log", ".hidden"] {
            fs::write(folder.path().join("run1").join(name), "").unwrap();
        }
        assert_eq!(names(&pattern), ["training.json"]);
        assert_eq!(names(&whole), ["other.log", "training.json"]);
        assert_eq!(pattern.folders().collect::<Vec<_>>(), [folder.path()]);
    }

    #[test]
    fn a_path_that_is_there_is_no_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run[1].json");
        fs::write(&path, "").unwrap();
        let (candidates, _) = Candidates::new(std::slice::from_ref(&path));
        assert_eq!(candidates.named().collect::<Vec<_>>(), [path]);
    }

    #[test]
    fn a_pattern_that_is_none_is_told() {
        let (_, errors) = Candidates::new(&["/nowhere/[".into()]);
        assert!(errors[0].to_string().contains("/nowhere/["), "{}", errors[0]);
    }
}
