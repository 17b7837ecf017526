//! The page's history, shared between the sink that fills it and the server that shows it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pulsetrain_pipeline::clock;

use super::{PageConfig, PageRejections, PageTelemetry, SinkState, feed::Feed, history::History};

/// The history of the page; a clone is the same one.
#[derive(Clone)]
pub struct PageStore {
    shared: Arc<Shared>,
}

struct Shared {
    config: PageConfig,
    history: Mutex<History>,
    telemetry: Mutex<Option<Box<dyn PageTelemetry>>>,
    feed: Feed,
    /// Tells this history from one of a process before or after: when it began, in nanoseconds since 1970.
    instance: u128,
    /// Whether the page asks for updates and shows ages; `false` for recorded runs.
    is_live: bool,
}

/// What the page keeps, and what it had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageCounts {
    /// Bytes of points, steps and events, when they were last counted.
    pub bytes: usize,
    /// Runs that made room for others.
    pub runs_replaced: u64,
    /// The items that are not shown, by reason.
    pub rejected: PageRejections,
    /// How often a run lost half of its resolution, because there were too many bytes.
    pub runs_thinned: u64,
    /// Batches that could not be read.
    pub malformed: u64,
}

impl PageStore {
    /// An empty history of runs that go on.
    pub fn new(config: PageConfig) -> Self {
        Self::of(config, true)
    }

    /// An empty history of finished runs: the page shows no ages and asks for no updates.
    pub fn recorded(config: PageConfig) -> Self {
        Self::of(config, false)
    }

    fn of(config: PageConfig, is_live: bool) -> Self {
        let shared = Shared {
            history: Mutex::new(History::new(config.clone())),
            telemetry: Mutex::default(),
            feed: Feed::new(config.clients),
            config,
            instance: clock::unix_now().as_nanos(),
            is_live,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Shows the sinks that `telemetry` knows, instead of those that the page showed before.
    pub fn show_telemetry(&self, telemetry: Box<dyn PageTelemetry>) {
        *self
            .shared
            .telemetry
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(telemetry);
    }

    /// What the page keeps, and what it had no room for.
    pub fn counts(&self) -> PageCounts {
        self.history().counts
    }

    /// Returns the points, spans and log records that the page does not show, by reason.
    pub fn rejected_items(&self) -> PageRejections {
        self.counts().rejected
    }

    /// Whether there is neither a run nor a GPU.
    pub fn is_empty(&self) -> bool {
        let history = self.history();
        history.runs.is_empty() && history.gpus.is_empty()
    }

    /// The limits.
    pub fn config(&self) -> &PageConfig {
        &self.shared.config
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.shared.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_live(&self) -> bool {
        self.shared.is_live
    }

    pub(super) fn instance(&self) -> u128 {
        self.shared.instance
    }

    pub(super) fn feed(&self) -> &Feed {
        &self.shared.feed
    }

    pub(super) fn sinks(&self) -> Vec<SinkState> {
        let telemetry = self
            .shared
            .telemetry
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        telemetry
            .as_ref()
            .map_or_else(Vec::new, |telemetry| telemetry.sinks())
    }
}

impl std::fmt::Debug for PageStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageStore").finish_non_exhaustive()
    }
}
