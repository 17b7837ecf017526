//! `GET /status`: the state of each source and sink, as JSON.
//!
//! ```json
//! {"version": "0.1.0", "ready": true, "reason": null, "clock_steps": 0, "warnings": [],
//!  "sources": [{"name": "trainer", "state": "running", "error": null, "lag_seconds": 0.4, "last_batch_seconds": 1.2,
//!               "followed": 1, "logs": [{"path": "/runs/1.jsonl", "state": "up_to_date", "error": null, "lag_seconds": 0.2, "unread_bytes": 0}]}],
//!  "sinks": [{"name": "collector", "state": "failing", "failing_seconds": 12.5, "error": "connection refused",
//!             "accepted_items": 90, "delivered_items": 60, "dropped_items": 0, "retries": 7,
//!             "queue": {"items": 0, "batches": 0, "bytes": 0, "oldest_seconds": null},
//!             "disk": {"items": 30, "batches": 3, "bytes": 4120, "file_bytes": 8200, "oldest_seconds": 12.9}}],
//!  "memory": [{"owner": "derive", "bytes": 5120, "max_bytes": 50331648, "evicted": 0}]}
//! ```
//!
//! A source is `running` or `not_open`. A sink is `working`, `failing` (nothing was delivered, or its disk queue cannot be used,
//! since `failing_seconds`) or `not_open`; `disk` is null without a disk queue. `memory` has the parts that remember what clients send,
//! and how often each forgot something at its limit. `lag_seconds` of a source is the age of the newest item when it arrived,
//! `last_batch_seconds` the time since the last batch.
//!
//! A log is `waiting`, `up_to_date`, `lagging` or `failing`. Its `lag_seconds` is the time since the last poll after which all of its
//! records were read and sent: at most about the poll interval unless the log lags. Of the `followed` logs, `logs` lists the first
//! 1,000: failing ones, then lagging ones, each with the largest lag first.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::{Ledger, SinkCounts, clock};
use pulsetrain_tail::{LogState, LogStatus, TailStatus};
use serde_json::{Value, json};

use super::{Answer, MemoryOwner, Readiness};

/// The path of the endpoint.
pub(super) const PATH: &str = "/status";

/// The most logs of a source in an answer.
const MAX_LOGS: usize = 1_000;

/// The state of an agent's parts; clones share it.
#[derive(Clone)]
pub(crate) struct Status {
    ledger: Ledger,
    lags: Arc<dyn Fn() -> BTreeMap<String, SourceLag> + Send + Sync>,
    parts: Arc<Mutex<Parts>>,
    memory: Arc<Mutex<Vec<MemoryOwner>>>,
    logs: Arc<Mutex<BTreeMap<String, Arc<TailStatus>>>>,
}

/// The lag of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLag {
    /// The age of the newest item when it arrived.
    pub(crate) lag: Option<Duration>,
    /// The time of the last batch, since 1970.
    pub(crate) last_batch: Option<Duration>,
}

/// The parts of the configuration, each with the reason why it is not open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// All sources; `None` for a running one.
    pub(crate) sources: BTreeMap<String, Option<String>>,
    /// The sinks that are not open.
    pub(crate) unopened_sinks: BTreeMap<String, String>,
}

impl Status {
    /// Reads sinks from the ledger and sources from `lags`.
    pub(crate) fn new(
        ledger: Ledger,
        lags: impl Fn() -> BTreeMap<String, SourceLag> + Send + Sync + 'static,
    ) -> Self {
        Self {
            ledger,
            lags: Arc::new(lags),
            parts: Arc::default(),
            memory: Arc::default(),
            logs: Arc::default(),
        }
    }

    /// Replaces the parts that remember what clients send.
    pub(crate) fn set_memory(&self, owners: Vec<MemoryOwner>) {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = owners;
    }

