//! The lane of one sink: its account, its queue and its worker, from its start to its report.

use std::{fmt, sync::Arc};

use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    PipelineConfig, Requirement, Sink, SinkReport, SinkRoute,
    clock::Instant,
    drain::{Drain, DrainRaiser},
    ledger::Account,
    queue::{QueueReceiver, QueueSender, queue},
    successor::Successor,
    worker::Worker,
};

/// The message of what is lost because its sink was never opened.
const NEVER_OPENED: &str = "the sink could not be opened";

/// A sink at work, or one that is about to be opened and whose queue holds what arrives meanwhile. Dropped before its end,
/// it stops at once, and what was inside counts as abandoned.
pub(crate) struct Lane {
    name: String,
    account: Arc<Account>,
    queue: Arc<QueueSender>,
    drain: DrainRaiser,
    /// Where the sink is handed over, until it is.
    opening: Option<oneshot::Sender<Box<dyn Sink>>>,
    successor: Successor,
    worker: JoinHandle<Result<(), String>>,
}

impl Lane {
    /// Starts the queue of a sink that is not open yet.
    pub(crate) fn expect(name: &str, route: SinkRoute, config: &PipelineConfig) -> Self {
        let drain = DrainRaiser::new();
        let account = Account::new(name);
        let (sender, receiver) = queue(config.queue, route, Arc::clone(&account));
        let (opening, opened) = oneshot::channel();
        let successor = Successor::default();
        let work = work(
            opened,
            receiver,
            Arc::clone(&account),
            config.clone(),
            drain.drain(),
            successor.clone(),
        );
        Self {
            name: name.to_owned(),
            account,
            queue: Arc::new(sender),
            drain,
            opening: Some(opening),
            successor,
            worker: tokio::spawn(work),
        }
    }

    /// Starts the worker of a sink.
    pub(crate) fn start(sink: Box<dyn Sink>, requirement: Requirement, config: &PipelineConfig) -> Self {
        let signals = sink.signals();
        let mut lane = Self::expect(sink.name(), SinkRoute { signals, requirement }, config);
        lane.open(sink);
        lane
    }

    /// Whether the sink was not handed over yet.
    pub(crate) fn is_expecting(&self) -> bool {
        self.opening.is_some()
    }

    /// Hands over the sink, which gets what is queued.
    pub(crate) fn open(&mut self, sink: Box<dyn Sink>) {
        if let Some(opening) = self.opening.take() {
            // Its worker ended: what it held is counted.
            let _ = opening.send(sink);
        }
    }

    /// The name of the sink.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its books.
    pub(crate) fn account(&self) -> Arc<Account> {
        Arc::clone(&self.account)
    }

    /// The way to it.
    pub(crate) fn queue(&self) -> Arc<QueueSender> {
        Arc::clone(&self.queue)
    }

    /// Lets nothing more in; what is queued has until the deadline.
    pub(crate) fn close(&mut self, deadline: Instant) {
        self.opening = None;
        self.queue.close();
        self.drain.raise(deadline);
    }

    /// As [`close`](Self::close), while the other lanes go on.
    pub(crate) fn leave(&mut self, deadline: Instant) {
        self.account.leave();
        self.close(deadline);
    }

    /// Hands over to this queue, instead of dropping it, what the sink has no time to deliver.
    pub(crate) fn replace_by(&self, successor: Arc<QueueSender>) {
        self.successor.set(successor);
    }

    /// Waits for the end of a closed lane.
    pub(crate) async fn end(mut self) -> SinkReport {
        let finished = (&mut self.worker).await;
        SinkReport {
            counts: self.account.counts(),
            finished: finished.unwrap_or_else(|failed| Err(format!("its worker failed: {failed}"))),
        }
    }
}

/// Waits for the sink and works for it until the drain is over.
async fn work(
    opened: oneshot::Receiver<Box<dyn Sink>>,
    mut queue: QueueReceiver,
    account: Arc<Account>,
    config: PipelineConfig,
    drain: Drain,
    successor: Successor,
) -> Result<(), String> {
    let Ok(sink) = opened.await else {
        queue.close();
        while let Some(queued) = queue.next().await {
            successor.take_over(queued.batch, queued.ticket, NEVER_OPENED);
        }
        return Ok(());
    };
    let worker = Worker::new(sink, queue, account, config.retry, drain, successor);
    worker.run(config.finish_grace).await
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.queue.close();
        self.worker.abort();
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
