//! What can go wrong for someone who uses the pipeline. What happens to items is in the ledger, not here.

/// An error of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The pipeline is being drained, or is gone: it takes no more batches. A source ends when it sees this.
    #[error("the pipeline is closed and takes no more batches: stop the source")]
    Closed,
}
