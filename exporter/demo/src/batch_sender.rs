//! Sends batches into the pipeline: batches of the past wait for every sink, live batches only for a limited time.

use std::time::Duration;

use pulsetrain_pipeline::{
    Batch, CancellationToken, Ingress, Reservation, ReserveError,
    clock::{self, Instant},
};

/// The longest wait of a live job for capacity of a sink: long enough to deliver the rest of the past.
const MAX_CAPACITY_WAIT: Duration = Duration::from_secs(10);

/// Sends batches.
pub(crate) struct BatchSender {
    ingress: Ingress,
    /// Whether the wait for a required sink timed out, and the sink has had no capacity since.
    is_lagging: bool,
}

impl BatchSender {
    pub(crate) fn new(ingress: Ingress) -> Self {
        Self {
            ingress,
            is_lagging: false,
        }
    }

    /// Sends batches. Returns whether the pipeline accepts more.
    pub(crate) fn send(&mut self, batches: &[Batch], is_live: bool, stop: &CancellationToken) -> bool {
        if is_live {
            self.send_live(batches, stop)
        } else {
            let mut batches = batches.iter();
            batches.all(|batch| self.ingress.blocking_send(batch.clone()).is_ok())
        }
    }

    fn send_live(&mut self, batches: &[Batch], stop: &CancellationToken) -> bool {
        let deadline = clock::later(clock::now(), MAX_CAPACITY_WAIT);
        let patience = if self.is_lagging {
            Duration::ZERO
        } else {
            MAX_CAPACITY_WAIT
        };
        self.ingress.blocking_pace(batches, patience);
        let reserved = self.reserve(batches, deadline, stop);
        let is_full = matches!(reserved, Err(ReserveError::Full));
        if is_full && !self.is_lagging && stop.is_cancelled() {
            // The job ends before this step, for all sinks.
            return false;
        }
        self.is_lagging = is_full;
        let mut reserved = reserved.ok();
        batches.iter().cloned().all(|batch| {
            let sent = match &mut reserved {
                Some(reserved) => self.ingress.send_reserved(batch, reserved),
                None => self.ingress.try_send_or_drop(batch),
            };
            sent.is_ok()
        })
    }

    fn reserve(
        &self,
        batches: &[Batch],
        deadline: Instant,
        stop: &CancellationToken,
    ) -> Result<Reservation, ReserveError> {
        match self.ingress.try_reserve(batches) {
            Err(ReserveError::Full) if !self.is_lagging => {
                let gives_up = || stop.is_cancelled() || clock::now() >= deadline;
                self.ingress.blocking_reserve(batches, gives_up)
            }
            reserved => reserved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_otlp::Signal;
    use pulsetrain_pipeline::{BoxFuture, Delivery, Pipeline, Sink};

    /// A sink that never ends a delivery.
    struct Hanging;

    impl Sink for Hanging {
        fn name(&self) -> &str {
            "hanging"
        }

        fn deliver<'a>(&'a mut self, _: &'a Batch) -> BoxFuture<'a, Delivery> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn step_without_room_at_the_stop_is_not_sent_and_not_lost() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let guard = runtime.enter();
        let (pipeline, ingress) = Pipeline::builder().sink(Box::new(Hanging)).start();
        drop(guard);
        let stop = CancellationToken::new();
        stop.cancel();
        let mut sender = BatchSender::new(ingress);
        let mut step = || sender.send(&[Batch::new(Signal::Traces, 1, vec![0; 8])], true, &stop);
        let sent = (0..5_000).take_while(|_| step()).count();
        assert!(sent < 5_000, "the queue is never full");
        let counts = &pipeline.ledger().snapshot()[0];
        assert_eq!((counts.accepted, counts.lost_items()), (sent as u64, 0));
    }
}
