//! The compression of request bodies: algorithm and level.

use std::{
    io::{self, Write},
    ops::RangeInclusive,
};

use bytes::Bytes;
use flate2::write::GzEncoder;

use super::RequestError;

/// The levels of gzip.
const GZIP_LEVELS: RangeInclusive<i32> = 1..=9;
/// The levels of zstd (its manual, "Simple API").
const ZSTD_LEVELS: RangeInclusive<i32> = 1..=22;
/// The fastest level, which already removes most of OTLP's repetition; `benches/results/compression.txt` has
/// the figures.
const DEFAULT_LEVEL: i32 = 1;

/// The algorithm and the level of compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// gzip at a level from 1, the fastest, to 9.
    Gzip(u32),
    /// zstd at a level from 1, the fastest, to 22. The OTLP specification does not define it; the Collector's
    /// receivers decode it.
    Zstd(i32),
}

impl Compression {
    /// Returns the compression of this name (`gzip`, `zstd` or `none`, in any case), at a level or at the
    /// fastest one.
    ///
    /// # Errors
    /// The expected text, for an unknown name or a level that the algorithm does not have.
    pub fn named(name: &str, level: Option<i32>) -> Result<Self, &'static str> {
        let within = |levels: RangeInclusive<i32>, expected| match level.unwrap_or(DEFAULT_LEVEL) {
            level if levels.contains(&level) => Ok(level),
            _ => Err(expected),
        };
        match name.to_ascii_lowercase().as_str() {
            "gzip" => within(GZIP_LEVELS, "gzip has the levels 1 to 9")
                .map(|level| Self::Gzip(level.unsigned_abs())),
            "zstd" => within(ZSTD_LEVELS, "zstd has the levels 1 to 22").map(Self::Zstd),
            "none" if level.is_some() => Err("without a compression there is no level: remove it"),
            "none" => Ok(Self::None),
            _ => Err("set it to gzip, zstd or none"),
        }
    }

    /// Returns the content coding for HTTP and gRPC, or `None` without compression.
    pub fn coding(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip(_) => Some("gzip"),
            Self::Zstd(_) => Some("zstd"),
        }
    }

    /// Returns the compressed body. The work is done on the blocking pool.
    ///
    /// # Errors
    /// An error of the encoder.
    pub async fn compress(self, body: Bytes) -> Result<Bytes, RequestError> {
        if self == Self::None {
            return Ok(body);
        }
        let compressed = tokio::task::spawn_blocking(move || self.encode(&body)).await;
        let compressed = compressed.unwrap_or_else(|error| Err(io::Error::other(error)));
        compressed.map(Bytes::from).map_err(RequestError::Compress)
    }

    fn encode(self, body: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(body.to_vec()),
            Self::Gzip(level) => {
                let into = Vec::with_capacity(body.len() / 4);
                let mut encoder = GzEncoder::new(into, flate2::Compression::new(level));
                encoder.write_all(body)?;
                encoder.finish()
            }
            Self::Zstd(level) => zstd::bulk::compress(body, level),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_level_outside_the_range_is_rejected() {
        assert_eq!(Compression::named("GZip", None), Ok(Compression::Gzip(1)));
        assert_eq!(Compression::named("gzip", Some(9)), Ok(Compression::Gzip(9)));
        assert_eq!(Compression::named("zstd", Some(22)), Ok(Compression::Zstd(22)));
        assert_eq!(Compression::named("none", None), Ok(Compression::None));
        for (name, level) in [
            ("gzip", Some(0)),
            ("gzip", Some(10)),
            ("zstd", Some(23)),
            ("none", Some(1)),
        ] {
            assert!(
                Compression::named(name, level).unwrap_err().contains("level"),
                "{name} {level:?}"
            );
        }
        assert!(
            Compression::named("deflate", None)
                .unwrap_err()
                .contains("gzip, zstd or none")
        );
    }
}
