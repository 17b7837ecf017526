//! The disk queues of the OTLP sinks of a run: what cannot be sent until the end of `run` is sent by the next one.
//!
//! Each receiver has a folder in the state folder, and in it a numbered queue for each process that sends to it at the
//! same time. A process takes the first queue that no other process uses, those with batches first, and so continues with
//! the queue of an earlier run.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_pipeline::disk::{DiskQueue, DiskQueueConfig, DiskQueueError};

use crate::{
    agent::{open_disk_queue, queue_folder_name},
    config::{Config, DiskQueueSetting, SinkConfig},
    log::{self, Subject},
    topology,
};

/// The folder of the queues of all runs in the state folder.
const FOLDER: &str = "run-queue";

/// The limit on the processes of one machine that send to one receiver.
const MAX_QUEUES: usize = 4_096;

/// Opens the disk queue of each sink of a section, in the order of its sinks. A sink whose queue cannot be opened has one
/// in memory, which is reported.
pub(super) async fn open(name: &str, section: &SinkConfig, config: &Config) -> Vec<Option<DiskQueue>> {
    let SinkConfig::Otlp(otlp) = section else {
        return Vec::new();
    };
    let (DiskQueueSetting::On(settings), Ok(receivers)) = (&otlp.disk_queue, topology::otlp_config(otlp))
    else {
        return Vec::new();
    };
    let root = topology::state_folder::state_folder(config).map(|folder| folder.join(FOLDER));
    let Some(root) = settings.folder.as_ref().map(PathBuf::from).or(root) else {
        log::warn(Subject::Sink(name), topology::state_folder::missing());
        return Vec::new();
    };
    let mut queues = Vec::new();
    for receiver in receivers.by_receiver() {
        let folder = root.join(queue_folder_name(&format!("{name} {}", receiver.name())));
        let config = |folder| DiskQueueConfig {
            folder,
            ..settings.settings(PathBuf::new())
        };
        let opened = open_first(name, &folder, config).await;
        let report = |error| {
            log::warn(
                Subject::Sink(name),
                format_args!("continues without its disk queue: {error}"),
            );
        };
        queues.push(opened.map_err(report).ok());
    }
    queues
}

/// Opens the first queue of a folder that no other process uses.
async fn open_first(
    name: &str,
    folder: &Path,
    config: impl Fn(PathBuf) -> DiskQueueConfig,
) -> Result<DiskQueue, DiskQueueError> {
    let mut in_use = None;
    for queue in candidates(folder) {
        match open_disk_queue(name, config(queue)).await {
            Err(error @ DiskQueueError::InUse { .. }) => in_use = Some(error),
            opened => return opened,
        }
    }
    Err(in_use.unwrap_or(DiskQueueError::InUse {
        path: folder.to_owned(),
    }))
}

/// Returns the queues of a folder in the order in which they are tried: those with batches, and then all numbers.
fn candidates(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut filled: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|queue| has_segments(queue))
        .collect();
    filled.sort();
    let numbered = (0..MAX_QUEUES).map(|number| folder.join(number.to_string()));
    filled.into_iter().chain(numbered.collect::<Vec<_>>())
}

fn has_segments(queue: &Path) -> bool {
    let entries = fs::read_dir(queue).into_iter().flatten().flatten();
    let mut extensions = entries.map(|entry| entry.path().extension().map(ToOwned::to_owned));
    extensions.any(|extension| extension.is_some_and(|extension| extension == "segment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_with_batches_are_tried_first() {
        let folder = tempfile::tempdir().unwrap();
        for queue in ["0", "1", "2"] {
            fs::create_dir(folder.path().join(queue)).unwrap();
        }
        fs::write(folder.path().join("2/00000001.segment"), "").unwrap();
        let first = candidates(folder.path()).take(3);
        let first: Vec<_> = first.map(|queue| queue.file_name().unwrap().to_owned()).collect();
        assert_eq!(first, ["2", "0", "1"]);
    }
}
