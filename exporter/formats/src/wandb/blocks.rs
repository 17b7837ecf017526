//! The frames of a wandb file: LevelDB's log (`doc/log_format.md` of LevelDB) behind a header of seven bytes, with the plain
//! CRC-32 of zlib as its checksum.
//!
//! Blocks of 32 KiB, counted from the first byte of the file, hold chunks; a record is one chunk or several. A chunk never
//! crosses the end of a block, so after a broken one reading goes on with the next block.

/// The first bytes of a file: `:W&B`, the magic number 0xBEE1, version 0.
pub(super) const MAGIC: [u8; 7] = [b':', b'W', b'&', b'B', 0xe1, 0xbe, 0];

const BLOCK_LEN: u64 = 32 << 10;
const HEAD_LEN: usize = 7;
/// The longest record that is put together.
const LONGEST: usize = 64 << 20;

/// The kinds of chunk.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Puts records together from chunks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The chunks so far of a record that is not whole.
    pending: Option<Vec<u8>>,
    /// The record that was put together last.
    whole: Vec<u8>,
    /// How many bytes are passed over before the next chunk.
    to_skip: u64,
}

/// What stands at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A record, which ends after `len` bytes.
    Record { len: usize, record: &'a [u8] },
    /// Bytes that cannot be read.
    Broken { len: usize, problem: &'static str },
    /// Bytes that are done with, and then the beginning of something or nothing.
    Partial { len: usize },
}

/// What one chunk is.
enum Chunk<'a> {
    Whole {
        kind: u8,
        data: &'a [u8],
    },
    /// A chunk whose checksum is wrong, of this length.
    Unsound(usize),
    /// What is left of a block and too short for a chunk.
    Padding,
    /// No chunk, though one should begin here.
    Nothing,
    Partial,
}

impl Blocks {
    /// Reads up to the end of the next record; `offset` is the place of the first byte in the file.
    pub(super) fn next<'a>(&'a mut self, bytes: &'a [u8], offset: u64) -> Found<'a> {
        let mut at = 0;
        if offset == 0 {
            if bytes.len() < MAGIC.len() {
                return Found::Partial { len: 0 };
            }
            at = MAGIC.len();
        }
        loop {
            at += self.skip(bytes.len() - at);
            if self.to_skip > 0 {
                return Found::Partial { len: at };
            }
            let left = (BLOCK_LEN - (offset + at as u64) % BLOCK_LEN) as usize;
            match chunk(&bytes[at..], left) {
                Chunk::Whole { kind, data } => {
                    at += HEAD_LEN + data.len();
                    match self.take(kind, data) {
                        Ok(false) => {}
                        // Borrowed from the input where it can be.
                        Ok(true) if kind == FULL => {
                            return Found::Record {
                                len: at,
                                record: data,
                            };
                        }
                        Ok(true) => {
                            return Found::Record {
                                len: at,
                                record: &self.whole,
                            };
                        }
                        Err(problem) => return Found::Broken { len: at, problem },
                    }
                }
                Chunk::Unsound(len) => {
                    self.pending = None;
                    let problem = "the checksum of a record is wrong; it is passed over";
                    return Found::Broken {
                        len: at + len,
                        problem,
                    };
                }
                Chunk::Padding => at += left,
                Chunk::Nothing => {
                    // At the beginning of a block that is the whole of it.
                    (self.pending, self.to_skip) = (None, left as u64);
                    let problem = "there is no record where one should begin; reading goes on with the next block of 32 KiB";
                    return Found::Broken { len: at, problem };
                }
                Chunk::Partial => return Found::Partial { len: at },
            }
        }
    }

    /// Whether a record has begun and has not ended.
    pub(super) fn is_inside_record(&self) -> bool {
        self.pending.is_some()
    }

    /// The bytes up to the next ones are lost: the chunk there is likely to be none, and then its block is passed over.
    pub(super) fn resync(&mut self) {
        self.pending = None;
    }

    /// How many of `available` bytes are passed over.
    fn skip(&mut self, available: usize) -> usize {
        let skipped = self.to_skip.min(available as u64);
        self.to_skip -= skipped;
        skipped as usize
    }

    /// Takes a chunk, and says whether a record is whole now.
    fn take(&mut self, kind: u8, data: &[u8]) -> Result<bool, &'static str> {
        match (kind, &mut self.pending) {
            (FULL, None) => Ok(true),
            (FIRST, None) => {
                self.pending = Some(data.to_vec());
                Ok(false)
            }
            (MIDDLE | LAST, Some(pending)) if pending.len() + data.len() <= LONGEST => {
                pending.extend_from_slice(data);
                if kind == LAST {
                    self.whole = self.pending.take().unwrap_or_default();
                }
                Ok(kind == LAST)
            }
            (MIDDLE | LAST, Some(_)) => {
                self.pending = None;
                Err("a record of more than 64 MiB is passed over")
            }
            (MIDDLE | LAST, None) => Err("the beginning of a record is missing; its end is passed over"),
            _ => {
                self.pending = None;
                Err("a record begins before the one before it has ended; both are passed over")
            }
        }
    }
}

/// The chunk at the beginning of `bytes`, of a block of which `left` bytes are left.
fn chunk(bytes: &[u8], left: usize) -> Chunk<'_> {
    if left < HEAD_LEN {
        return if bytes.len() < left {
            Chunk::Partial
        } else {
            Chunk::Padding
        };
    }
    let Some(&[c0, c1, c2, c3, l0, l1, kind]) = bytes.first_chunk::<HEAD_LEN>() else {
        return Chunk::Partial;
    };
    let len = usize::from(u16::from_le_bytes([l0, l1]));
    if !(FULL..=LAST).contains(&kind) || HEAD_LEN + len > left {
        return Chunk::Nothing;
    }
    let Some(covered) = bytes.get(HEAD_LEN - 1..HEAD_LEN + len) else {
        return Chunk::Partial;
    };
    // The checksum covers the kind and the data.
    if crc32fast::hash(covered) == u32::from_le_bytes([c0, c1, c2, c3]) {
        Chunk::Whole {
            kind,
            data: &covered[1..],
        }
    } else {
        Chunk::Unsound(HEAD_LEN + len)
    }
}
