//! Decompression of HTTP bodies, which ends where a body would grow over the limit.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::refusal::Refusal;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

impl Coding {
    /// By the word of `Content-Encoding`.
    pub(super) fn named(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The body as it was before.
    pub(super) fn inflate(self, body: &[u8], limit: usize) -> Result<Vec<u8>, Refusal> {
        match self {
            Self::Identity => Ok(body.to_vec()),
            Self::Gzip => read(MultiGzDecoder::new(body), limit),
            Self::Zstd => read(zstd::Decoder::new(body).map_err(|error| broken(&error))?, limit),
        }
    }
}

fn read(from: impl Read, limit: usize) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::new();
    // One byte more than allowed tells that there is one.
    from.take(limit as u64 + 1)
        .read_to_end(&mut out)
        .map_err(|error| broken(&error))?;
    if out.len() > limit {
        return Err(Refusal::TooLarge { allowed: limit });
    }
    Ok(out)
}

fn broken(error: &io::Error) -> Refusal {
    Refusal::Broken(error.to_string())
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
    fn a_body_that_grows_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
        for (coding, body) in [
            (Coding::Gzip, gzip(&[0; 1000])),
            (Coding::Zstd, zstd::encode_all(&[0; 1000][..], 1).unwrap()),
        ] {
            assert_eq!(coding.inflate(&body, 1000), Ok(vec![0; 1000]));
            assert_eq!(
                coding.inflate(&body, 999),
                Err(Refusal::TooLarge { allowed: 999 })
            );
            let torn = coding.inflate(&body[..body.len() / 2], 1000);
            assert!(matches!(torn, Err(Refusal::Broken(_))), "{torn:?}");
        }
    }

    #[test]
    fn words_that_nobody_knows_are_no_coding() {
        assert_eq!(Coding::named(" GZIP"), Some(Coding::Gzip));
        assert_eq!(Coding::named("br"), None);
    }
}
