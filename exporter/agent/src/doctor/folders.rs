//! Checks the folders that the agent writes to: whether they are writable, and whether their disk has enough free space.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
};

use super::finding::{Findings, Subject};
use crate::{
    config::{Config, SinkConfig},
    topology,
};

/// The free space below which a warning is reported: the disk queue of one sink can have this size.
const LITTLE_SPACE: u64 = 1 << 30;

/// Checks the state folder and the folders of files that sinks write.
pub(super) fn check(config: Option<&Config>, findings: &mut Findings) {
    let Some(config) = config else { return };
    let files = config.sinks.iter().filter_map(|(_, sink)| match sink {
        SinkConfig::File(file) => Some(&file.path.value),
        SinkConfig::Perfetto(perfetto) => Some(&perfetto.path.value),
        SinkConfig::FlightRecorder(recorder) => Some(&recorder.path.value),
        SinkConfig::Prometheus(_) | SinkConfig::Otlp(_) | SinkConfig::Console(_) => None,
    });
    let absolute = files.filter_map(|file| std::path::absolute(file).ok());
    let mut folders: Vec<PathBuf> = absolute
        .filter_map(|file| Some(file.parent()?.to_owned()))
        .collect();
    folders.extend(topology::state_folder(config));
    folders.sort();
    folders.dedup();
    for folder in folders {
        check_folder(&folder, findings);
    }
}

fn check_folder(folder: &Path, findings: &mut Findings) {
    // A missing folder is created at the start.
    let existing = folder.ancestors().find(|path| path.exists()).unwrap_or(folder);
    let place = Subject::Folder(folder.to_owned());
    if let Err(error) = write(existing) {
        let advice = format!(
            "let this user write there (chown, chmod), or name another folder; it is {}",
            existing.display()
        );
        return findings.wrong(place, format!("no file can be written: {error}"), advice);
    }
    let Ok(disk) = rustix::fs::statvfs(existing) else {
        return;
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < LITTLE_SPACE {
        let what = format!("its disk has {} MiB left", free >> 20);
        findings.warn(place, what, "make room, or name a folder on another disk");
    } else {
        findings.fine(place, "it can be written");
    }
}

/// Writes a file and removes it.
fn write(folder: &Path) -> std::io::Result<()> {
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
