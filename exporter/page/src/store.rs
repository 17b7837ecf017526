//! The page's history, shared between the sink that fills it and the server that shows it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pulsetrain_pipeline::clock;

use super::{PageConfig, PageRejections, PageTelemetry, SinkState, feed::Feed, history::History};

/// The history of the page. Clones share it.
#[derive(Clone)]
pub struct PageStore {
    shared: Arc<Shared>,
}

struct Shared {
    config: PageConfig,
    history: Mutex<History>,
    telemetry: Mutex<Option<Box<dyn PageTelemetry>>>,
    feed: Feed,
    /// The creation time in nanoseconds since 1970, which distinguishes this history from those of other
    /// processes.
    instance: u128,
    /// Whether the page requests updates and shows ages. `false` for recorded runs.
    is_live: bool,
}

/// The sizes of the history, and the rejected items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageCounts {
    /// The bytes of points, steps and events at the last measurement.
    pub bytes: usize,
    /// The number of runs that were replaced by new ones.
    pub runs_replaced: u64,
    /// The items that are not shown, by reason.
    pub rejected: PageRejections,
    /// The number of times that a run was halved to save memory.
    pub runs_thinned: u64,
    /// The number of malformed batches.
    pub malformed: u64,
}

impl PageStore {
    /// Returns an empty history of active runs.
    pub fn new(config: PageConfig) -> Self {
        Self::with_liveness(config, true)
    }

    /// Returns an empty history of finished runs. The page shows no ages and requests no updates.
    pub fn recorded(config: PageConfig) -> Self {
        Self::with_liveness(config, false)
    }

    fn with_liveness(config: PageConfig, is_live: bool) -> Self {
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

    /// Replaces the sinks that the page shows by those of `telemetry`.
    pub fn show_telemetry(&self, telemetry: Box<dyn PageTelemetry>) {
        *self
            .shared
            .telemetry
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(telemetry);
    }

    /// Returns the sizes of the history, and the rejected items.
    pub fn counts(&self) -> PageCounts {
        self.history().counts
    }

    /// Returns the points, spans and log records that the page does not show, by reason.
    pub fn rejected_items(&self) -> PageRejections {
        self.counts().rejected
    }

    /// Returns whether there is neither a run nor a GPU.
    pub fn is_empty(&self) -> bool {
        let history = self.history();
        history.runs.is_empty() && history.gpus.is_empty()
    }

    /// Returns the limits.
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
