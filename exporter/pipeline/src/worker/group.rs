//! The batches of one request: one batch, or several of one signal merged into one.

use pulsetrain_otlp::{Signal, wire::Reader};

use crate::{Batch, DropReason, Problem, queue::Queued, successor::Successor};

/// A queued batch with its place in the order of its sink task.
#[derive(Debug)]
pub(super) struct StagedBatch {
    pub(super) queued: Queued,
    /// The place in the order in which batches left the queue; the parts of a split batch share it.
    pub(super) place: u64,
    /// The part of a divided request that the batch belongs to. Only batches of the same part are merged.
    pub(super) part: Option<u64>,
    /// The number of the first request that started after a refusal of this batch, with or without others; `None` if it was not
    /// refused.
    pub(super) refused_at: Option<u64>,
}

/// The batches of one request, oldest first; never empty.
#[derive(Debug)]
pub(super) struct Group(Vec<StagedBatch>);

impl Group {
    /// Returns a group of these batches, at least one.
    pub(super) fn new(batches: Vec<StagedBatch>) -> Self {
        debug_assert!(!batches.is_empty(), "a request has a batch");
        Self(batches)
    }

    pub(super) fn signal(&self) -> Signal {
        self.0
            .first()
            .map_or(Signal::Traces, |first| first.queued.batch().signal())
    }

    /// Returns whether several batches were merged.
    pub(super) fn is_merged(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns the size of the request in bytes.
    pub(super) fn bytes(&self) -> usize {
        let lengths = self.0.iter().map(|staged| staged.queued.batch().bytes().len());
        lengths.sum()
    }

    /// Returns the place of the first batch.
    pub(super) fn place(&self) -> u64 {
        self.0.first().map_or(0, |first| first.place)
    }

    /// Returns the number of the first request that started after the refusal of every batch, or `None` if one was not refused.
    pub(super) fn refused_at(&self) -> Option<u64> {
        let refused = self.0.iter().map(|staged| staged.refused_at);
        refused.reduce(|one, other| Some(one?.max(other?))).flatten()
    }

    /// Marks the batches that were not refused before as refused.
    pub(super) fn mark_refused(&mut self, next_request: u64) {
        for staged in &mut self.0 {
            staged.refused_at.get_or_insert(next_request);
        }
    }

    pub(super) fn into_batches(self) -> Vec<StagedBatch> {
        self.0
    }

    /// Returns the payload of the request: the only batch, or the concatenation of all. Concatenated messages are one
    /// message with the elements of all (<https://protobuf.dev/programming-guides/encoding/#last-one-wins>).
    pub(super) fn payload(&self) -> Batch {
        let batches = || self.0.iter().map(|staged| staged.queued.batch());
        if let [only] = self.0.as_slice() {
            return only.queued.batch().clone();
        }
        let mut bytes = Vec::with_capacity(batches().map(|batch| batch.bytes().len()).sum());
        let mut items = 0u32;
        for batch in batches() {
            bytes.extend_from_slice(batch.bytes());
            items = items.saturating_add(batch.items());
        }
        Batch::new(self.signal(), items, bytes)
    }

    /// Settles the batches: the receiver accepted all items except for `rejected`. The receiver does not identify their
    /// batches, so they are subtracted from the first ones to make the sum correct.
    pub(super) fn delivered_except(self, mut rejected: u64, problem: &Problem) {
        for StagedBatch { queued, .. } in self.0 {
            let of_batch = rejected.min(queued.batch().items().into());
            rejected -= of_batch;
            match of_batch {
                0 => queued.delivered_except(0, ""),
                _ => queued.delivered_except(of_batch, problem),
            }
        }
    }

    /// Settles every batch as dropped.
    pub(super) fn lost(self, reason: DropReason, problem: &Problem) {
        for staged in self.0 {
            staged.queued.lost(reason, problem);
        }
    }

    /// Hands every batch to the sink that replaces this one, or drops it if there is no such sink.
    pub(super) fn cut(self, successor: &Successor, problem: &Problem) {
        for staged in self.0 {
            successor.take_over(staged.queued, problem);
        }
    }
}

/// Returns whether bytes end between two fields. A message that is truncated inside a field would consume the next one.
pub(super) fn is_complete(batch: &Batch) -> bool {
    Reader::new(batch.bytes()).all(|field| field.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SinkCounts, SinkRoute, SinkTaskConfig, ledger::Account, queue::queue};

    /// Returns a group of batches with these numbers of items, and their account.
    fn group(items: &[u32]) -> (Group, impl Fn() -> SinkCounts) {
        let account = Account::new("test");
        let (sender, mut receiver) = queue(
            &SinkTaskConfig::default(),
            SinkRoute::ALL,
            std::sync::Arc::clone(&account),
        );
        let batches = items.iter().zip(0..).map(|(items, place)| {
            sender.try_send_or_drop(Batch::new(Signal::Logs, *items, vec![0x0a, 1, place as u8]));
            let queued = receiver.try_next().expect("it was offered");
            StagedBatch {
                queued,
                place,
                part: None,
                refused_at: None,
            }
        });
        (Group::new(batches.collect()), move || account.counts())
    }

    #[test]
    fn payload_is_the_batch_itself_or_the_concatenation_of_all() {
        let (one, _) = group(&[3]);
        assert_eq!(one.payload(), Batch::new(Signal::Logs, 3, vec![0x0a, 1, 0]));
        let (two, _) = group(&[3, 4]);
        assert_eq!(
            two.payload(),
            Batch::new(Signal::Logs, 7, vec![0x0a, 1, 0, 0x0a, 1, 1])
        );
    }

    #[test]
    fn rejected_items_of_a_group_are_counted_once() {
        for (rejected, delivered) in [(0, 9), (1, 8), (5, 4), (9, 0), (100, 0)] {
            let (group, counts) = group(&[4, 2, 3]);
            group.delivered_except(rejected, &"too old".into());
            let counts = counts();
            assert_eq!(
                (counts.delivered, counts.dropped_items()),
                (delivered, 9 - delivered)
            );
            assert_eq!(
                (counts.queued, counts.queued_batches, counts.queued_bytes),
                (0, 0, 0)
            );
            assert_eq!(counts.failure.is_some(), rejected >= 9, "{rejected}");
        }
    }

    #[test]
    fn message_that_ends_inside_a_field_is_not_complete() {
        let batch = |bytes: &[u8]| Batch::new(Signal::Logs, 1, bytes.to_vec());
        assert!(is_complete(&batch(&[])) && is_complete(&batch(&[0x0a, 1, b'x', 0x0a, 0])));
        assert!(!is_complete(&batch(&[0x0a, 2, b'x'])) && !is_complete(&batch(&[0x0a])));
    }

    #[test]
    fn parts_of_a_split_batch_share_its_permit_and_account_for_all_its_items() {
        let (group, counts) = group(&[10]);
        let [StagedBatch { queued, .. }] = group.into_batches().try_into().expect("one batch");
        let part = |items| pulsetrain_otlp::split::Part {
            items,
            bytes: vec![0x0a, 0],
        };
        let parts = queued.split(vec![part(4), part(5)]);
        assert_eq!((counts().queued, counts().queued_batches), (10, 2));
        for part in parts {
            part.delivered_except(0, "");
        }
        let counts = counts();
        assert_eq!(
            (
                counts.delivered,
                counts.queued,
                counts.queued_batches,
                counts.queued_bytes
            ),
            (10, 0, 0, 0)
        );
    }
}
