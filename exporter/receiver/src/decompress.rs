//! The compression of request bodies.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use http::HeaderMap;

use crate::rejection::Rejection;

/// The largest window of zstd, as a power of two: 32 MiB, which the Collector's exporter asks for at its highest level. Every decoder
/// should support 8 MiB (RFC 8878, section 3.1.1.1.2), and a frame may ask for 2 GiB.
const MAX_WINDOW_LOG: u32 = 25;

/// The compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// Parses the value of a header.
    pub(super) fn from_header(headers: &HeaderMap, name: &str) -> Result<Self, Rejection> {
        let word = headers.get(name);
        let word = word.map_or("", |word| word.to_str().unwrap_or("?"));
        Self::named(word).ok_or_else(|| {
            Rejection::Unsupported(format!(
                "{name} {word} is not supported; use gzip, zstd or identity"
            ))
        })
    }

    fn named(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Returns the memory that the decoder of a body needs besides the result. That of gzip is negligible.
    pub(super) fn window_bytes(self, body: &[u8]) -> usize {
        // RFC 8878, section 3.1.1.1: magic number, frame header descriptor, window descriptor.
        let (Self::Zstd, [_, _, _, _, descriptor, window, ..]) = (self, body) else {
            return 0;
        };
        let is_single_segment = descriptor & 0x20 != 0;
        if is_single_segment {
            // The window is the result.
            return 0;
        }
        let base = 1_u64 << (10 + (window >> 3));
        let bytes = base + base / 8 * u64::from(window & 7);
        bytes.min(1 << MAX_WINDOW_LOG) as usize
    }

    /// Returns the decoder of a body.
    pub(super) fn decoder(self, body: &[u8]) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::Identity => Box::new(body),
            Self::Gzip => Box::new(MultiGzDecoder::new(body)),
            Self::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(body)?;
                decoder.window_log_max(MAX_WINDOW_LOG)?;
                Box::new(decoder)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_of_zstd_is_read_from_the_frame() {
        use std::io::Write;
        let frame = |log: u32| {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(log).unwrap();
            encoder.write_all(&[0; 1000]).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(Coding::Zstd.window_bytes(&frame(20)), 1 << 20);
        assert_eq!(Coding::Zstd.window_bytes(&frame(24)), 1 << 24);
        assert_eq!(Coding::Zstd.window_bytes(b"("), 0);
        assert_eq!(Coding::Gzip.window_bytes(&frame(20)), 0);
    }

    #[test]
    fn unknown_content_encoding_is_not_supported() {
        assert_eq!(Coding::named(" GZIP"), Some(Coding::Gzip));
        assert_eq!(Coding::named("br"), None);
    }
}
