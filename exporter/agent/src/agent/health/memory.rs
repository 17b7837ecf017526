//! The memory that each part of the agent uses for what clients send, for `/status`.

use std::{fmt, sync::Arc};

use pulsetrain_page::PageStore;
use pulsetrain_pipeline::MemoryUse;
use pulsetrain_prometheus::PrometheusStore;
use serde::Serialize;

/// A part that remembers what clients send.
#[derive(Clone)]
pub(crate) struct MemoryOwner {
    name: String,
    read: Arc<dyn Fn() -> MemoryFigures + Send + Sync>,
}

/// The memory of a part.
#[derive(Clone, Copy, Debug, Serialize)]
struct MemoryFigures {
    bytes: u64,
    max_bytes: u64,
    /// How often the part forgot or refused something at a limit.
    evicted: u64,
}

/// The entry of a part.
#[derive(Serialize)]
pub(super) struct MemoryEntry<'a> {
    owner: &'a str,
    #[serde(flatten)]
    figures: MemoryFigures,
}

impl MemoryOwner {
    /// A part with a fixed limit.
    pub(crate) fn limited(name: impl Into<String>, memory: MemoryUse, max_bytes: usize) -> Self {
        Self::new(name.into(), move || MemoryFigures {
            bytes: memory.bytes(),
            max_bytes: max_bytes as u64,
            evicted: memory.evicted(),
        })
    }

    /// The series of a Prometheus sink.
    pub(crate) fn series(sink: &str, store: PrometheusStore) -> Self {
        Self::new(format!("sinks.{sink}.series"), move || {
            let counts = store.counts();
            MemoryFigures {
                bytes: counts.bytes as u64,
                max_bytes: counts.max_bytes as u64,
                evicted: counts.evicted,
            }
        })
    }

    /// The history of a live page.
    pub(crate) fn page(sink: &str, page: PageStore) -> Self {
        Self::new(format!("sinks.{sink}.page"), move || {
            let counts = page.counts();
            MemoryFigures {
                bytes: counts.bytes as u64,
                max_bytes: page.config().bytes as u64,
                evicted: counts.runs_replaced + counts.runs_thinned,
            }
        })
    }

    fn new(name: String, read: impl Fn() -> MemoryFigures + Send + Sync + 'static) -> Self {
        Self {
            name,
            read: Arc::new(read),
        }
    }

    pub(super) fn entry(&self) -> MemoryEntry<'_> {
        MemoryEntry {
            owner: &self.name,
            figures: (self.read)(),
        }
    }
}

impl fmt::Debug for MemoryOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryOwner").field(&self.name).finish()
    }
}
