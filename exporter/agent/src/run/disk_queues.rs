//! The disk queues of the OTLP sinks of a run: what cannot be sent until the end of `run` is sent by the next one.
//!
//! Each receiver has a folder in the state folder, and in it a numbered queue for each process that sends to it at the
//! same time. A process takes the first queue that no other process uses, those with batches first, and so continues with
//! the queue of an earlier run. The batches in the other unused queues are its [`leftovers`].

mod leftovers;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use pulsetrain_otlp::Signals;
use pulsetrain_pipeline::{
    disk::{DiskQueue, DiskQueueConfig, DiskQueueError},
    private_files,
};
use pulsetrain_sinks::OtlpConfig;

pub(super) use self::leftovers::{Leftovers, LeftoversTask};
use crate::{
    agent::{open_disk_queue, queue_folder_name},
    config::{Config, DiskQueueSection, DiskQueueSetting, SinkConfig, Size},
    log::{self, Subject},
    topology,
};

/// The folder of the queues of all runs in the state folder.
const FOLDER: &str = "run-queue";

/// The limit on the processes of one machine that send to one receiver.
const MAX_QUEUES: usize = 4_096;

/// The maximum size of the queue of a target, for which no configuration sets one.
const TARGET_BYTES: usize = 256 << 20;

/// The time limit for the opening of a queue. A file system that hangs must not delay the parsing of the output.
const OPENING: Duration = Duration::from_secs(5);

/// The bytes that must fit on the disk of a queue when it is opened.
const PROBE_BYTES: usize = 64 << 10;

/// The queues of one receiver: their folder, and the settings of each.
#[derive(Clone, Debug)]
pub(super) struct ReceiverQueues {
    /// The name of the sink in messages.
    sink: String,
    folder: PathBuf,
    settings: DiskQueueConfig,
}

/// Returns the queues of each sink of a section, in the order of its sinks.
pub(super) fn for_section(name: &str, section: &SinkConfig, config: &Config) -> Vec<ReceiverQueues> {
    let SinkConfig::Otlp(otlp) = section else {
        return Vec::new();
    };
    let (DiskQueueSetting::On(settings), Ok(receivers)) = (&otlp.disk_queue, topology::otlp_config(otlp))
    else {
        return Vec::new();
    };
    let Some(root) = root(name, settings, config) else {
        return Vec::new();
    };
    let receivers = receivers.by_receiver();
    let queue = |receiver: &OtlpConfig| format!("{name} {}", receiver.name());
    let queues = receivers
        .iter()
        .map(|receiver| ReceiverQueues::new(name, &root, &queue(receiver), settings));
    queues.collect()
}

/// Returns the queues of the sink of a target, or of the environment.
pub(super) fn for_target(receiver: &OtlpConfig, config: &Config) -> Option<ReceiverQueues> {
    let settings = DiskQueueSection {
        bytes: Size(TARGET_BYTES),
        ..DiskQueueSection::default()
    };
    let name = receiver.name();
    let root = root(&name, &settings, config)?;
    Some(ReceiverQueues::new(&name, &root, &address(receiver), &settings))
}

/// Returns the folder of all queues, or `None` without a state folder, which is reported.
fn root(name: &str, settings: &DiskQueueSection, config: &Config) -> Option<PathBuf> {
    let in_state = || topology::state_folder::state_folder(config).map(|folder| folder.join(FOLDER));
    let root = settings.folder.as_ref().map(PathBuf::from).or_else(in_state);
    if root.is_none() {
        log::warn(Subject::Sink(name), topology::state_folder::missing());
    }
    root
}

