//! The disk queues of the sinks: opened before the queue of a sink is started, and kept from one configuration to the
//! next.

use std::{
    collections::BTreeMap,
    fs, mem,
    path::{Path, PathBuf},
    time::Duration,
};

use pulsetrain_pipeline::{
    SinkRoute, clock,
    disk::{DiskQueue, DiskQueueConfig, DiskQueueError},
};

use super::parts::queues;
use crate::{
    config::{Config, DiskQueueSetting, SinkConfig},
    log::{self, Subject},
};

/// The folder of all disk queues in the state folder.
pub(super) const FOLDER: &str = "queue";

/// The time limit of a reload for the closing of an old queue in the same folder.
const CLOSING: Duration = Duration::from_secs(1);

/// The open disk queues.
#[derive(Default)]
pub(super) struct DiskQueues {
    /// The queues of the configuration, by the name of the queue of their sink.
    configured: BTreeMap<String, DiskQueue>,
    /// The queues of removed sinks, which are open until their sink is drained. A sink that is added with the same folder
    /// continues with the same queue.
    draining: Vec<DiskQueue>,
}

impl DiskQueues {
    /// Opens the disk queues of the configuration that are not open yet. `root` is their parent folder; without it, only
    /// a section that sets a folder has a disk queue. Returns the failures.
    pub(super) async fn open(
        &mut self,
        config: &Config,
        root: Option<&Path>,
    ) -> Vec<(String, DiskQueueError)> {
        let mut failed = Vec::new();
        let mut wanted = BTreeMap::new();
        for (name, sink) in config.sinks.iter() {
            wanted.extend(wanted_by(name, sink, root));
        }
        for (name, queue) in mem::take(&mut self.configured) {
            let folder = queue.config().folder;
            if !queue.is_closed() && wanted.get(&name).is_some_and(|config| config.folder == folder) {
                self.configured.insert(name, queue);
            } else {
                self.draining.push(queue);
            }
        }
        for (name, config) in wanted {
            if let Some(open) = self.configured.get(&name).cloned() {
                configure(&name, &open, &config);
                continue;
            }
            match self.continue_or_open(&name, config).await {
                Ok(queue) => {
                    self.configured.insert(name, queue);
                }
                Err(error) => failed.push((name, error)),
            }
        }
        self.draining.retain(|queue| !queue.is_closed());
        failed
    }

    /// Continues with the queue of a removed sink that is in the same folder, or opens the folder.
    async fn continue_or_open(
        &mut self,
        name: &str,
        config: DiskQueueConfig,
    ) -> Result<DiskQueue, DiskQueueError> {
        let is_same = |queue: &DiskQueue| queue.config().folder == config.folder;
        if let Some(at) = self.draining.iter().position(is_same) {
            let queue = self.draining.swap_remove(at);
            if queue.keep_open() {
                configure(name, &queue, &config);
                return Ok(queue);
            }
            if !queue.ended(clock::later(clock::now(), CLOSING)).await {
                return Err(DiskQueueError::Closing { path: config.folder });
            }
        }
        open_disk_queue(name, config).await
    }

    /// Returns the disk queue of a sink.
    pub(super) fn get(&self, queue: &str) -> Option<DiskQueue> {
        self.configured.get(queue).cloned()
    }

    /// Reports the queues in `root` that hold batches and belong to no sink.
    pub(super) fn report_orphans(&self, root: Option<&Path>) {
        let in_use = self.configured.values().map(|queue| queue.config().folder);
        let in_use: Vec<PathBuf> = in_use.collect();
        let entries = root
            .and_then(|root| fs::read_dir(root).ok())
            .into_iter()
            .flatten()
            .flatten();
        for path in entries
            .map(|entry| entry.path())
            .filter(|path| !in_use.contains(path))
        {
            let segments = fs::read_dir(&path).into_iter().flatten().flatten();
            let is_segment = |path: PathBuf| path.extension().is_some_and(|extension| extension == "segment");
            if segments.map(|entry| entry.path()).any(is_segment) {
                log::warn(
                    Subject::Program,
                    format_args!(
                        "{} holds batches of a sink that the configuration does not have: add the sink again to send them, or \
                         delete the folder",
                        path.display()
                    ),
                );
            }
        }
    }
}

/// Changes the settings of an open queue.
fn configure(name: &str, queue: &DiskQueue, config: &DiskQueueConfig) {
    if queue.config().max_bytes != config.max_bytes {
        log::warn(
            Subject::Sink(name),
            "restart the agent to change the bytes of its disk queue",
        );
    }
    queue.configure(config);
}

/// Opens a queue on a blocking thread, because the stored records are read once.
pub(crate) async fn open_disk_queue(
    name: &str,
    config: DiskQueueConfig,
) -> Result<DiskQueue, DiskQueueError> {
    let (folder, sink) = (config.folder.clone(), name.to_owned());
    let report = move |notice: &pulsetrain_pipeline::disk::Notice| log::warn(Subject::Sink(&sink), notice);
    let opened = tokio::task::spawn_blocking(move || DiskQueue::open(config, report)).await;
    opened.unwrap_or_else(|failed| {
        Err(DiskQueueError::Io {
            action: "open",
            path: folder,
            source: std::io::Error::other(failed),
        })
    })
}

/// Returns the disk queues of a section, by the names of its queues.
fn wanted_by(name: &str, sink: &SinkConfig, root: Option<&Path>) -> Vec<(String, DiskQueueConfig)> {
    let SinkConfig::Otlp(otlp) = sink else {
        return Vec::new();
    };
    let DiskQueueSetting::On(section) = &otlp.disk_queue else {
        return Vec::new();
    };
    let queues = queues(name, sink);
    let is_alone = queues.len() == 1;
    let config = |(queue, _): (String, SinkRoute)| {
        let folder = root.map(|root| root.join(queue_folder_name(&queue)));
        let mut config = match (&section.folder, folder) {
            (_, Some(folder)) => section.settings(folder),
            (Some(_), None) => section.settings(PathBuf::new()),
            (None, None) => return None,
        };
        if section.folder.is_some() && !is_alone {
            config.folder.push(queue_folder_name(&queue));
        }
        Some((queue, config))
    };
    queues.into_iter().filter_map(config).collect()
}

/// Encodes the name of a queue as the name of a folder, without collisions.
pub(crate) fn queue_folder_name(queue: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let escaped = queue.bytes().map(|byte| match byte {
        byte if is_plain(byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    let name: String = escaped.collect();
    match name.as_str() {
        "" | "." | ".." => format!("%{name}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disk_queue_has_a_distinct_folder_name() {
        assert_eq!(queue_folder_name("tempo-1_a.b"), "tempo-1_a.b");
        assert_eq!(
            queue_folder_name("o (http://h:1)"),
            "o%20%28http%3A%2F%2Fh%3A1%29"
        );
        assert_eq!(queue_folder_name(".."), "%..");
    }
}
