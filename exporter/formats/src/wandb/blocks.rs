//! Decodes the framing of a wandb file: LevelDB's log format (`doc/log_format.md` of LevelDB) after a header of seven bytes,
//! with the plain CRC-32 of zlib as checksum.
//!
//! Blocks of 32 KiB, counted from the first byte of the file, contain chunks. A record is one or more chunks. A chunk never
//! crosses the end of a block, so the parser resumes at the next block after a broken chunk.

/// The first bytes of a file: `:W&B`, the magic number 0xBEE1, version 0.
pub(super) const MAGIC: [u8; 7] = [b':', b'W', b'&', b'B', 0xe1, 0xbe, 0];

const BLOCK_LEN: u64 = 32 << 10;
const HEAD_LEN: usize = 7;
/// The longest record that is assembled.
const MAX_RECORD_BYTES: usize = 64 << 20;

/// The kinds of chunk.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Assembles records from chunks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The chunks so far of an incomplete record.
    pending: Option<Vec<u8>>,
    /// The last assembled record.
    assembled: Vec<u8>,
    /// The number of bytes to skip before the next chunk.
    to_skip: u64,
}

/// The result of decoding the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlockRead<'a> {
    /// A record, which ends after `len` bytes.
    Record { len: usize, record: &'a [u8] },
    /// Bytes that cannot be read.
    Broken { len: usize, problem: &'static str },
    /// `len` consumed bytes, followed by an incomplete chunk or the end of the input.
    Partial { len: usize },
}

/// One chunk.
enum Chunk<'a> {
    Complete {
        kind: u8,
        data: &'a [u8],
    },
    /// A chunk whose checksum is wrong, of this length.
    Unsound(usize),
    /// The rest of a block that is too short for a chunk.
    Padding,
    /// Bytes that are not a valid chunk.
    Invalid,
    Partial,
}

impl Blocks {
    /// Decodes up to the end of the next record. `offset` is the file offset of the first byte.
    pub(super) fn next<'a>(&'a mut self, bytes: &'a [u8], offset: u64) -> BlockRead<'a> {
        let mut at = 0;
        if offset == 0 {
            if bytes.len() < MAGIC.len() {
                return BlockRead::Partial { len: 0 };
            }
            at = MAGIC.len();
        }
        loop {
            at += self.skip(bytes.len() - at);
            if self.to_skip > 0 {
                return BlockRead::Partial { len: at };
            }
            let left = (BLOCK_LEN - (offset + at as u64) % BLOCK_LEN) as usize;
            match chunk(&bytes[at..], left) {
                Chunk::Complete { kind, data } => {
                    at += HEAD_LEN + data.len();
                    match self.push(kind, data) {
                        Ok(false) => {}
                        // A record in one chunk is borrowed from the input.
                        Ok(true) if kind == FULL => {
                            return BlockRead::Record {
                                len: at,
                                record: data,
                            };
                        }
                        Ok(true) => {
                            return BlockRead::Record {
                                len: at,
                                record: &self.assembled,
                            };
                        }
                        Err(problem) => return BlockRead::Broken { len: at, problem },
                    }
                }
                Chunk::Unsound(len) => {
                    self.pending = None;
                    let problem = "the checksum of a record is wrong; it is skipped";
                    return BlockRead::Broken {
                        len: at + len,
                        problem,
                    };
                }
                Chunk::Padding => at += left,
                Chunk::Invalid => {
                    // Skips the rest of the block.
                    (self.pending, self.to_skip) = (None, left as u64);
                    let problem =
                        "expected a record and found none; skipped the rest of this block of 32 KiB";
                    return BlockRead::Broken { len: at, problem };
                }
                Chunk::Partial => return BlockRead::Partial { len: at },
            }
        }
    }

    /// Returns whether a record has begun and has not ended.
    pub(super) fn is_inside_record(&self) -> bool {
        self.pending.is_some()
    }

    /// Discards an incomplete record after a gap in the input. If the next bytes are not a chunk, their block is skipped.
    pub(super) fn resync(&mut self) {
        self.pending = None;
    }

    /// Returns the number of `available` bytes to skip.
    fn skip(&mut self, available: usize) -> usize {
        let skipped = self.to_skip.min(available as u64);
        self.to_skip -= skipped;
        skipped as usize
    }

    /// Adds a chunk. Returns whether a record is complete.
    fn push(&mut self, kind: u8, data: &[u8]) -> Result<bool, &'static str> {
        match (kind, &mut self.pending) {
            (FULL, None) => Ok(true),
            (FIRST, None) => {
                self.pending = Some(data.to_vec());
                Ok(false)
            }
            (MIDDLE | LAST, Some(pending)) if pending.len() + data.len() <= MAX_RECORD_BYTES => {
                pending.extend_from_slice(data);
                if kind == LAST {
                    self.assembled = self.pending.take().unwrap_or_default();
                }
                Ok(kind == LAST)
            }
            (MIDDLE | LAST, Some(_)) => {
                self.pending = None;
                Err("a record of more than 64 MiB is skipped")
            }
            (MIDDLE | LAST, None) => Err("the beginning of a record is missing; its end is skipped"),
            _ => {
                self.pending = None;
                Err("a record begins before the one before it has ended; both are skipped")
            }
        }
    }
}

/// Decodes the chunk at the beginning of `bytes`. `left` bytes of its block are left.
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
        return Chunk::Invalid;
    }
    let Some(covered) = bytes.get(HEAD_LEN - 1..HEAD_LEN + len) else {
        return Chunk::Partial;
    };
    // The checksum covers the kind and the data.
    if crc32fast::hash(covered) == u32::from_le_bytes([c0, c1, c2, c3]) {
        Chunk::Complete {
            kind,
            data: &covered[1..],
        }
    } else {
        Chunk::Unsound(HEAD_LEN + len)
    }
}