    /// Replaces the parts.
    pub(crate) fn set_parts(&self, parts: Parts) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts;
    }

    /// Reports the logs of a source from now on, or no logs.
    pub(crate) fn watch_logs(&self, source: &str, status: Option<Arc<TailStatus>>) {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        match status {
            Some(status) => logs.insert(source.to_owned(), status),
            None => logs.remove(source),
        };
    }

    fn logs(&self, source: &str) -> Vec<LogStatus> {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.get(source).map(|logs| logs.logs()).unwrap_or_default()
    }

    fn parts(&self) -> Parts {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Answers a request.
    pub(super) fn answer(&self, ready: &Readiness) -> Answer {
        let reason = ready.reason();
        let parts = self.parts();
        let (lags, now) = ((self.lags)(), clock::unix_now());
        let sources = parts.sources.iter();
        let sources: Vec<Value> = sources
            .map(|(name, error)| source(name, error.as_deref(), lags.get(name), now, self.logs(name)))
            .collect();
        let counts = self.ledger.snapshot();
        let sinks: Vec<Value> = counts
            .iter()
            .map(|counts| sink(counts, parts.unopened_sinks.get(section(&counts.name))))
            .collect();
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let status = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "ready": reason.is_none(),
            "reason": reason.map(|reason| reason.to_string()),
            "clock_steps": ready.clock_steps(),
            "warnings": ready.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "sources": sources,
            "sinks": sinks,
            "memory": memory.iter().map(MemoryOwner::entry).collect::<Vec<_>>(),
        });
        super::json(&status)
    }
}

/// The section of a queue: several queues of one section have more in parentheses.
fn section(queue: &str) -> &str {
    queue.split_once(" (").map_or(queue, |(section, _)| section)
}

fn source(
    name: &str,
    error: Option<&str>,
    lag: Option<&SourceLag>,
    now: Duration,
    mut logs: Vec<LogStatus>,
) -> Value {
    let followed = logs.len();
    // Each lag is read once, because it grows meanwhile. A log that never caught up has the largest.
    logs.sort_by_cached_key(|log| (order(log.state), Reverse(log.lag().unwrap_or(Duration::MAX))));
    logs.truncate(MAX_LOGS);
    let SourceLag { lag, last_batch } = lag.copied().unwrap_or_default();
    json!({
        "name": name,
        "state": if error.is_none() { "running" } else { "not_open" },
        "error": error,
        "lag_seconds": lag.map(|lag| lag.as_secs_f64()),
        "last_batch_seconds": last_batch.map(|last| now.saturating_sub(last).as_secs_f64()),
        "followed": followed,
        "logs": logs.iter().map(log).collect::<Vec<_>>(),
    })
}

/// Returns the place of a state in the list: those that need attention first.
fn order(state: LogState) -> u8 {
    match state {
        LogState::Failing => 0,
        LogState::Lagging => 1,
        LogState::UpToDate => 2,
        LogState::Waiting => 3,
    }
}

fn log(log: &LogStatus) -> Value {
    json!({
        "path": log.path,
        "state": log.state.as_str(),
        "error": log.error,
        "lag_seconds": log.lag().map(|lag| lag.as_secs_f64()),
        "unread_bytes": log.unread_bytes,
    })
}

fn sink(counts: &SinkCounts, unopened: Option<&String>) -> Value {
    let failure = counts.any_failure();
    let state = match (unopened, failure) {
        (Some(_), _) => "not_open",
        (None, Some(_)) => "failing",
        (None, None) => "working",
    };
    let failing = failure.map(|failure| (clock::now() - failure.since).as_secs_f64());
    json!({
        "name": counts.name,
        "state": state,
        "failing_seconds": failing,
        "error": unopened
            .cloned()
            .or(failure.map(|failure| failure.problem.to_string())),
        "accepted_items": counts.accepted,
        "delivered_items": counts.delivered,
        "dropped_items": counts.lost_items(),
        "retries": counts.retries,
        "queue": {
            "items": counts.queued,
            "batches": counts.queued_batches,
            "bytes": counts.queued_bytes,
            "oldest_seconds": counts.oldest_age.map(|age| age.as_secs_f64()),
        },
        "disk": counts.on_disk.as_ref().map(|disk| json!({
            "items": disk.items,
            "batches": disk.batches,
            "bytes": disk.bytes,
            "file_bytes": disk.file_bytes,
            "oldest_seconds": disk.oldest_age.map(|age| age.as_secs_f64()),
        })),
    })
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Status")
    }
}
