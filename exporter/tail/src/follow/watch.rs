//! Asks the system to report changes. Where it cannot (network file systems, too many watches), polling finds them.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::ModifyKind};

use super::wakeup::Wakeup;

/// The folders that the system watches.
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: HashSet<PathBuf>,
}

impl Watch {
    /// Notifies `wakeup` of events in watched folders.
    pub(super) fn new(wakeup: Arc<Wakeup>) -> Self {
        let watcher = notify::recommended_watcher(move |event| notify(&wakeup, event));
        Self {
            watcher: watcher.ok(),
            folders: HashSet::new(),
        }
    }

    /// Returns a watch that reports nothing.
    pub(super) fn none() -> Self {
        Self {
            watcher: None,
            folders: HashSet::new(),
        }
    }

    /// Watches a folder without its subfolders, whose number is unbounded.
    pub(super) fn add(&mut self, folder: &Path) {
        let Some(watcher) = &mut self.watcher else { return };
        if !self.folders.contains(folder) && watcher.watch(folder, RecursiveMode::NonRecursive).is_ok() {
            self.folders.insert(folder.to_owned());
        }
    }
}

fn notify(wakeup: &Wakeup, event: notify::Result<Event>) {
    let Ok(event) = event else {
        return wakeup.notify_rescan();
    };
    match event.kind {
        // The follower's own reads are such events too and must not wake it.
        EventKind::Access(_) => {}
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
            wakeup.notify_rescan();
        }
        _ if event.need_rescan() => wakeup.notify_rescan(),
        _ => wakeup.notify_change(event.paths),
    }
}
