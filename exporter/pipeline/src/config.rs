//! The settings of a pipeline and of each of its sinks.

use std::time::Duration;

use crate::{QueueConfig, RetryConfig, disk::DiskQueue};

/// The default settings of the sinks, and the time that they have to finish.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineConfig {
    /// The settings of each sink that is added without its own.
    pub task: SinkTaskConfig,
    /// The minimum time that each sink has to flush, even past the deadline of the drain.
    pub finish_grace: Duration,
}

/// How batches are queued, sent and retried for one sink.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkTaskConfig {
    /// The settings of the queue in front of the sink.
    pub queue: QueueConfig,
    /// The disk queue that holds batches until they are delivered, so that they survive a kill; `None` keeps them in
    /// memory.
    pub disk: Option<DiskQueue>,
    /// Whether [`Reservation::held`](crate::Reservation::held) waits for the delivery of a batch that is queued in
    /// memory. This is for sinks whose deliveries survive a kill, such as files.
    pub held_when_delivered: bool,
    /// The retry policy of the sink.
    pub retry: RetryConfig,
    /// The merging of queued batches into one request. Only a sink that can be forked ([`Sink::fork`](crate::Sink::fork))
    /// receives merged batches.
    pub merge: MergeConfig,
    /// The maximum number of requests in flight; zero counts as one. Only a sink that can be forked has more than one.
    /// Metrics have at most one request in flight, because receivers reject samples of a series that arrive out of order.
    pub concurrency: usize,
}

/// The merging of queued batches of one signal into one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeConfig {
    /// The maximum size of a merged request in bytes, before compression. A batch that is larger is sent alone; zero turns
    /// merging off.
    pub max_bytes: usize,
    /// How long a batch waits for others before it is sent, like the `flush_timeout` of the Collector. With zero, a
    /// request merges the batches that are queued already, so that an idle sink adds no latency.
    pub max_wait: Duration,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            task: SinkTaskConfig::default(),
            finish_grace: Duration::from_secs(1),
        }
    }
}

impl From<SinkTaskConfig> for PipelineConfig {
    fn from(task: SinkTaskConfig) -> Self {
        Self {
            task,
            ..Self::default()
        }
    }
}

impl Default for SinkTaskConfig {
    fn default() -> Self {
        Self {
            queue: QueueConfig::default(),
            disk: None,
            held_when_delivered: false,
            retry: RetryConfig::default(),
            merge: MergeConfig::default(),
            concurrency: 4,
        }
    }
}

impl Default for MergeConfig {
    /// Returns 1 MiB, a quarter of the default limit of gRPC receivers, and no wait.
    fn default() -> Self {
        Self {
            max_bytes: 1 << 20,
            max_wait: Duration::ZERO,
        }
    }
}
