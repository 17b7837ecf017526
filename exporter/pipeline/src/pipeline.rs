//! The pipeline as a whole: built from sinks, started, watched through its ledger, drained within a deadline.

use std::time::Duration;

use tokio::{runtime::Handle, task::JoinHandle};

use crate::{
    Door, Ledger, QueueConfig, RetryConfig, Sink, SinkCounts, clock, drain::DrainRaiser, ledger::Account,
    queue::queue, worker::Worker,
};

/// How a pipeline treats each of its sinks.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineConfig {
    /// The queue in front of each sink.
    pub queue: QueueConfig,
    /// How a failing sink is retried.
    pub retry: RetryConfig,
    /// The least time that each sink has to write out what it holds, even past the deadline of the drain.
    pub finish_grace: Duration,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            queue: QueueConfig::default(),
            retry: RetryConfig::default(),
            finish_grace: Duration::from_secs(1),
        }
    }
}

/// A pipeline before its start.
#[derive(Default)]
pub struct PipelineBuilder {
    config: PipelineConfig,
    sinks: Vec<Box<dyn Sink>>,
}

/// A running pipeline. Dropped without a drain, it stops at once and counts what was inside as abandoned.
#[derive(Debug)]
pub struct Pipeline {
    door: Door,
    ledger: Ledger,
    drain: DrainRaiser,
    workers: Vec<JoinHandle<Result<(), String>>>,
}

/// How one sink ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkReport {
    /// The last counts; nothing is queued any more.
    pub counts: SinkCounts,
    /// Whether the sink could write out what it held: an error says what may be lost of what is counted as delivered.
    pub finished: Result<(), String>,
}

impl PipelineBuilder {
    /// Replaces the default configuration.
    #[must_use]
    pub fn config(self, config: PipelineConfig) -> Self {
        Self { config, ..self }
    }

    /// Adds a sink; the order is the order in the ledger.
    #[must_use]
    pub fn sink(mut self, sink: Box<dyn Sink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// Starts a worker for every sink.
    ///
    /// # Panics
    /// When it is called outside a tokio runtime.
    pub fn start(self) -> (Pipeline, Door) {
        let Self { config, sinks } = self;
        let drain = DrainRaiser::new();
        let (mut accounts, mut queues, mut workers) = (Vec::new(), Vec::new(), Vec::new());
        for sink in sinks {
            let account = Account::new(sink.name());
            let (sender, receiver) = queue(config.queue, account.clone());
            let worker = Worker::new(
                sink,
                receiver,
                account.clone(),
                config.retry.clone(),
                drain.drain(),
            );
            workers.push(tokio::spawn(worker.run(config.finish_grace)));
            queues.push(sender);
            accounts.push(account);
        }
        let door = Door::new(queues, Handle::current());
        (
            Pipeline {
                door: door.clone(),
                ledger: Ledger::new(accounts),
                drain,
                workers,
            },
            door,
        )
    }
}

impl Pipeline {
    /// A pipeline without sinks yet, with the default configuration.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }

    /// The ledger, to be read at any time; a clone outlives the pipeline.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Closes the door, lets the sinks take what is queued until the time is over, drops the rest and counts it.
    ///
    /// Ends at the latest when the time and then the grace for finishing are over, or as soon as nothing is queued and
    /// every sink has finished. A batch whose next attempt would come too late is dropped at once.
    pub async fn drain(mut self, within: Duration) -> Vec<SinkReport> {
        self.door.close();
        self.drain.raise(clock::later(clock::now(), within));
        let mut ends = Vec::new();
        for worker in &mut self.workers {
            ends.push(
                worker
                    .await
                    .unwrap_or_else(|failed| Err(format!("its worker failed: {failed}"))),
            );
        }
        let counts = self.ledger.snapshot();
        counts
            .into_iter()
            .zip(ends)
            .map(|(counts, finished)| SinkReport { counts, finished })
            .collect()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.door.close();
        for worker in &self.workers {
            worker.abort();
        }
    }
}
