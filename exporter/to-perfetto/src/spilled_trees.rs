//! Trees beyond the memory budget: their spans are in a temporary file, depth first, and are read in pieces.

use std::io;

use pulsetrain_pipeline::spill::{Extent, ExtentReader, MemoryBudget, SpillFile};

use super::tree_span::{PACKED_HEAD, TreeSpan, array, packed_length};

/// The size in bytes from which on a tree is written to the file.
const LONG: usize = 1 << 20;
/// The number of bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// The kinds of content of a tree: its spans, or their extent in the temporary file.
pub(super) const HERE: u8 = 0;
const ELSEWHERE: u8 = 1;

/// The file of long trees.
#[derive(Debug)]
pub(super) struct SpilledTrees {
    room: MemoryBudget,
    file: Option<SpillFile>,
    /// The current tree: the bytes that are not yet in the file, and its offset there.
    pending: Vec<u8>,
    start: Option<u64>,
}

/// A complete tree.
pub(super) enum PackedTree {
    Here(Vec<u8>),
    Elsewhere(Extent),
}

impl SpilledTrees {
    pub(super) fn new(room: MemoryBudget) -> Self {
        Self {
            room,
            file: None,
            pending: Vec::new(),
            start: None,
        }
    }

    /// Adds the next span of the current tree.
    pub(super) fn push(&mut self, span: &TreeSpan<'_>) -> io::Result<()> {
        span.pack(&mut self.pending);
        if self.pending.len() > LONG {
            self.append()?;
        }
        Ok(())
    }

    /// Ends the current tree.
    pub(super) fn end(&mut self) -> io::Result<PackedTree> {
        if self.start.is_none() {
            return Ok(PackedTree::Here(std::mem::take(&mut self.pending)));
        }
        self.append()?;
        let start = self.start.take().unwrap_or_default();
        let end = self.bytes();
        Ok(PackedTree::Elsewhere(Extent { start, end }))
    }

    fn append(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.room.spill()?),
        };
        self.start.get_or_insert(file.len());
        file.append(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    /// Returns the size of the file in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, SpillFile::len)
    }

    /// Flushes the file, so that the trees can be read.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), SpillFile::flush)
    }

    /// Returns the pieces of a tree by its content.
    pub(super) fn pieces(&self, mut rest: &[u8]) -> Pieces<'_> {
        let mark = rest.split_off_first().copied();
        let mut place = || array(&mut rest).map_or(0, u64::from_le_bytes);
        let extent = match mark {
            Some(ELSEWHERE) => Extent {
                start: place(),
                end: place(),
            },
            _ => Extent::default(),
        };
        Pieces {
            file: self.file.as_ref(),
            reader: ExtentReader::new(extent, CHUNK),
        }
    }
}

impl PackedTree {
    pub(super) fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Self::Here(spans) => {
                out.push(HERE);
                out.extend_from_slice(spans);
            }
            Self::Elsewhere(Extent { start, end }) => {
                out.push(ELSEWHERE);
                out.extend_from_slice(&start.to_le_bytes());
                out.extend_from_slice(&end.to_le_bytes());
            }
        }
    }
}

/// The pieces of a tree, each with some complete spans.
pub(super) struct Pieces<'a> {
    file: Option<&'a SpillFile>,
    reader: ExtentReader,
}

impl Pieces<'_> {
    /// Returns the next piece, or an empty one at the end.
    pub(super) fn next_piece(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::new();
        let Some(file) = self.file else {
            return Ok(piece);
        };
        while piece.len() < LONG && !self.reader.is_at_end() {
            let start = piece.len();
            self.reader.take(file, PACKED_HEAD, &mut piece)?;
            let rest = packed_length(&piece[start..]).unwrap_or_default();
            self.reader.take(file, rest, &mut piece)?;
        }
        Ok(piece)
    }
}
