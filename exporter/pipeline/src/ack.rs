//! Acks notify a source when all sinks have finished its batches.
//!
//! A source with checkpoints attaches an ack to its batches. Each sink's copy of a batch holds the ack (`ledger/account.rs`) until the
//! copy is delivered, or dropped and counted. Dropping the last reference calls the listener.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

/// The acknowledgement of one or several batches. Its listener is called when every sink has finished the last of them.
///
/// ```
/// # use pulsetrain_otlp::Signal;
/// # use pulsetrain_pipeline::{Batch, Ack};
/// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
/// let is_acked = Arc::new(AtomicBool::new(false));
/// let seen = Arc::clone(&is_acked);
/// let ack = Arc::new(Ack::new(move |_| seen.store(true, Ordering::Relaxed)));
/// let batch = Batch::new(Signal::Metrics, 1, vec![0x0a, 0x00]).with_ack(ack);
/// assert!(!is_acked.load(Ordering::Relaxed));
/// drop(batch);
/// assert!(is_acked.load(Ordering::Relaxed));
/// ```
pub struct Ack {
    number: u64,
    outcome: Mutex<AckOutcome>,
    listener: Mutex<Option<Listener>>,
}

type Listener = Box<dyn FnOnce(AckOutcome) + Send>;

/// The outcome of the batches that share one ack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckOutcome {
    /// Whether items were lost only because the pipeline shut down, so that a replay can deliver them.
    pub is_cut_off: bool,
}

impl Ack {
    /// Creates an ack. `listener` is called once, on the thread of the sink that finishes last, and must not block it.
    pub fn new(listener: impl FnOnce(AckOutcome) + Send + 'static) -> Self {
        Self {
            number: 0,
            outcome: Mutex::default(),
            listener: Mutex::new(Some(Box::new(listener))),
        }
    }

    /// Sets the number of the ack. The source orders its acks by number, also across restarts.
    #[must_use]
    pub fn numbered(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Records that a sink was stopped before it could accept a batch.
    pub(crate) fn cut_off(&self) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.is_cut_off = true;
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        let outcome = self.outcome.get_mut().unwrap_or_else(PoisonError::into_inner);
        let listener = self.listener.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listener.take() {
            listener(std::mem::take(outcome));
        }
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ack").finish_non_exhaustive()
    }
}
