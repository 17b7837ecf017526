//! A stage: what stands between the sources and the sinks, sees every batch, and may hold items back or add some.
//!
//! The door shows it each batch before the fan-out, and a task of the pipeline asks for what was held long enough. What a
//! stage holds is accepted by the ledger when it leaves; it leaves at the drain at the latest, also when nobody drains.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{sleep_until, timeout_at},
};

use crate::{
    Batch, Door, Stop, StopRaiser,
    clock::{self, Instant},
};

/// Computes signals from other signals on their way. It runs on the threads of the sources: it must not wait, holds a
/// bounded number of items for a bounded time, and drops nothing.
///
/// A stage that panics is taken out: what it held and all that follows goes on as it is, an item at worst twice.
pub trait Stage: Send + 'static {
    /// Takes a batch; `out` gets what goes on now, of this batch and besides.
    fn pass(&mut self, batch: Batch, now: Instant, out: &mut Vec<Batch>);

    /// When something that is held has to go on; nothing where nothing is held.
    fn due(&self) -> Option<Instant>;

    /// Lets go what is due at `now`.
    fn release(&mut self, now: Instant, out: &mut Vec<Batch>);

    /// Lets go everything; nothing comes after it.
    fn finish(&mut self, out: &mut Vec<Batch>);
}

/// The place of the stage; shared by the doors, which pass batches, and the task that releases what is due.
pub(crate) struct StageSlot {
    stage: Mutex<Option<Box<dyn Stage>>>,
    held: Notify,
}

/// A stage at work: its place and the task that lets go what is due.
pub(crate) struct StageTask {
    slot: Arc<StageSlot>,
    stop: StopRaiser,
    releasing: JoinHandle<()>,
}

impl StageSlot {
    pub(crate) fn new(stage: Box<dyn Stage>) -> Arc<Self> {
        Arc::new(Self {
            stage: Mutex::new(Some(stage)),
            held: Notify::new(),
        })
    }

    /// What goes on when this batch comes.
    pub(crate) fn pass(&self, batch: Batch) -> Vec<Batch> {
        let mut slot = self.slot();
        let Some(stage) = slot.as_mut() else {
            return vec![batch];
        };
        let mut out = Vec::with_capacity(1);
        let now = clock::now();
        let kept = batch.clone();
        if catch_unwind(AssertUnwindSafe(|| stage.pass(batch, now, &mut out))).is_err() {
            out = vec![kept];
            out.extend(take_out(&mut slot));
        } else if stage.due().is_some() {
            self.held.notify_one();
        }
        out
    }

    fn due(&self) -> Option<Instant> {
        self.slot().as_ref().and_then(|stage| stage.due())
    }

    fn release(&self) -> Vec<Batch> {
        let mut slot = self.slot();
        let mut out = Vec::new();
        if let Some(stage) = slot.as_mut() {
            let now = clock::now();
            if catch_unwind(AssertUnwindSafe(|| stage.release(now, &mut out))).is_err() {
                out.extend(take_out(&mut slot));
            }
        }
        out
    }

    /// Everything that is held; the stage is gone afterwards.
    fn finish(&self) -> Vec<Batch> {
        take_out(&mut self.slot())
    }

    /// The stage; what panics inside it is caught while the lock is held.
    fn slot(&self) -> MutexGuard<'_, Option<Box<dyn Stage>>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the stage out of its place, with what it can still give away.
fn take_out(slot: &mut Option<Box<dyn Stage>>) -> Vec<Batch> {
    let mut out = Vec::new();
    if let Some(mut stage) = slot.take() {
        // One that panics here keeps what it has not given away.
        let _ = catch_unwind(AssertUnwindSafe(|| stage.finish(&mut out)));
    }
    out
}

impl StageTask {
    /// Begins to let go what is due, through `beyond`, the door behind the stage.
    pub(crate) fn start(slot: Arc<StageSlot>, beyond: Door) -> Self {
        let stop = StopRaiser::new();
        let releasing = tokio::spawn(release(Arc::clone(&slot), beyond, stop.stop()));
        Self {
            slot,
            stop,
            releasing,
        }
    }

    /// Lets go everything through `beyond`, which waits for room until the deadline.
    pub(crate) async fn end(mut self, beyond: &Door, deadline: Instant) {
        self.stop.raise();
        // Still sending at the deadline: the sinks without room have lost it, and count it.
        let _ = timeout_at(deadline, &mut self.releasing).await;
        for batch in self.slot.finish() {
            // Too late or closed: in both cases the ledger has it.
            let _ = timeout_at(deadline, beyond.send(batch)).await;
        }
    }

    /// Lets go everything through `beyond`, which is closed: it is counted as lost.
    pub(crate) fn abandon(&self, beyond: &Door) {
        for batch in self.slot.finish() {
            let _ = beyond.offer(batch);
        }
    }
}

impl Drop for StageTask {
    fn drop(&mut self) {
        self.releasing.abort();
    }
}

async fn release(slot: Arc<StageSlot>, beyond: Door, stop: Stop) {
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
            () = stop.wait() => return,
            () = due => {}
        }
        for batch in slot.release() {
            // A closed door has counted it.
            let _ = beyond.send(batch).await;
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
