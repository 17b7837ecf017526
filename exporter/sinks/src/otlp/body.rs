//! CPU-bound work on a request body, on the blocking pool: JSON and compression.

use bytes::Bytes;
use pulsetrain_otlp::{WireError, json};
use pulsetrain_pipeline::Batch;

use super::config::Compression;

/// The reason why a body cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("not sent: the batch is not OTLP protobuf: {0}")]
    Wire(#[from] WireError),
    #[error("not sent: compression failed: {0}")]
    Compress(#[from] std::io::Error),
    #[error("not sent: {0}")]
    Gather(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("not sent: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Returns the batch as OTLP/JSON.
pub(super) async fn json(batch: &Batch) -> Result<Bytes, BodyError> {
    let (signal, bytes) = (batch.signal(), batch.bytes().clone());
    let text = tokio::task::spawn_blocking(move || {
        let mut text = Vec::with_capacity(3 * bytes.len());
        json::encode(signal, &bytes, &mut text).map(|()| text)
    });
    Ok(text.await??.into())
}

/// Returns the compressed body.
pub(super) async fn compress(body: Bytes, compression: Compression) -> Result<Bytes, BodyError> {
    if compression == Compression::None {
        return Ok(body);
    }
    let compressed = tokio::task::spawn_blocking(move || compression.compress(&body));
    Ok(compressed.await??.into())
}