/// Returns the addresses of a receiver, and the signals that it gets if these are not all. Queries, which may have secrets,
/// are left out.
fn address(receiver: &OtlpConfig) -> String {
    let mut addresses: Vec<String> = Vec::new();
    for signal in receiver.signals().iter() {
        let endpoint = &receiver.signal(signal).endpoint;
        let authority = endpoint.authority().map_or("", |authority| authority.as_str());
        let path = endpoint.path().trim_end_matches('/');
        let path = path.strip_suffix(&format!("/v1/{signal}")).unwrap_or(path);
        let address = format!("{}://{authority}{path}", endpoint.scheme_str().unwrap_or("http"));
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let signals = receiver.signals();
    if signals != Signals::ALL {
        addresses.push(signals.to_string());
    }
    addresses.join(" ")
}

impl ReceiverQueues {
    fn new(sink: &str, root: &Path, queue: &str, settings: &DiskQueueSection) -> Self {
        Self {
            sink: sink.to_owned(),
            folder: root.join(queue_folder_name(queue)),
            settings: settings.settings(PathBuf::new()),
        }
    }

    fn config(&self, folder: PathBuf) -> DiskQueueConfig {
        DiskQueueConfig {
            folder,
            ..self.settings.clone()
        }
    }

    /// Opens the first queue that no other process uses. If none can be opened, the sink has a queue in memory, which is
    /// reported.
    pub(super) async fn open(&self) -> Option<DiskQueue> {
        let why = match tokio::time::timeout(OPENING, self.open_first()).await {
            Ok(Ok(queue)) => return Some(queue),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("{} did not answer in time: check the disk", self.folder.display()),
        };
        log::warn(
            Subject::Sink(&self.sink),
            format_args!("continues without its disk queue: {why}"),
        );
        None
    }

    async fn open_first(&self) -> Result<DiskQueue, DiskQueueError> {
        let mut in_use = None;
        for queue in listed(&self.folder, |folder| candidates(folder).collect()).await {
            match open_disk_queue(&self.sink, self.config(queue.clone())).await {
                Err(error @ DiskQueueError::InUse { .. }) => in_use = Some(error),
                Ok(opened) => return probe(queue).await.map(|()| opened),
                failed => return failed,
            }
        }
        Err(in_use.unwrap_or(DiskQueueError::InUse {
            path: self.folder.clone(),
        }))
    }
}

/// Checks that the disk of a queue has room: a queue that cannot write holds nothing, while one in memory delivers.
async fn probe(queue: PathBuf) -> Result<(), DiskQueueError> {
    let path = queue.join("probe");
    let written = tokio::task::spawn_blocking(move || {
        let mut file = private_files::create_file(&path)?;
        let written = file.write_all(&[1; PROBE_BYTES]);
        written.and(fs::remove_file(&path))
    });
    let written = written
        .await
        .unwrap_or_else(|failed| Err(io::Error::other(failed)));
    written.map_err(|source| DiskQueueError::Io {
        action: "write to",
        path: queue,
        source,
    })
}

/// Lists queues on a thread of its own: a network file system can hang.
async fn listed(folder: &Path, list: fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    let folder = folder.to_owned();
    let listing = tokio::task::spawn_blocking(move || list(&folder));
    listing.await.unwrap_or_default()
}

/// Returns the queues of a folder in the order in which they are tried: those with batches, and then all numbers.
fn candidates(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let numbered = (0..MAX_QUEUES).map(|number| folder.join(number.to_string()));
    filled(folder).into_iter().chain(numbered.collect::<Vec<_>>())
}

/// Returns the queues of a folder that have batches.
fn filled(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut filled: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|queue| has_segments(queue))
        .collect();
    filled.sort();
    filled
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

    #[test]
    fn queues_are_named_by_address_and_signals_without_secrets() {
        let address = |target: &str| address(&topology::otlp_target(target).unwrap());
        assert_eq!(address("http://h"), "http://h:4318");
        assert_eq!(address("grpc://h"), "http://h:4317");
        assert_eq!(address("https://h/tenant/?key=secret"), "https://h/tenant");
        assert_eq!(address("traces=http://h:1"), "http://h:1 traces");
        let config = |endpoint: &str| {
            OtlpConfig::from_env(|name| match name {
                "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("http://h:1".to_owned()),
                "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT" => Some(endpoint.to_owned()),
                _ => None,
            })
        };
        let two_paths = config("http://h:1/other").unwrap();
        assert_eq!(super::address(&two_paths), "http://h:1 http://h:1/other");
    }
}
