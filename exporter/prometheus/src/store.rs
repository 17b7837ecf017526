//! The store: every series with its last value, grouped by family.
//!
//! `sink` adds points and `render` reads them. `family` holds the series of one name, and `target` the
//! resources that send them. A series ends when its resource reports its end, or when the resource is stale.

pub(super) mod bounds;
pub(super) mod budget;
pub(super) mod family;
mod native;
mod rejection;
mod series_limit;
pub(super) mod target;
pub(super) mod value;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};

pub use self::rejection::{PrometheusCounts, Rejection};
pub(super) use self::series_limit::SeriesLimit;
use self::{
    family::{Family, FamilyKind, Head},
    target::Targets,
};
use super::{PrometheusConfig, family_names, scrapes::Scrapes};

/// The minimum staleness of an evicted series: Prometheus' own lookback.
const EVICTED_AFTER_SECONDS: u32 = 300;

/// The minimum number of series evicted at once, because an eviction scans all series.
const MIN_EVICTED: usize = 256;

/// The maximum interval between two expirations of stale series.
const MAX_EXPIRY_MILLIS: u64 = 60_000;

/// The size of a family without its texts.
const FAMILY_BYTES: usize = 1024;

/// The name of the family that describes the targets.
pub(super) const TARGET_INFO: &str = "target_info";

/// The series of one sink. Clones share them.
#[derive(Clone, Debug)]
pub struct PrometheusStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: PrometheusConfig,
    families: RwLock<Families>,
    targets: Mutex<Targets>,
    limit: SeriesLimit,
    rejected: [AtomicU64; Rejection::ALL.len()],
    ended: Ended,
    ahead: AtomicU64,
    scrapes: Scrapes,
    began: Instant,
}

