//! Decompresses HTTP bodies up to the limit of a message.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use crate::rejection::Rejection;

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

    /// Decompresses a body to at most `limit` bytes.
    pub(super) fn decompress(self, body: &[u8], limit: usize) -> Result<Vec<u8>, Rejection> {
        match self {
            Self::Identity => Ok(body.to_vec()),
            Self::Gzip => read(MultiGzDecoder::new(body), limit),
            Self::Zstd => read(zstd::Decoder::new(body).map_err(|error| broken(&error))?, limit),
        }
    }
}

fn read(from: impl Read, limit: usize) -> Result<Vec<u8>, Rejection> {
    let mut out = Vec::new();
    // One byte over the limit shows that the body is too long.
    from.take(limit as u64 + 1)
        .read_to_end(&mut out)
        .map_err(|error| broken(&error))?;
    if out.len() > limit {
        return Err(Rejection::TooLarge { allowed: limit });
    }
    Ok(out)
}

fn broken(error: &io::Error) -> Rejection {
    Rejection::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn only_a_decompressed_body_over_the_limit_is_rejected() {
        for (coding, body) in [
            (Coding::Gzip, gzip(&[0; 1000])),
            (Coding::Zstd, zstd::encode_all(&[0; 1000][..], 1).unwrap()),
        ] {
            assert_eq!(coding.decompress(&body, 1000), Ok(vec![0; 1000]));
            assert_eq!(
                coding.decompress(&body, 999),
                Err(Rejection::TooLarge { allowed: 999 })
            );
            let truncated = coding.decompress(&body[..body.len() / 2], 1000);
            assert!(
                matches!(truncated, Err(Rejection::Unreadable(_))),
                "{truncated:?}"
            );
        }
    }

    #[test]
    fn unknown_content_encoding_is_not_supported() {
        assert_eq!(Coding::named(" GZIP"), Some(Coding::Gzip));
        assert_eq!(Coding::named("br"), None);
    }
}
