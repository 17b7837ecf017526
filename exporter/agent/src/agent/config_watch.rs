//! Watches the configuration file, also through the links of a Kubernetes ConfigMap, whose `..data` is replaced.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::{Interval, MissedTickBehavior, interval};

/// The interval of looks at the file.
const LOOK: Duration = Duration::from_secs(1);

/// The largest file that is watched. A configuration is far smaller.
const MAX_BYTES: u64 = 16 << 20;

/// The content of the configuration file that is in use.
pub(super) struct ConfigWatch {
    file: Option<PathBuf>,
    in_use: Option<Vec<u8>>,
    /// The content at the last look. A new one is used when it is unchanged at the next look, because its writer may not be done.
    seen: Option<Vec<u8>>,
    looks: Interval,
}

impl ConfigWatch {
    /// Watches a file, or nothing. `in_use` is its content when the configuration was read.
    pub(super) fn new(file: Option<&Path>, in_use: Option<Vec<u8>>) -> Self {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            file: file.map(Path::to_owned),
            in_use,
            seen: None,
            looks,
        }
    }

    /// Waits until the file has another content than the one in use. Dropping the future loses nothing.
    pub(super) async fn changed(&mut self) {
        loop {
            self.looks.tick().await;
            let content = self.content().await;
            let is_settled = content == self.seen;
            self.seen.clone_from(&content);
            if content.is_some() && content != self.in_use && is_settled {
                return;
            }
        }
    }

    /// Records that the file was read.
    pub(super) async fn record_use(&mut self) {
        self.in_use = self.content().await;
    }

    async fn content(&self) -> Option<Vec<u8>> {
        let file = self.file.clone()?;
        let read = tokio::task::spawn_blocking(move || content(&file));
        read.await.ok().flatten()
    }
}

/// Returns the content of a configuration file, or `None` if it cannot be read, such as while it is replaced.
pub(super) fn content(file: &Path) -> Option<Vec<u8>> {
    let metadata = fs::metadata(file).ok()?;
    let is_readable = metadata.is_file() && metadata.len() <= MAX_BYTES;
    is_readable.then(|| fs::read(file).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn replaced_links_of_a_config_map_are_a_change_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (version, content) in [("1", "a: 1"), ("2", "a: 2")] {
            fs::create_dir(path(version)).unwrap();
            fs::write(path(version).join("agent.yaml"), content).unwrap();
        }
        symlink("1", path("..data")).unwrap();
        symlink("..data/agent.yaml", path("agent.yaml")).unwrap();
        let file = path("agent.yaml");
        let mut watch = ConfigWatch::new(Some(&file), content(&file));
        let hour = Duration::from_secs(3600);
        assert!(tokio::time::timeout(hour, watch.changed()).await.is_err());
        symlink("2", path("..new")).unwrap();
        fs::rename(path("..new"), path("..data")).unwrap();
        watch.changed().await;
        watch.record_use().await;
        assert!(tokio::time::timeout(hour, watch.changed()).await.is_err());
        fs::remove_file(path("agent.yaml")).unwrap();
        assert!(tokio::time::timeout(hour, watch.changed()).await.is_err());
    }
}
