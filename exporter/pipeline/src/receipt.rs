//! Receipts: how a source learns that the sinks are done with its batches.
//!
//! A source that must not forget how far it has read gives its batches a receipt. Every sink's share of a batch holds it
//! (`ledger/account.rs`) until it is delivered, or dropped and counted; the last one to let go settles it.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

/// Watches over one or several batches; settled when the last of them is at its end at every sink.
///
/// ```
/// # use pulsetrain_otlp::Signal;
/// # use pulsetrain_pipeline::{Batch, Receipt};
/// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
/// let is_settled = Arc::new(AtomicBool::new(false));
/// let seen = Arc::clone(&is_settled);
/// let receipt = Arc::new(Receipt::new(move |_| seen.store(true, Ordering::Relaxed)));
/// let batch = Batch::new(Signal::Metrics, 1, vec![0x0a, 0x00]).with_receipt(receipt);
/// assert!(!is_settled.load(Ordering::Relaxed));
/// drop(batch);
/// assert!(is_settled.load(Ordering::Relaxed));
/// ```
pub struct Receipt {
    number: u64,
    settlement: Mutex<Settlement>,
    listener: Mutex<Option<Listener>>,
}

type Listener = Box<dyn FnOnce(Settlement) + Send>;

/// How the batches of one receipt ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// Whether items were lost only because the pipeline shut down, so that a replay can deliver them.
    pub is_cut_off: bool,
}

impl Receipt {
    /// A receipt; `listener` is called once, on whichever thread is the last to be done, and must not wait there.
    pub fn new(listener: impl FnOnce(Settlement) + Send + 'static) -> Self {
        Self {
            number: 0,
            settlement: Mutex::default(),
            listener: Mutex::new(Some(Box::new(listener))),
        }
    }

    /// The same receipt under a number: its source counts what is settled by it, also after a restart.
    #[must_use]
    pub fn numbered(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Notes that a sink was stopped before it could take a batch.
    pub(crate) fn cut_off(&self) {
        let mut settlement = self.settlement.lock().unwrap_or_else(PoisonError::into_inner);
        settlement.is_cut_off = true;
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        let settlement = self.settlement.get_mut().unwrap_or_else(PoisonError::into_inner);
        let listener = self.listener.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(listener) = listener.take() {
            listener(std::mem::take(settlement));
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt").finish_non_exhaustive()
    }
}