/// The number of series that the store ended, and the time of the last scan in milliseconds since the store's
/// creation.
#[derive(Debug, Default)]
struct Ended {
    expired: AtomicU64,
    evicted: AtomicU64,
    with_resource: AtomicU64,
    looked_millis: AtomicU64,
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
        families
            .sample_names
            .extend(family_names::exposed(TARGET_INFO, FamilyKind::Info));
        let shared = Shared {
            config: config.clone(),
            families: RwLock::new(families),
            targets: Mutex::default(),
            limit: SeriesLimit::new(config.series_limit, config.max_bytes),
            rejected: Default::default(),
            ended: Ended::default(),
            ahead: AtomicU64::new(0),
            scrapes: Scrapes::default(),
            began: clock::now(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns whether both stores share the same series.
    pub fn shares_series_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the sizes of the store and the number of rejected points.
    pub fn counts(&self) -> PrometheusCounts {
        let refused = Rejection::ALL.iter().zip(&self.shared.rejected);
        PrometheusCounts {
            series: self.shared.limit.taken(),
            limit: self.shared.config.series_limit,
            bytes: self.shared.limit.budget().used(),
            max_bytes: self.shared.config.max_bytes,
            expired: self.shared.ended.expired.load(Ordering::Relaxed),
            evicted: self.shared.ended.evicted.load(Ordering::Relaxed),
            ended_with_resource: self.shared.ended.with_resource.load(Ordering::Relaxed),
            ahead: self.shared.ahead.load(Ordering::Relaxed),
            rejected: refused
                .map(|(rejection, points)| (*rejection, points.load(Ordering::Relaxed)))
                .collect(),
        }
    }

    /// Ends stale series, and the series of stale resources.
    pub fn sweep(&self) {
        let stale_after = self.shared.config.stale_after;
        if self.targets().sweep(self.now_millis(), stale_after) {
            let sweep = |family: &Arc<Family>| family.lock().sweep(&self.shared.limit);
            let ended = self.families().iter().map(sweep).sum();
            self.shared
                .ended
                .with_resource
                .fetch_add(ended, Ordering::Relaxed);
        }
        self.expire();
    }

    /// Ends the series without points within `series_stale_after`.
    fn expire(&self) {
        let Some(stale_after) = self.shared.config.series_stale_after else {
            return;
        };
        let ended = &self.shared.ended;
        let (now, looked) = (self.now_millis(), ended.looked_millis.load(Ordering::Relaxed));
        let stale_millis = u64::try_from(stale_after.as_millis()).unwrap_or(u64::MAX);
        // A scan of all series takes milliseconds, and the exact end does not matter.
        if now.saturating_sub(looked) < (stale_millis / 20).min(MAX_EXPIRY_MILLIS) {
            return;
        }
        ended.looked_millis.store(now, Ordering::Relaxed);
        let since = u32::try_from(now.saturating_sub(stale_millis) / 1000).unwrap_or(u32::MAX);
        let expire = |family: &Arc<Family>| family.lock().expire(since, &self.shared.limit);
        let expired = self.families().iter().map(expire).sum();
        ended.expired.fetch_add(expired, Ordering::Relaxed);
    }

    /// Evicts the stalest series after the limit was hit, if they are older than [`EVICTED_AFTER_SECONDS`].
    pub(super) fn make_room(&self) {
        let now = self.now_seconds();
        let Some(since) = now.checked_sub(EVICTED_AFTER_SECONDS) else {
            return;
        };
        if !self.shared.limit.budget().take_exhausted() {
            return;
        }
        let families = self.families();
        let mut silent: Vec<(u32, usize, u32)> = Vec::new();
        for (number, family) in families.iter().enumerate() {
            let table = family.lock();
            let arrivals = table.arrivals().filter(|(seen, _)| *seen < since);
            silent.extend(arrivals.map(|(seen, place)| (seen, number, place)));
        }
        let count = MIN_EVICTED.max(self.shared.config.series_limit / 100);
        if silent.len() > count {
            silent.select_nth_unstable(count);
            silent.truncate(count);
        }
        let evict = |(seen, number, place): &(u32, usize, u32)| {
            let family: &Arc<Family> = &families[*number];
            family.lock().evict(*place, *seen, &self.shared.limit)
        };
        let evicted = silent.iter().filter(|series| evict(series)).count();
        self.shared
            .ended
            .evicted
            .fetch_add(evicted as u64, Ordering::Relaxed);
    }

    /// Counts points with a time in the future.
    pub(super) fn report_ahead(&self, points: u64) {
        self.shared.ahead.fetch_add(points, Ordering::Relaxed);
    }

    /// Waits for a scrape of the current values, if there is a periodic scraper. Waits for three of its
    /// intervals, at most `limit`.
    pub async fn wait_for_scrape(&self, limit: Duration) {
        self.shared.scrapes.wait_for_next(limit).await;
    }

    pub(super) fn observe_scraper(&self) {
        self.shared.scrapes.observe_scraper();
    }

    pub(super) fn count_scrape(&self) {
        self.shared.scrapes.count();
    }

    /// Returns the settings of the series.
    pub fn config(&self) -> &PrometheusConfig {
        &self.shared.config
    }

    pub(super) fn limit(&self) -> &SeriesLimit {
        &self.shared.limit
    }

    /// Returns the time since the store's creation.
    pub(super) fn now_millis(&self) -> u64 {
        let since = clock::now().saturating_duration_since(self.shared.began);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the time since the store's creation, in seconds.
    pub(super) fn now_seconds(&self) -> u32 {
        u32::try_from(self.now_millis() / 1000).unwrap_or(u32::MAX)
    }

    pub(super) fn targets(&self) -> MutexGuard<'_, Targets> {
        self.shared.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reject(&self, rejection: Rejection, points: u64) {
        self.shared.rejected[rejection as usize].fetch_add(points, Ordering::Relaxed);
    }

    /// Returns all families, sorted by name.
    pub(super) fn families(&self) -> Vec<Arc<Family>> {
        let families = self
            .shared
            .families
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        families.by_name.values().cloned().collect()
    }

    /// Returns the family of that name, and creates it if it is new. It may be one of the program's own.
    pub(super) fn family(&self, head: Head, is_internal: bool) -> Result<Arc<Family>, Rejection> {
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
                Err(Rejection::TypeConflict)
            };
        }
        let names = family_names::exposed(&head.name, head.kind);
        if names.iter().any(|name| families.sample_names.contains(name)) {
            return Err(Rejection::TypeConflict);
        }
        if families.by_name.len() >= self.shared.limit.limit(is_internal) {
            return Err(Rejection::SeriesLimit);
        }
        let texts = head.help.len() + head.unit.len() + (names.len() + 2) * head.name.len();
        let charge = (self.shared.limit.budget()).charge(FAMILY_BYTES + texts, is_internal)?;
        families.sample_names.extend(names);
        let family = Arc::new(Family::new(head, charge));
        families
            .by_name
            .insert(family.head.name.clone(), Arc::clone(&family));
        Ok(family)
    }

    /// Removes the families without series. Caches of families must be cleared too.
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
                for name in family_names::exposed(&family.head.name, family.head.kind) {
                    taken.remove(&name);
                }
            }
            stays
        });
    }
}
