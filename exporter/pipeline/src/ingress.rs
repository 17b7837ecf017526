//! The ingress of the pipeline: receives the batches of sources and fans each batch out to the queue of every sink.
//!
//! Live sources call [`Ingress::try_send_or_drop`]: a slow sink loses only its own batches, the oldest first. Imports send and wait for
//! room at every sink. Sources that can push back, such as receivers and followed logs, reserve room at the required sinks first. Sinks
//! can be added and removed while batches pass: each batch reaches the sinks of its moment.

use std::{
    fmt,
    future::poll_fn,
    pin::pin,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    task::Poll,
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{timeout, timeout_at},
};

use crate::{
    Batch, PipelineError, Reservation, ReserveError, SourceId, clock,
    queue::{QueueSender, UnqueuedBatch},
    stage::StageSlot,
};

/// The interval at which a thread that waits for room checks whether to give up.
const GIVE_UP_CHECK: Duration = Duration::from_millis(20);

/// The handle with which sources send batches to a pipeline; clones share it.
///
/// Every batch that is passed to the pipeline is counted in the [`Ledger`](crate::Ledger) of every sink, even if the
/// pipeline is closed. The error only signals the source to stop.
#[derive(Clone, Debug)]
pub struct Ingress {
    queues: Arc<RwLock<Queues>>,
    changes: SinkChanges,
    /// The source of the batches that are sent through this ingress.
    source: SourceId,
    watcher: Option<Watcher>,
    stage: Option<Arc<StageSlot>>,
    runtime: Handle,
}

/// A callback for every batch that goes through an ingress.
#[derive(Clone)]
struct Watcher(Arc<dyn Fn(&Batch) + Send + Sync>);

/// Applies several changes of sinks atomically: batches wait while the changes are made.
#[derive(Clone, Debug, Default)]
pub struct SinkChanges(Arc<RwLock<()>>);

