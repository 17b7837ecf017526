//! Asks the system to tell of changes. Where it cannot (network file systems, too many watches), the clock does.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::ModifyKind};

use super::bell::Bell;

/// The folders that the system watches for us.
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: HashSet<PathBuf>,
}

impl Watch {
    /// Rings the bell for what happens in watched folders.
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        let watcher = notify::recommended_watcher(move |event| ring(&bell, event));
        Self {
            watcher: watcher.ok(),
            folders: HashSet::new(),
        }
    }

    /// Nobody tells of anything.
    pub(super) fn none() -> Self {
        Self {
            watcher: None,
            folders: HashSet::new(),
        }
    }

    /// Watches a folder, but not the folders in it: nobody knows how much is in those.
    pub(super) fn add(&mut self, folder: &Path) {
        let Some(watcher) = &mut self.watcher else { return };
        if !self.folders.contains(folder) && watcher.watch(folder, RecursiveMode::NonRecursive).is_ok() {
            self.folders.insert(folder.to_owned());
        }
    }
}

fn ring(bell: &Bell, event: notify::Result<Event>) {
    let Ok(event) = event else {
        return bell.ring_to_look_everywhere();
    };
    match event.kind {
        // Our own reading is such an event too: to wake for it would never end.
        EventKind::Access(_) => {}
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => {
            bell.ring_to_look_everywhere();
        }
        _ if event.need_rescan() => bell.ring_to_look_everywhere(),
        _ => bell.ring_for_change(event.paths),
    }
}
