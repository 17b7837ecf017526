//! The two record formats, as the Collector's file exporter writes them.
//!
//! `.jsonl`: one OTLP/JSON object a line. `.binpb`: a length in four bytes, big endian, then the protobuf
//! message.

use std::path::Path;

use pulsetrain_otlp::{WireError, json};
use pulsetrain_pipeline::Batch;

use crate::SinkError;

/// A record buffer that has grown over this capacity is released.
const KEPT_CAPACITY: usize = 16 << 20;

/// The encoding of batches in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// `.jsonl`: OTLP/JSON, one object per line.
    JsonLines,
    /// `.binpb`: protobuf, each message after its length in four bytes, big endian.
    LengthPrefixed,
}

impl FileFormat {
    /// Returns the format of a path's extension.
    pub fn from_path(path: &Path) -> Result<Self, SinkError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("jsonl") => Ok(Self::JsonLines),
            Some("binpb") => Ok(Self::LengthPrefixed),
            _ => Err(SinkError::FileFormat {
                path: path.to_owned(),
            }),
        }
    }
}

/// The reason why a batch cannot be a record.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error("the batch is not OTLP protobuf: {0}")]
    Wire(#[from] WireError),
    #[error("the batch has {0} bytes, more than a length prefix can hold: make smaller batches")]
    TooLong(usize),
}

/// Frames batches in a reused buffer.
#[derive(Default)]
pub(super) struct Record {
    text: Vec<u8>,
    prefix: [u8; 4],
}

impl Record {
    /// Returns the record of `batch` in two parts. Protobuf is not copied.
    pub(super) fn frame<'a>(
        &'a mut self,
        format: FileFormat,
        batch: &'a Batch,
    ) -> Result<[&'a [u8]; 2], RecordError> {
        match format {
            FileFormat::JsonLines => {
                self.text.clear();
                self.text.shrink_to(KEPT_CAPACITY);
                json::encode(batch.signal(), batch.bytes(), &mut self.text)?;
                self.text.push(b'\n');
                Ok([&[], &self.text])
            }
            FileFormat::LengthPrefixed => {
                let length = batch.bytes().len();
                self.prefix = u32::try_from(length)
                    .map_err(|_| RecordError::TooLong(length))?
                    .to_be_bytes();
                Ok([&self.prefix, batch.bytes()])
            }
        }
    }
}
