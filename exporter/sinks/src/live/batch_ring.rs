//! A bounded buffer of recent batches.

use std::{collections::VecDeque, io::Write, mem::size_of, time::Duration};

use bytes::Bytes;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, clock::Instant};

use pulsetrain_to_perfetto::{PerfettoConfig, PerfettoError, PerfettoMapper, PerfettoSummary};

/// Batches in order of arrival.
#[derive(Debug, Default)]
pub(super) struct BatchRing {
    batches: VecDeque<HeldBatch>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct HeldBatch {
    at: Instant,
    signal: Signal,
    bytes: Bytes,
}

impl BatchRing {
    /// Returns the memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Returns the memory use of a batch in bytes.
    pub(super) fn size_of(batch: &Batch) -> usize {
        memory_of(batch.bytes())
    }

    pub(super) fn push(&mut self, batch: &Batch, at: Instant) {
        self.bytes += Self::size_of(batch);
        self.batches.push_back(HeldBatch {
            at,
            signal: batch.signal(),
            bytes: batch.bytes().clone(),
        });
    }

    /// Evicts the oldest batches until the rest uses at most `max_bytes` and is no older than `oldest`.
    /// Returns the number evicted for lack of memory.
    pub(super) fn forget(&mut self, max_bytes: usize, oldest: Option<Instant>) -> u64 {
        let mut forgotten = 0;
        while let Some(first) = self.batches.front() {
            let has_no_room = self.bytes > max_bytes;
            if !has_no_room && oldest.is_none_or(|oldest| first.at >= oldest) {
                break;
            }
            self.bytes -= memory_of(&first.bytes);
            self.batches.pop_front();
            forgotten += u64::from(has_no_room);
        }
        forgotten
    }

    /// Returns the batches since `oldest`, or all. The bytes are shared.
    pub(super) fn since(&self, oldest: Option<Instant>) -> BatchSnapshot {
        let kept = self.batches.iter();
        let wanted = kept.filter(|kept| oldest.is_none_or(|oldest| kept.at >= oldest));
        BatchSnapshot(wanted.map(|kept| (kept.signal, kept.bytes.clone())).collect())
    }
}

/// Returns the memory use of a batch: its bytes, its slot in a ring that may be half empty, and 64 bytes for
/// the reference count and allocator rounding. Sources keep small batches in memory of their own.
fn memory_of(bytes: &Bytes) -> usize {
    const ALLOCATION: usize = 64;
    bytes.len() + 2 * size_of::<HeldBatch>() + ALLOCATION
}

/// The batches at one time.
#[derive(Debug)]
pub(super) struct BatchSnapshot(Vec<(Signal, Bytes)>);

impl BatchSnapshot {
    /// Writes the batches as one trace. An invalid batch is written up to its error.
    pub(super) fn draw<W: Write>(
        self,
        config: PerfettoConfig,
        out: W,
    ) -> Result<(W, PerfettoSummary), PerfettoError> {
        let mut mapper = PerfettoMapper::new(config);
        for (signal, bytes) in self.0 {
            match mapper.add(signal, bytes) {
                Ok(()) | Err(PerfettoError::Wire(_)) => {}
                Err(error) => return Err(error),
            }
        }
        mapper.write(out)
    }
}

/// Returns the time `ago` before `now`, or `None` before the start of the clock.
pub(super) fn before(now: Instant, ago: Duration) -> Option<Instant> {
    now.checked_sub(ago)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_pipeline::clock;

    fn batch(bytes: usize) -> Batch {
        Batch::new(Signal::Traces, 1, vec![0; bytes])
    }

    #[test]
    fn oldest_batches_are_evicted_at_the_limit_and_counted() {
        let now = clock::now();
        let mut ring = BatchRing::default();
        let one = BatchRing::size_of(&batch(100));
        for _ in 0..4 {
            ring.push(&batch(100), now);
        }
        assert_eq!(ring.bytes(), 4 * one);
        assert_eq!(ring.forget(2 * one + 50, None), 2);
        assert_eq!((ring.bytes(), ring.since(None).0.len()), (2 * one, 2));
        assert_eq!(ring.forget(0, None), 2);
        assert!(ring.is_empty() && ring.bytes() == 0);
    }

    #[test]
    fn old_batches_are_evicted_and_not_counted() {
        let start = clock::now();
        let mut ring = BatchRing::default();
        for second in 0..5 {
            ring.push(&batch(1), start + Duration::from_secs(second));
        }
        let from = |second| Some(start + Duration::from_secs(second));
        assert_eq!(ring.since(from(3)).0.len(), 2);
        assert_eq!(ring.forget(usize::MAX, from(2)), 0);
        assert_eq!(ring.since(None).0.len(), 3);
    }
}