impl SinkChanges {
    /// Blocks every batch until the guard is dropped. Hold the guard only for the changes, and do not wait while holding
    /// it.
    pub fn begin(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no change is being made, and delays the next change until the guard is dropped.
    fn wait(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queues of all sinks, replaced in one step.
type Queues = Arc<[Arc<QueueSender>]>;

impl Ingress {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            queues: Arc::new(RwLock::new(Arc::new([]))),
            changes: SinkChanges::default(),
            source: SourceId::NONE,
            watcher: None,
            stage: None,
            runtime,
        }
    }

    /// Returns the same ingress with a stage in front of the fan-out.
    pub(crate) fn with_stage(&self, stage: Arc<StageSlot>) -> Self {
        Self {
            stage: Some(stage),
            ..self.clone()
        }
    }

    /// Returns the same ingress for one source. `watch` is called with every batch of the ingress, and must not block.
    #[must_use]
    pub fn watched(&self, watch: impl Fn(&Batch) + Send + Sync + 'static) -> Self {
        Self {
            watcher: Some(Watcher(Arc::new(watch))),
            ..self.clone()
        }
    }

    /// Returns the same ingress for the source of this name. Sinks whose [`SinkRoute`](crate::SinkRoute) lacks the name
    /// do not receive its batches.
    #[must_use]
    pub fn of_source(&self, source: &str) -> Self {
        Self {
            source: SourceId::new(source),
            ..self.clone()
        }
    }

    pub(crate) fn changes(&self) -> SinkChanges {
        self.changes.clone()
    }

    /// Replaces the queues of all sinks at once.
    pub(crate) fn set_queues(&self, queues: impl IntoIterator<Item = Arc<QueueSender>>) {
        *self.queues.write().unwrap_or_else(PoisonError::into_inner) = queues.into_iter().collect();
    }

    /// Sends a batch without ever waiting: for live sources. A full queue in memory drops the oldest batches that were
    /// offered. If that makes no room, or if a disk queue is full, the sink loses this batch.
    ///
    /// # Errors
    /// [`PipelineError::Closed`] if the pipeline accepts no more batches.
    pub fn try_send_or_drop(&self, batch: Batch) -> Result<(), PipelineError> {
        for batch in self.through_stage(batch) {
            self.fan_out(&batch, |queue, batch| queue.try_send_or_drop(batch));
        }
        self.open()
    }

    /// Reserves room for these batches at every required sink, without waiting.
    ///
    /// # Errors
    /// [`ReserveError::Full`] if a sink has no room now, [`ReserveError::TooLarge`] if a sink can never have room,
    /// [`ReserveError::Closed`] if the pipeline accepts no more batches.
    pub fn try_reserve(&self, batches: &[Batch]) -> Result<Reservation, ReserveError> {
        Reservation::now(&self.queues(), self.source, batches)
    }

    /// Like [`try_reserve`](Self::try_reserve), but blocks the thread until there is room, or until `gives_up` returns
    /// `true`. It is called every 20 ms. Batches that are too large for a queue do not wait for it.
    ///
    /// # Errors
    /// [`ReserveError::Full`] if the caller gave up, [`ReserveError::Closed`] if the pipeline accepts no more batches.
    ///
    /// # Panics
    /// Panics if it has to wait on a thread that runs async tasks.
    pub fn blocking_reserve(
        &self,
        batches: &[Batch],
        mut gives_up: impl FnMut() -> bool,
    ) -> Result<Reservation, ReserveError> {
        loop {
            let queues = self.queues();
            match self.blocking_reserve_at(&queues, batches, &mut gives_up) {
                // A sink was replaced or removed while the thread waited for its queue.
                Err(ReserveError::Closed) if !Arc::ptr_eq(&queues, &self.queues()) => {}
                outcome => return outcome,
            }
        }
    }

    fn blocking_reserve_at(
        &self,
        queues: &Queues,
        batches: &[Batch],
        gives_up: &mut impl FnMut() -> bool,
    ) -> Result<Reservation, ReserveError> {
        match Reservation::now(queues, self.source, batches) {
            Err(ReserveError::Full | ReserveError::TooLarge { .. }) => {}
            outcome => return outcome,
        }
        self.runtime.block_on(async {
            // One wait keeps the place in the FIFO order of the waiting senders.
            let mut reserved = pin!(Reservation::wait_for_space(queues, self.source, batches));
            loop {
                if gives_up() {
                    return Err(ReserveError::Full);
                }
                if let Ok(reserved) = timeout(GIVE_UP_CHECK, &mut reserved).await {
                    return reserved;
                }
            }
        })
    }

    /// Sends a batch with its reserved room, and never waits. The batches that a stage adds always fit; a full
    /// best-effort sink loses the batch. Before a source acknowledges the batch it waits for [`Reservation::held`].
    ///
    /// # Errors
    /// [`PipelineError::Closed`] if the pipeline accepts no more batches.
    pub fn send_reserved(&self, batch: Batch, reserved: &mut Reservation) -> Result<(), PipelineError> {
        for batch in self.through_stage(batch) {
            self.fan_out(&batch, |queue, batch| {
                if queue.is_required() && !batch.is_best_effort() {
                    let confirmation = queue.send_reserved(batch, reserved.permit(queue));
                    reserved.wait_for(confirmation);
                } else {
                    queue.try_send_or_drop(batch);
                }
            });
        }
        self.open()
    }

    /// Sends a batch that a stage held, and never waits: one full sink must not block the others. A required sink accepts
    /// it beyond its limit, by no more than stages hold. A full best-effort sink drops as in
    /// [`try_send_or_drop`](Self::try_send_or_drop).
    pub(crate) fn send_released(&self, batch: &Batch) {
        self.fan_out(batch, |queue, batch| {
            if queue.is_required() && !batch.is_best_effort() {
                queue.send_reserved(batch, None);
            } else {
                queue.try_send_or_drop(batch);
            }
        });
    }

    /// Waits until the best-effort sinks have room for these batches too, so that a backlog does not overrun them, but no
    /// longer than `within` in total. A sink that made a sender wait in vain is not waited for again until it has room.
    ///
    /// # Panics
    /// Panics if it has to wait on a thread that runs async tasks.
    pub fn blocking_pace(&self, batches: &[Batch], within: Duration) {
        let deadline = clock::later(clock::now(), within);
        for queue in self.queues().iter().filter(|queue| !queue.is_required()) {
            let of_queue = batches
                .iter()
                .filter(|batch| queue.accepts(batch.signal(), self.source));
            let mut of_queue = of_queue.peekable();
            if of_queue.peek().is_none() {
                continue;
            }
            let bytes = of_queue.map(|batch| batch.bytes().len()).sum();
            if queue.try_reserve(1, bytes).is_some() {
                queue.set_lagging(false);
            } else if !queue.is_lagging() {
                let waited = async { timeout_at(deadline, queue.reserve(1, bytes)).await };
                queue.set_lagging(self.runtime.block_on(waited).is_err());
            }
        }
    }

    /// Sends a batch and waits until every sink has room for it: for imports. Sinks with room receive the batch at once.
    ///
    /// If the future is dropped early, the sinks that had no room yet lose the batch and count the loss.
    ///
    /// # Errors
    /// [`PipelineError::Closed`] if the pipeline accepts no more batches.
    pub async fn send(&self, batch: Batch) -> Result<(), PipelineError> {
        self.wait_for_room(self.send_to_queues_with_space(batch)).await
    }

    /// Like [`send`](Self::send), for threads that read files; blocks the thread while it waits.
    ///
    /// # Errors
    /// [`PipelineError::Closed`] if the pipeline accepts no more batches.
    ///
    /// # Panics
    /// Panics if it has to wait on a thread that runs async tasks: use a separate thread or `spawn_blocking`.
    pub fn blocking_send(&self, batch: Batch) -> Result<(), PipelineError> {
        let waiting = self.send_to_queues_with_space(batch);
        if waiting.is_empty() {
            self.open()
        } else {
            self.runtime.block_on(self.wait_for_room(waiting))
        }
    }

    /// Closes all queues. Senders that wait for room get an error; queued batches stay.
    pub(crate) fn close(&self) {
        for queue in self.queues().iter() {
            queue.close();
        }
    }

    /// Passes the batch to every sink that has room now, and returns the waiting copies for the others.
    fn send_to_queues_with_space(&self, batch: Batch) -> Vec<(Arc<QueueSender>, UnqueuedBatch)> {
        let mut waiting = Vec::new();
        for batch in self.through_stage(batch) {
            self.fan_out(&batch, |queue, batch| {
                if let Err(no_room) = queue.try_send(batch) {
                    waiting.push((Arc::clone(queue), no_room));
                }
            });
        }
        waiting
    }

    /// Passes a batch through the stage, if there is one, and returns the batches for the sinks.
    fn through_stage(&self, batch: Batch) -> Vec<Batch> {
        let batch = match self.source {
            SourceId::NONE => batch,
            source => batch.from_source(source),
        };
        if let Some(Watcher(watch)) = &self.watcher {
            watch(&batch);
        }
        match &self.stage {
            Some(stage) => stage.pass(batch),
            None => vec![batch],
        }
    }

    /// Puts the batch into the queue of every sink that accepts its signal and its source; all copies share the bytes.
    /// Changes of the sinks wait for the call, so a queue that is removed is closed only after the batch is in it.
    fn fan_out(&self, batch: &Batch, mut put: impl FnMut(&Arc<QueueSender>, Batch)) {
        let _no_change = self.changes.wait();
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        for queue in queues
            .iter()
            .filter(|queue| queue.accepts(batch.signal(), batch.source()))
        {
            put(queue, batch.clone());
        }
    }

    /// Waits at all queues at once, so that a full sink delays only the sender and not the other sinks.
    async fn wait_for_room(
        &self,
        waiting: Vec<(Arc<QueueSender>, UnqueuedBatch)>,
    ) -> Result<(), PipelineError> {
        let mut waiting: Vec<_> = waiting
            .into_iter()
            .map(|(queue, no_room)| Box::pin(async move { queue.enqueue_when_space(no_room).await }))
            .collect();
        poll_fn(|context| {
            waiting.retain_mut(|room| room.as_mut().poll(context).is_pending());
            if waiting.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        self.open()
    }

    fn queues(&self) -> Queues {
        Arc::clone(&self.queues.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns an error if there are sinks and all of their queues are closed.
    fn open(&self) -> Result<(), PipelineError> {
        let queues = self.queues();
        let closed = !queues.is_empty() && queues.iter().all(|queue| queue.is_closed());
        if closed {
            Err(PipelineError::Closed)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}
