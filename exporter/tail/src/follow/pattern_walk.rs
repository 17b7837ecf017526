//! Finds the files that a pattern names, in trees that others write.
//!
//! Each folder is read once for each part of the pattern, however many links lead to it, so a loop of links ends. Real folders are
//! read before links, so a file gets its real path. A walk that exceeds its budget continues with the next call.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    fs::{self, DirEntry, FileType, ReadDir},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use glob::{MatchOptions, Pattern, PatternError};
use pulsetrain_pipeline::clock::{self, Instant};

use super::links::LinkPolicy;

/// Hidden files do not match.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The number of entries between two looks at the clock.
const CLOCK_ENTRIES: usize = 256;

/// A pattern, and the walk that looks for its files.
#[derive(Debug)]
pub(super) struct PatternWalk {
    /// The last folder before the first wildcard.
    folder: PathBuf,
    parts: Vec<Part>,
    follow_links: bool,
    walk: Option<Walk>,
}

/// The limits of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkBudget {
    /// The most entries of folders.
    pub(super) entries: usize,
    /// The time at which the call ends.
    pub(super) until: Instant,
}

/// The files and links that a call found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FoundFiles {
    /// Files in the order of their paths, followed by links to files in this order: runs that begin at once have one order.
    pub(super) files: Vec<PathBuf>,
    /// Links that lead out of the tree, with their targets.
    pub(super) refused: Vec<(PathBuf, PathBuf)>,
}

/// A part of a pattern between two separators.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Name(Pattern),
    /// A name without a wildcard. Its folder need not be readable, only searchable.
    Literal(OsString),
    /// `**`: any number of folders.
    Folders,
}

/// An entry of a folder.
#[derive(Debug)]
enum Entry {
    Listed(DirEntry),
    /// The path and the name of an entry that the pattern names, which may not exist.
    Named(PathBuf, OsString),
}

/// A walk in progress.
#[derive(Debug)]
struct Walk {
    policy: LinkPolicy,
    /// The folder that is being read.
    open: Option<(ReadDir, Vec<usize>)>,
    folders: Vec<(PathBuf, Vec<usize>)>,
    /// Links to folders, which are read after all real folders.
    links: Vec<(PathBuf, Vec<usize>)>,
    /// Links to files.
    linked_files: Vec<PathBuf>,
    /// Device and inode of the folders that were found, with the part that their entries are compared with.
    seen: HashSet<(u64, u64, usize)>,
}

impl PatternWalk {
    /// Parses an absolute pattern.
    ///
    /// # Errors
    /// Invalid syntax.
    pub(super) fn new(pattern: &Path, follow_links: bool) -> Result<Self, PatternError> {
        let text = pattern.to_string_lossy();
        Pattern::new(&text)?;
        let fixed = pattern.ancestors().find(|part| !has_wildcard(part));
        let folder = fixed.unwrap_or(Path::new("/")).to_owned();
        let rest = pattern.strip_prefix(&folder).unwrap_or(pattern);
        let parts = rest.iter().map(|part| match part.to_str() {
            Some("**") => Ok(Part::Folders),
            _ if !has_wildcard(Path::new(part)) => Ok(Part::Literal(part.to_owned())),
            _ => Pattern::new(&part.to_string_lossy()).map(Part::Name),
        });
        Ok(Self {
            parts: parts.collect::<Result<_, _>>()?,
            folder,
            follow_links,
            walk: None,
        })
    }

    /// Returns the last folder before the first wildcard.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the policy for the links below the folder.
    pub(super) fn policy(&self) -> LinkPolicy {
        LinkPolicy::for_folder(&self.folder, self.follow_links)
    }

    /// Walks until the budget is spent, or to the end; the next call continues, or begins again.
    pub(super) fn step(&mut self, budget: WalkBudget) -> FoundFiles {
        let mut found = FoundFiles::default();
        let mut walk = self.walk.take().unwrap_or_else(|| {
            let mut walk = Walk::new(self.policy());
            walk.enter(self.folder.clone(), false, 0, &self.parts);
            walk
        });
        let is_complete = walk.advance(budget, &self.parts, &mut found);
        found.files.sort();
        if is_complete {
            walk.linked_files.sort();
            found.files.append(&mut walk.linked_files);
        } else {
            self.walk = Some(walk);
        }
        found
    }

    /// Returns whether the last call reached the end.
    #[cfg(test)]
    pub(super) fn is_complete(&self) -> bool {
        self.walk.is_none()
    }
}

