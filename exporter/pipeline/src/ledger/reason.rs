//! The drop reasons by which the ledger counts.

/// The reason why items did not reach a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue was full when a live source offered the batch.
    QueueFull,
    /// The batch is larger than the capacity of the queue.
    TooLarge,
    /// The pipeline was closed before there was room for the batch.
    Closed,
    /// The receiver accepted the batch except for these items (partial success).
    Rejected,
    /// The receiver rejected the batch permanently.
    Refused,
    /// The receiver does not support the signal of the batch.
    UnsupportedSignal,
    /// The retries reached the limit on time.
    RetriesExhausted,
    /// The outage of the receiver was so long that the batch was not tried, or tried only once.
    Unreachable,
    /// The batch was in a part of the disk queue that cannot be read.
    Unreadable,
    /// The sink panicked while it delivered the batch.
    SinkPanicked,
    /// The deadline of the drain passed first.
    DrainDeadline,
    /// The batch was abandoned: the sending task was cancelled, or the pipeline was dropped without a drain.
    Abandoned,
}

impl DropReason {
    /// All reasons, in the order in which a batch can meet them.
    pub const ALL: [Self; 12] = [
        Self::QueueFull,
        Self::TooLarge,
        Self::Closed,
        Self::Rejected,
        Self::Refused,
        Self::UnsupportedSignal,
        Self::RetriesExhausted,
        Self::Unreachable,
        Self::Unreadable,
        Self::SinkPanicked,
        Self::DrainDeadline,
        Self::Abandoned,
    ];

    /// Returns the word for summaries and telemetry, such as `queue_full`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::TooLarge => "too_large",
            Self::Closed => "closed",
            Self::Rejected => "rejected",
            Self::Refused => "refused",
            Self::UnsupportedSignal => "unsupported_signal",
            Self::RetriesExhausted => "retries_exhausted",
            Self::Unreachable => "unreachable",
            Self::Unreadable => "unreadable",
            Self::SinkPanicked => "sink_panicked",
            Self::DrainDeadline => "drain_deadline",
            Self::Abandoned => "abandoned",
        }
    }

    /// Returns whether only the end of the pipeline kept the items from their sink, so that a replay could deliver them.
    pub(crate) fn is_caused_by_shutdown(self) -> bool {
        matches!(self, Self::Closed | Self::DrainDeadline | Self::Abandoned)
    }
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drop_reason_has_its_own_index_and_label() {
        for (place, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
            assert_eq!(
                DropReason::ALL
                    .iter()
                    .filter(|other| other.as_str() == reason.as_str())
                    .count(),
                1
            );
        }
    }
}
