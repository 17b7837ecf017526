//! The store: every series with its last value, grouped by family.
//!
//! `sink` puts points in, `render` reads them. `family` holds the series of one name, `target` the resources that send
//! them; a series ends when its resource says so, or when the resource falls silent.

pub(super) mod bounds;
pub(super) mod family;
mod refusal;
mod room;
pub(super) mod target;
pub(super) mod value;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use pulsetrain_pipeline::clock::{self, Instant};

pub use self::refusal::{PrometheusCounts, Refusal};
pub(super) use self::room::Room;
use self::{
    family::{Family, Head, Kind},
    target::Targets,
};
use super::{
    PrometheusConfig,
    escape::Escaping,
    render::{Format, Page},
};

/// The name of the family that describes the targets.
pub(super) const TARGET_INFO: &str = "target_info";

/// The series of one sink; a clone sees the same ones.
#[derive(Clone, Debug)]
pub struct PrometheusStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: PrometheusConfig,
    families: RwLock<Families>,
    targets: Mutex<Targets>,
    room: Room,
    refused: [AtomicU64; Refusal::ALL.len()],
    began: Instant,
}

#[derive(Debug, Default)]
struct Families {
    by_name: BTreeMap<String, Arc<Family>>,
    /// The names of all samples, so that no two families share one.
    sample_names: HashSet<String>,
}

impl PrometheusStore {
    pub(super) fn new(config: &PrometheusConfig) -> Self {
        let mut families = Families::default();
        families.sample_names.insert(TARGET_INFO.to_owned());
        let shared = Shared {
            config: config.clone(),
            families: RwLock::new(families),
            targets: Mutex::default(),
            room: Room::new(config.series_limit),
            refused: Default::default(),
            began: clock::now(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// What the store holds and what it refused.
    pub fn counts(&self) -> PrometheusCounts {
        let refused = Refusal::ALL.iter().zip(&self.shared.refused);
        PrometheusCounts {
            series: self.shared.room.taken(),
            limit: self.shared.config.series_limit,
            refused: refused
                .map(|(refusal, points)| (*refusal, points.load(Ordering::Relaxed)))
                .collect(),
        }
    }

    /// Ends the series of the resources that have been silent for too long.
    pub fn sweep(&self) {
        let stale_after = self.shared.config.stale_after;
        if self.targets().sweep(self.now_millis(), stale_after) {
            for family in self.families() {
                family.lock().sweep(&self.shared.room);
            }
        }
    }

    /// Writes the page as a client without `Accept` gets it: text 0.0.4.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let mut page = Page::new(self, Vec::new(), Format::Text, Escaping::Underscores);
        while page.push_piece(out) {}
    }

    /// The settings by which the series are kept.
    pub fn config(&self) -> &PrometheusConfig {
        &self.shared.config
    }

    pub(super) fn room(&self) -> &Room {
        &self.shared.room
    }

    /// The time since the store began.
    pub(super) fn now_millis(&self) -> u64 {
        let since = clock::now().saturating_duration_since(self.shared.began);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn targets(&self) -> MutexGuard<'_, Targets> {
        self.shared.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn refuse(&self, refusal: Refusal, points: u64) {
        self.shared.refused[refusal as usize].fetch_add(points, Ordering::Relaxed);
    }

    /// All families in the order of their names.
    pub(super) fn families(&self) -> Vec<Arc<Family>> {
        let families = self
            .shared
            .families
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        families.by_name.values().cloned().collect()
    }

    /// The family of that name, new where there is none. It may be one that tells of the program itself.
    pub(super) fn family(&self, head: Head, is_of_ourselves: bool) -> Result<Arc<Family>, Refusal> {
        let mut families = self
            .shared
            .families
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(family) = families.by_name.get(&head.name) {
            let same = family.head.kind == head.kind;
            return if same {
                Ok(Arc::clone(family))
            } else {
                Err(Refusal::TypeConflict)
            };
        }
        let names = sample_names(&head);
        if names.iter().any(|name| families.sample_names.contains(name)) {
            return Err(Refusal::TypeConflict);
        }
        if families.by_name.len() >= self.shared.room.limit(is_of_ourselves) {
            return Err(Refusal::SeriesLimit);
        }
        families.sample_names.extend(names);
        let family = Arc::new(Family::new(head));
        families
            .by_name
            .insert(family.head.name.clone(), Arc::clone(&family));
        Ok(family)
    }

    /// Takes out the families without series; whoever remembers one must forget it.
    pub(super) fn forget_empty_families(&self) {
        let mut families = self
            .shared
            .families
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let Families {
            by_name,
            sample_names: taken,
        } = &mut *families;
        by_name.retain(|_, family| {
            let stays = !family.lock().is_empty();
            if !stays {
                sample_names(&family.head).iter().for_each(|name| {
                    taken.remove(name);
                });
            }
            stays
        });
    }
}

/// The names of the samples that a family has on the page.
fn sample_names(head: &Head) -> Vec<String> {
    let suffixes: &[&str] = match head.kind {
        Kind::Counter | Kind::Gauge | Kind::Untyped => &[""],
        Kind::Histogram => &["", "_bucket", "_sum", "_count"],
        Kind::Summary => &["", "_sum", "_count"],
    };
    suffixes
        .iter()
        .map(|suffix| format!("{}{suffix}", head.name))
        .collect()
}
