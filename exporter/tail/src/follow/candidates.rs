//! Resolves the configured paths, directories and patterns to files.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{DirEntryExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use pulsetrain_pipeline::clock;

use super::{
    identity::{FileIdentity, Inode},
    links::LinkPolicy,
    pattern_walk::{FoundFiles, PatternWalk, WalkBudget, has_wildcard},
};
use crate::{TailError, event_files::run_files};

/// The inputs of a follower: paths and patterns.
#[derive(Debug)]
pub(super) struct Candidates(Vec<Input>);

#[derive(Debug)]
enum Input {
    /// A file or a folder that may not exist yet. A folder names the files in it, and the event files and wandb runs below
    /// it.
    Path {
        path: PathBuf,
        follow_links: bool,
    },
    Pattern(Box<PatternWalk>),
}

/// Files to follow, with the policy for the links among them.
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) links: LinkPolicy,
}

impl Candidates {
    /// Parses the inputs. An invalid pattern is an error, and its text is used as a path.
    pub(super) fn new(inputs: &[PathBuf], follow_links: bool) -> (Self, Vec<TailError>) {
        let mut errors = Vec::new();
        let inputs = inputs
            .iter()
            .map(|input| Input::new(input, follow_links, &mut errors))
            .collect();
        (Self(inputs), errors)
    }

    /// Returns the paths that are not patterns.
    pub(super) fn named(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|input| match input {
            Input::Path { path, .. } => Some(path.as_path()),
            Input::Pattern(_) => None,
        })
    }

    /// Returns files that folders and patterns name now, and links that are not followed. Patterns continue where their budget
    /// ended.
    pub(super) fn find(&mut self, budget: WalkBudget) -> (Vec<Candidate>, Vec<TailError>) {
        let (mut files, mut refused) = (Vec::new(), Vec::new());
        for input in &mut self.0 {
            let (links, found) = input.find(budget);
            for (link, target) in found.refused {
                refused.push(TailError::link_outside(link, target));
            }
            let candidate = |path| Candidate {
                path,
                links: links.clone(),
            };
            files.extend(found.files.into_iter().map(candidate));
        }
        (files, refused)
    }

    /// Returns the folders in which new files may appear.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|input| match input {
            Input::Path { path, .. } if path.is_dir() => Some(path.as_path()),
            Input::Path { path, .. } => path.parent(),
            Input::Pattern(walk) => Some(walk.folder()),
        })
    }
}

impl Input {
    fn new(input: &Path, follow_links: bool, errors: &mut Vec<TailError>) -> Self {
        let path = std::path::absolute(input).unwrap_or_else(|_| input.to_owned());
        if path.exists() || !has_wildcard(&path) {
            return Self::Path { path, follow_links };
        }
        match PatternWalk::new(&path, follow_links) {
            Ok(walk) => Self::Pattern(Box::new(walk)),
            Err(error) => {
                errors.push(TailError::Pattern {
                    pattern: path.to_string_lossy().into_owned(),
                    place: error.pos,
                    message: error.msg,
                });
                Self::Path { path, follow_links }
            }
        }
    }

    fn find(&mut self, budget: WalkBudget) -> (LinkPolicy, FoundFiles) {
        match self {
            Self::Path { path, follow_links } => {
                let links = LinkPolicy::for_folder(path, *follow_links);
                let found = in_folder(path, &links);
                (links, found)
            }
            Self::Pattern(walk) => (walk.policy(), walk.step(budget)),
        }
    }
}

/// Returns the files in a folder, and the event files and wandb runs below it.
fn in_folder(folder: &Path, links: &LinkPolicy) -> FoundFiles {
    let mut found = FoundFiles::default();
    let Ok(entries) = folder.read_dir() else {
        return found;
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let shown = paths.filter(|path| !is_hidden(path));
    for path in shown.chain(run_files(folder, None)).filter(|path| path.is_file()) {
        match path.canonicalize() {
            Ok(real) if !links.allows(&real) => found.refused.push((path, real)),
            _ => found.files.push(path),
        }
    }
    found
}

/// Returns the files that a path, a folder or a pattern of a follower names now, as far as they are found in ten seconds, and the
/// links that are not followed.
pub fn followed_files(path: &Path, follow_links: bool) -> (Vec<PathBuf>, Vec<TailError>) {
    let (mut candidates, _) = Candidates::new(&[path.to_owned()], follow_links);
    let named = candidates.named().filter(|path| path.is_file());
    let mut files: Vec<PathBuf> = named.map(Path::to_owned).collect();
    let (found, refused) = candidates.find(WalkBudget {
        entries: usize::MAX,
        until: clock::later(clock::now(), Duration::from_secs(10)),
    });
    files.extend(found.into_iter().map(|found| found.path));
    files.sort();
    (files, refused)
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

    fn names(candidates: &mut Candidates) -> Vec<String> {
        let budget = WalkBudget {
            entries: 1_000,
            until: clock::later(clock::now(), Duration::from_secs(60)),
        };
        let (found, _) = candidates.find(budget);
        let mut names: Vec<String> = found
            .iter()
            .map(|found| found.path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn patterns_and_folders_find_new_files_but_not_hidden_ones() {
        let folder = tempfile::tempdir().unwrap();
        let (mut pattern, errors) = Candidates::new(&[folder.path().join("run*/training.json")], false);
        let (mut folder_itself, _) = Candidates::new(&[folder.path().join("run1")], false);
        assert!(errors.is_empty());
        assert_eq!((names(&mut pattern), names(&mut folder_itself)), (vec![], vec![]));
        fs::create_dir(folder.path().join("run1")).unwrap();
        for name in ["training.json", "other.log", ".hidden"] {
            fs::write(folder.path().join("run1").join(name), "").unwrap();
        }
        assert_eq!(names(&mut pattern), ["training.json"]);
        assert_eq!(names(&mut folder_itself), ["other.log", "training.json"]);
        assert_eq!(pattern.folders().collect::<Vec<_>>(), [folder.path()]);
    }

    #[test]
    fn an_existing_path_is_not_a_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run[1].json");
        fs::write(&path, "").unwrap();
        let (candidates, _) = Candidates::new(std::slice::from_ref(&path), false);
        assert_eq!(candidates.named().collect::<Vec<_>>(), [path]);
    }

    #[test]
    fn an_invalid_pattern_is_reported() {
        let (_, errors) = Candidates::new(&["/nowhere/[".into()], false);
        assert!(errors[0].to_string().contains("/nowhere/["), "{}", errors[0]);
    }
}
