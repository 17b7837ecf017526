//! The compression of request bodies.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// The largest window of zstd, as a power of two: 8 MiB, which every decoder should support (RFC 8878, section 3.1.1.1.2). A frame may
/// ask for 2 GiB.
const MAX_WINDOW_LOG: u32 = 23;

/// The compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// Parses the value of `Content-Encoding`.
    pub(super) fn named(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
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
    fn unknown_content_encoding_is_not_supported() {
        assert_eq!(Coding::named(" GZIP"), Some(Coding::Gzip));
        assert_eq!(Coding::named("br"), None);
    }
}
