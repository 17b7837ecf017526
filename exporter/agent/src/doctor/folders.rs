//! Checks the files and folders that the agent writes to: whether they are writable, and whether their disk has enough free space.

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf, absolute},
};

use super::finding::{Findings, Subject};
use crate::{
    config::{Config, SinkConfig},
    topology::state_folder,
};

/// The free space below which a warning is reported: the disk queue of one sink can have this size.
const LITTLE_SPACE: u64 = 1 << 30;

/// The advice for a disk without space.
const MAKE_ROOM: &str = "make room, or name a folder on another disk";

/// Checks the state folder, and the files that sinks write with their folders.
pub(super) fn check(config: Option<&Config>, findings: &mut Findings) {
    let Some(config) = config else { return };
    let state = state_folder::state_folder(config);
    if state.is_none() {
        let missing = state_folder::missing();
        let fix = missing.remedy.unwrap_or_default();
        findings.wrong(Subject::Config("state_folder".to_owned()), missing.what, fix);
    }
    let state = state.and_then(|folder| absolute(folder).ok());
    let mut folders: Vec<PathBuf> = state.into_iter().collect();
    for (_, sink) in config.sinks.iter() {
        let path = match sink {
            SinkConfig::File(file) => &file.path.value,
            SinkConfig::Perfetto(perfetto) => &perfetto.path.value,
            SinkConfig::FlightRecorder(recorder) => &recorder.path.value,
            SinkConfig::Prometheus(_) | SinkConfig::Otlp(_) | SinkConfig::Console(_) => continue,
        };
        let Ok(path) = absolute(path) else { continue };
        // The other sinks create their folders, and a new file for each trace.
        let problem = matches!(sink, SinkConfig::File(_)).then(|| append(&path).err());
        match problem.flatten() {
            Some(error) => {
                let (advice, what) = (advice(&error, &path), format!("it cannot be written: {error}"));
                findings.unwritable(Subject::File(path.clone()), &path, what, error, advice);
            }
            None => folders.extend(path.parent().map(Path::to_owned)),
        }
    }
    folders.sort();
    folders.dedup();
    let mut full = HashSet::new();
    for folder in folders {
        check_folder(&folder, &mut full, findings);
    }
}

/// Checks a folder. A disk without enough space is one finding; `full` has those that are reported.
fn check_folder(folder: &Path, full: &mut HashSet<u64>, findings: &mut Findings) {
    // A missing folder is created at the start.
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
    let place = Subject::Folder(folder.to_owned());
    let disk = existing.metadata().map_or(0, |metadata| metadata.dev());
    if let Err(error) = write(existing) {
        let advice = advice(&error, existing);
        if advice != MAKE_ROOM || full.insert(disk) {
            let what = format!("no file can be written: {error}");
            findings.unwritable(place, folder, what, error, advice);
        }
        return;
    }
    let Ok(space) = rustix::fs::statvfs(existing) else {
        return;
    };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < LITTLE_SPACE {
        let what = format!("its disk has {} MiB left", free >> 20);
        if full.insert(disk) {
            findings.warn(place, what, MAKE_ROOM);
        }
    } else {
        findings.fine(place, "it can be written");
    }
}

fn advice(error: &io::Error, path: &Path) -> String {
    match error.kind() {
        ErrorKind::NotFound if !path.parent().is_some_and(Path::exists) => "create its folder".to_owned(),
        ErrorKind::IsADirectory => "name a file in this folder".to_owned(),
        ErrorKind::NotADirectory => "name another path: a part of this one is a file".to_owned(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => MAKE_ROOM.to_owned(),
        ErrorKind::ReadOnlyFilesystem => "mount the disk for writing, or name another one".to_owned(),
        _ => format!(
            "let this user write there (chown, chmod), or name another folder; it is {}",
            path.display()
        ),
    }
}

/// Opens a file of a sink for writing, unless it is missing and its folder exists. Does not change the file.
fn append(file: &Path) -> io::Result<()> {
    let is_special = |file: fs::Metadata| !file.is_file() && !file.is_dir();
    if file.metadata().is_ok_and(is_special) {
        // Opening a pipe would wait for its reader.
        return Ok(());
    }
    match OpenOptions::new().append(true).open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound && file.parent().is_some_and(Path::exists) => {
            Ok(())
        }
        opened => opened.map(drop),
    }
}

/// Writes a file and removes it.
fn write(folder: &Path) -> io::Result<()> {
    let file = folder.join(format!(".pulsetrain-doctor-{}", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file)
        .and_then(|mut opened| {
            use std::io::Write;
            opened.write_all(b"doctor")
        });
    // A file that was not created cannot be removed.
    let _ = fs::remove_file(&file);
    written
}
