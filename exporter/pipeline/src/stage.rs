//! Stages between the sources and the sinks. Each receives every batch, and may hold items back or add some.
//!
//! The ingress passes each batch through the chain of stages before the fan-out, and a task of the pipeline releases items that are due.
//! The output of a stage is the input of the next, so signals can be computed from computed signals. The ledger accepts held items
//! when they leave the stages, at the drain at the latest.

mod chain;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{sleep_until, timeout_at},
};

use self::chain::Chain;
use crate::{
    Batch, CancellationToken, Ingress,
    clock::{self, Instant},
};

/// Computes signals from other signals while they pass. It runs on the threads of the sources: it must not wait, holds a
/// bounded number of items for a bounded time, and drops nothing.
///
/// A stage that panics is removed: later batches and those that it held bypass it. An item may be delivered twice.
pub trait Stage: Send + 'static {
    /// Processes a batch; the batches that are due now are pushed to `out`.
    fn pass(&mut self, batch: Batch, now: Instant, out: &mut Vec<Batch>);

    /// Returns when the next held item is due, or `None` if none is held.
    fn due(&self) -> Option<Instant>;

    /// Releases the items that are due at `now`.
    fn release(&mut self, now: Instant, out: &mut Vec<Batch>);

    /// Releases all items. It is the last call.
    fn finish(&mut self, out: &mut Vec<Batch>);
}

/// The stages of a pipeline. The ingresses, which pass batches, and the task that releases due items share them.
pub(crate) struct StageSlot {
    chain: Mutex<Chain>,
    held: Notify,
}

/// Running stages, with the task that releases due items.
pub(crate) struct StageTask {
    slot: Arc<StageSlot>,
    stop: CancellationToken,
    releasing: JoinHandle<()>,
}

impl StageSlot {
    pub(crate) fn new(stages: Vec<Box<dyn Stage>>) -> Arc<Self> {
        Arc::new(Self {
            chain: Mutex::new(Chain::new(stages)),
            held: Notify::new(),
        })
    }

    /// Passes a batch through the chain and returns the batches that leave it.
    pub(crate) fn pass(&self, batch: Batch) -> Vec<Batch> {
        let mut chain = self.chain();
        let out = chain.pass(batch, clock::now());
        if chain.due().is_some() {
            self.held.notify_one();
        }
        out
    }

    fn due(&self) -> Option<Instant> {
        self.chain().due()
    }

    fn release(&self) -> Vec<Batch> {
        self.chain().release(clock::now())
    }

    /// Releases all items and removes the stages.
    fn finish(&self) -> Vec<Batch> {
        self.chain().finish(clock::now())
    }

    /// Locks the stages. A panic inside a stage is caught while the lock is held.
    fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StageTask {
    /// Starts the task that releases due items through `beyond`, the ingress after the stage.
    pub(crate) fn start(slot: Arc<StageSlot>, beyond: Ingress) -> Self {
        let stop = CancellationToken::new();
        let releasing = tokio::spawn(release(Arc::clone(&slot), beyond, stop.clone()));
        Self {
            slot,
            stop,
            releasing,
        }
    }

    /// Releases all items through `beyond`, which waits for room until the deadline.
    pub(crate) async fn end(mut self, beyond: &Ingress, deadline: Instant) {
        self.stop.cancel();
        // The sending is incomplete at the deadline: the sinks without room lose the batch and count it.
        let _ = timeout_at(deadline, &mut self.releasing).await;
        for batch in self.slot.finish() {
            // After the deadline or the close, the ledger counts the batch.
            let _ = timeout_at(deadline, beyond.send(batch)).await;
        }
    }

    /// Releases all items through `beyond`, which is closed, so that they count as lost.
    pub(crate) fn abandon(&self, beyond: &Ingress) {
        for batch in self.slot.finish() {
            let _ = beyond.try_send_or_drop(batch);
        }
    }
}

impl Drop for StageTask {
    fn drop(&mut self) {
        self.releasing.abort();
    }
}

async fn release(slot: Arc<StageSlot>, beyond: Ingress, stop: CancellationToken) {
    loop {
        let due = async {
            match slot.due() {
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    () = slot.held.notified() => {}
                },
                None => slot.held.notified().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = due => {}
        }
        for batch in slot.release() {
            beyond.send_released(&batch);
        }
    }
}

impl fmt::Debug for StageSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StageSlot")
    }
}

impl fmt::Debug for StageTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StageTask")
    }
}
