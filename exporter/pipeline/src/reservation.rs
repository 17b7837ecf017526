//! Reservations: room at every required sink, acquired before a batch is sent.
//!
//! A source with a reservation can acknowledge a batch or move a position: no required sink drops the batch because it is
//! full.

use std::sync::Arc;

use pulsetrain_otlp::Signals;

use crate::{
    Batch, SourceId, clock,
    queue::{Confirmation, QueuePermit, QueueSender},
};

/// Room at every required sink; dropping the reservation releases the unused room.
#[derive(Debug, Default)]
pub struct Reservation {
    permits: Vec<(Arc<QueueSender>, QueuePermit)>,
    /// The confirmations of the batches that were sent with the reservation and are not held at once.
    confirmations: Vec<Confirmation>,
}

/// The end of the pipeline lost a batch before a required sink held it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a required sink ended, or its disk queue could not write the batch")]
pub struct NotHeld;

/// The error of a failed reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// A required sink has no room now.
    #[error("the queue of a required sink is full")]
    Full,
    /// A batch is larger than the queue of a required sink can ever hold.
    #[error("the batch is larger than the {limit} bytes that the queue of a required sink holds")]
    TooLarge {
        /// The maximum size of a batch in bytes.
        limit: usize,
    },
    /// The pipeline accepts no more batches.
    #[error("the pipeline is closed")]
    Closed,
}

/// The demand of a reservation: the source, the signals, the number of batches and the sum of their bytes.
#[derive(Clone, Copy, Debug)]
struct Demand {
    source: SourceId,
    signals: Signals,
    batches: u32,
    bytes: usize,
}

impl Demand {
    /// Returns the demand of these batches of a source.
    fn new(source: SourceId, batches: &[Batch]) -> Self {
        Self {
            source,
            signals: batches.iter().map(Batch::signal).collect(),
            batches: u32::try_from(batches.len()).unwrap_or(u32::MAX),
            bytes: batches.iter().map(|batch| batch.bytes().len()).sum(),
        }
    }

    /// Returns whether a queue belongs to a required sink that accepts some of the batches.
    fn concerns(&self, queue: &QueueSender) -> bool {
        queue.is_required()
            && self
                .signals
                .iter()
                .any(|signal| queue.accepts(signal, self.source))
    }
}

impl Reservation {
    /// Acquires room at each of the queues without waiting.
    pub(crate) fn now(
        queues: &[Arc<QueueSender>],
        source: SourceId,
        batches: &[Batch],
    ) -> Result<Self, ReserveError> {
        let demand = Demand::new(source, batches);
        let Demand { batches, bytes, .. } = demand;
        let mut permits = Vec::new();
        for queue in queues.iter().filter(|queue| demand.concerns(queue)) {
            let limit = queue.max_bytes();
            if bytes > limit {
                return Err(ReserveError::TooLarge { limit });
            }
            let Some(permit) = queue.try_reserve(batches, bytes) else {
                return Err(if queue.is_closed() {
                    ReserveError::Closed
                } else {
                    ReserveError::Full
                });
            };
            permits.push((Arc::clone(queue), permit));
        }
        Ok(Self::new(permits))
    }

    /// Waits until every required sink holds the batches that were sent with this reservation. Only then may a source
    /// acknowledge them.
    ///
    /// - With a disk queue, the batch is in the disk queue, as its sync policy demands.
    /// - With [`held_when_delivered`](crate::SinkTaskConfig::held_when_delivered), the sink has delivered the batch. While the
    ///   sink takes more than two seconds, its queue in memory is enough.
    /// - Otherwise the queue in memory holds the batch at once.
    ///
    /// # Errors
    /// [`NotHeld`] if a batch was lost before.
    pub async fn held(self) -> Result<(), NotHeld> {
        // Dropping the permits releases the unused room.
        drop(self.permits);
        let deadline = clock::later(clock::now(), Confirmation::MAX_DELIVERY_WAIT);
        for confirmation in self.confirmations {
            confirmation.wait(deadline).await?;
        }
        Ok(())
    }

    /// Records that a batch is not held yet.
    pub(crate) fn wait_for(&mut self, confirmation: Option<Confirmation>) {
        self.confirmations.extend(confirmation);
    }

    fn new(permits: Vec<(Arc<QueueSender>, QueuePermit)>) -> Self {
        Self {
            permits,
            confirmations: Vec::new(),
        }
    }

    /// Waits for room at each of the queues. All waiters wait in the order of the sinks, which prevents deadlocks.
    pub(crate) async fn wait_for_space(
        queues: &[Arc<QueueSender>],
        source: SourceId,
        batches: &[Batch],
    ) -> Result<Self, ReserveError> {
        let demand = Demand::new(source, batches);
        let mut permits = Vec::new();
        for queue in queues.iter().filter(|queue| demand.concerns(queue)) {
            let permit = queue
                .reserve(demand.batches, demand.bytes)
                .await
                .ok_or(ReserveError::Closed)?;
            permits.push((Arc::clone(queue), permit));
        }
        Ok(Self::new(permits))
    }

    /// Returns the reserved permit of a queue.
    pub(crate) fn permit(&mut self, queue: &Arc<QueueSender>) -> Option<&mut QueuePermit> {
        let mut permits = self.permits.iter_mut();
        permits.find_map(|(of, permit)| Arc::ptr_eq(of, queue).then_some(permit))
    }
}
