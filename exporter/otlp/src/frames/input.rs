//! Decompresses an input: gzip and zstd are detected by their first bytes.

use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The magic number of a skippable frame, which a zstd file may also begin with; the low half of the first byte varies.
const ZSTD_SKIPPABLE: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// Returns whether bytes begin with a zstd frame.
pub(super) fn is_zstd(bytes: &[u8]) -> bool {
    bytes.starts_with(&ZSTD)
}

/// Decompresses gzip and zstd; other bytes are returned unchanged.
///
/// The size of the output is not limited: the caller has to limit it.
pub fn inflated(input: impl Read) -> impl Read {
    Input::Unread(input)
}

type RewoundInput<R> = Chain<Cursor<Vec<u8>>, R>;

/// An input whose format is detected at the first read.
pub(super) enum Input<R: Read> {
    Unread(R),
    Plain(RewoundInput<R>),
    Gzip(Box<MultiGzDecoder<RewoundInput<R>>>),
    Zstd(zstd::Decoder<'static, BufReader<RewoundInput<R>>>),
    /// The input could not be read.
    Gone,
}

impl<R: Read> Input<R> {
    pub(super) fn is_compressed(&self) -> bool {
        matches!(self, Self::Gzip(_) | Self::Zstd(_))
    }

    fn open(mut input: R) -> io::Result<Self> {
        let mut head = Vec::with_capacity(ZSTD.len());
        input.by_ref().take(ZSTD.len() as u64).read_to_end(&mut head)?;
        let is_gzip = head.starts_with(&GZIP);
        let is_zstd = is_zstd(&head) || is_zstd_skippable(&head);
        let whole = Cursor::new(head).chain(input);
        Ok(if is_gzip {
            Self::Gzip(Box::new(MultiGzDecoder::new(whole)))
        } else if is_zstd {
            Self::Zstd(zstd::Decoder::new(whole)?)
        } else {
            Self::Plain(whole)
        })
    }
}

fn is_zstd_skippable(head: &[u8]) -> bool {
    head.first_chunk::<4>()
        .is_some_and(|&[first, rest @ ..]| [first & 0xf0, rest[0], rest[1], rest[2]] == ZSTD_SKIPPABLE)
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buffer),
            Self::Gzip(input) => input.read(buffer),
            Self::Zstd(input) => input.read(buffer),
            Self::Gone => Ok(0),
            Self::Unread(_) => {
                if let Self::Unread(input) = std::mem::replace(self, Self::Gone) {
                    *self = Self::open(input)?;
                }
                self.read(buffer)
            }
        }
    }
}