impl Walk {
    fn new(policy: LinkPolicy) -> Self {
        Self {
            policy,
            open: None,
            folders: Vec::new(),
            links: Vec::new(),
            linked_files: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Reads entries until the budget is spent. Returns whether the walk is complete.
    fn advance(&mut self, budget: WalkBudget, parts: &[Part], found: &mut FoundFiles) -> bool {
        for entries in 1..=budget.entries {
            let Some((entry, active)) = self.next_entry(parts) else {
                return true;
            };
            self.visit(&entry, &active, parts, found);
            if entries % CLOCK_ENTRIES == 0 && clock::now() >= budget.until {
                break;
            }
        }
        false
    }

    /// Adds a folder whose entries are compared with a part, unless it was found for this part.
    fn enter(&mut self, folder: PathBuf, is_link: bool, part: usize, parts: &[Part]) {
        let Ok(metadata) = fs::metadata(&folder) else {
            return;
        };
        let (mut active, mut last) = (vec![part], part);
        while parts.get(last) == Some(&Part::Folders) {
            last += 1;
            active.push(last);
        }
        active.retain(|part| self.seen.insert((metadata.dev(), metadata.ino(), *part)));
        if !active.is_empty() {
            let waiting = if is_link {
                &mut self.links
            } else {
                &mut self.folders
            };
            waiting.push((folder, active));
        }
    }

    /// Returns the next entry, and the parts that its name is compared with. A folder that cannot be read has no entries.
    fn next_entry(&mut self, parts: &[Part]) -> Option<(Entry, Vec<usize>)> {
        loop {
            if let Some((entries, active)) = &mut self.open {
                match entries.next() {
                    Some(Ok(entry)) => return Some((Entry::Listed(entry), active.clone())),
                    Some(Err(_)) | None => self.open = None,
                }
            }
            let (folder, active) = self.folders.pop().or_else(|| self.links.pop())?;
            if let [part] = active[..]
                && let Some(Part::Literal(name)) = parts.get(part)
            {
                return Some((Entry::Named(folder.join(name), name.clone()), active));
            }
            self.open = fs::read_dir(folder).ok().map(|entries| (entries, active));
        }
    }

    fn visit(&mut self, entry: &Entry, active: &[usize], parts: &[Part], found: &mut FoundFiles) {
        let name = entry.name();
        let matches: Vec<usize> = active
            .iter()
            .copied()
            .filter(|part| is_match(parts.get(*part), &name))
            .collect();
        let Some(kind) = entry.kind().ok().filter(|_| !matches.is_empty()) else {
            return;
        };
        let path = entry.path();
        let is_link = kind.is_symlink();
        if is_link {
            let Ok(real) = path.canonicalize() else { return };
            if !self.policy.allows(&real) {
                found.refused.push((path, real));
                return;
            }
        }
        let (is_folder, is_file) = match fs::metadata(&path) {
            Ok(metadata) if is_link => (metadata.is_dir(), metadata.is_file()),
            _ => (kind.is_dir(), kind.is_file()),
        };
        if is_file && matches.contains(&(parts.len() - 1)) {
            let files = if is_link {
                &mut self.linked_files
            } else {
                &mut found.files
            };
            files.push(path);
        } else if is_folder {
            for part in matches {
                let next = if parts.get(part) == Some(&Part::Folders) {
                    part
                } else {
                    part + 1
                };
                if next < parts.len() {
                    self.enter(path.clone(), is_link, next, parts);
                }
            }
        }
    }
}

impl Entry {
    fn path(&self) -> PathBuf {
        match self {
            Self::Listed(entry) => entry.path(),
            Self::Named(path, _) => path.clone(),
        }
    }

    fn name(&self) -> OsString {
        match self {
            Self::Listed(entry) => entry.file_name(),
            Self::Named(_, name) => name.clone(),
        }
    }

    /// Returns what the entry itself is: a link is not followed.
    fn kind(&self) -> io::Result<FileType> {
        match self {
            Self::Listed(entry) => entry.file_type(),
            Self::Named(path, _) => Ok(fs::symlink_metadata(path)?.file_type()),
        }
    }
}

/// Returns whether the name of an entry matches a part. `**` matches every name that is not hidden.
fn is_match(part: Option<&Part>, name: &OsStr) -> bool {
    match part {
        Some(Part::Name(pattern)) => pattern.matches_with(&name.to_string_lossy(), MATCHING),
        Some(Part::Literal(literal)) => literal == name,
        Some(Part::Folders) => !name.as_encoded_bytes().starts_with(b"."),
        None => false,
    }
}

pub(super) fn has_wildcard(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

#[cfg(test)]
mod tests;
