//! Compresses a page while it is written.

use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::accept::Coding;

/// A streaming compressor.
pub(super) enum Compressor {
    Identity(Vec<u8>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
}

/// The fastest level. It reduces the text of a page tenfold.
const LEVEL: u32 = 1;

impl Compressor {
    pub(super) fn new(coding: Coding) -> io::Result<Self> {
        Ok(match coding {
            Coding::Identity => Self::Identity(Vec::new()),
            Coding::Gzip => {
                let encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
                Self::Gzip(Box::new(encoder))
            }
            Coding::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL as i32)?;
                Self::Zstd(Box::new(encoder))
            }
        })
    }

    /// Compresses a chunk. [`take`](Self::take) returns the output.
    pub(super) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Self::Identity(out) => out.write_all(piece),
            Self::Gzip(encoder) => encoder.write_all(piece),
            Self::Zstd(encoder) => encoder.write_all(piece),
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Identity(_) => Ok(()),
            Self::Gzip(encoder) => encoder.try_finish(),
            Self::Zstd(encoder) => encoder.do_finish(),
        }
    }

    /// Returns the size of the available output.
    pub(super) fn ready(&self) -> usize {
        match self {
            Self::Identity(out) => out.len(),
            Self::Gzip(encoder) => encoder.get_ref().len(),
            Self::Zstd(encoder) => encoder.get_ref().len(),
        }
    }

    /// Removes and returns the available output.
    pub(super) fn take(&mut self) -> Vec<u8> {
        match self {
            Self::Identity(out) => std::mem::take(out),
            Self::Gzip(encoder) => std::mem::take(encoder.get_mut()),
            Self::Zstd(encoder) => std::mem::take(encoder.get_mut()),
        }
    }
}
