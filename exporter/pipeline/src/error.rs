//! Errors of the pipeline's users. The fate of items is in the ledger, not here.

/// An error of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The pipeline is being drained or is gone, and accepts no more batches. A source ends when it receives this error.
    #[error("the pipeline is closed and takes no more batches: stop the source")]
    Closed,
}
