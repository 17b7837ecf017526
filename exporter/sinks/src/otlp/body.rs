//! The work on a request body that is too long for the threads of the network: JSON and gzip, on the blocking pool.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use pulsetrain_otlp::{WireError, json};
use pulsetrain_pipeline::Batch;

/// Why a body could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("not sent: the batch is not OTLP protobuf: {0}")]
    Wire(#[from] WireError),
    #[error("not sent: gzip: {0}")]
    Gzip(#[from] std::io::Error),
    #[error("not sent: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// The batch as OTLP/JSON.
pub(super) async fn json(batch: &Batch) -> Result<Bytes, BodyError> {
    let (signal, bytes) = (batch.signal(), batch.bytes().clone());
    let text = tokio::task::spawn_blocking(move || {
        let mut text = Vec::with_capacity(3 * bytes.len());
        json::encode(signal, &bytes, &mut text).map(|()| text)
    });
    Ok(text.await??.into())
}

/// The body compressed; the fastest level, since telemetry repeats itself and a training machine has better to do.
pub(super) async fn gzip(body: Bytes) -> Result<Bytes, BodyError> {
    let compressed = tokio::task::spawn_blocking(move || {
        let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
        encoder.write_all(&body)?;
        encoder.finish()
    });
    Ok(compressed.await??.into())
}
