//! Draws trees in parts: trees that exceed the memory budget are read in pieces, and trees that exceed the size of a file
//! continue in the next one.

use super::{FilePart, LaneCursor, Open, PerfettoParts, TreeWriter};
use crate::{
    PerfettoError, annotations,
    spilled_trees::Pieces,
    tree_span::{Packed, Tree},
};

/// The divisor of the file size, below which the part of a tree in a file is too small to be cut.
const SMALL: u64 = 16;

/// A span that stays open while the next piece is read, with its message if it is the root or has events left.
struct OpenSpan {
    start: u64,
    end: u64,
    number: u64,
    name: Vec<u8>,
    bytes: Vec<u8>,
    events: usize,
}

impl<P: PerfettoParts> TreeWriter<'_, P> {
    /// Draws a tree that is read in pieces.
    pub(super) fn in_pieces(&mut self, tree: &Tree, mut pieces: Pieces<'_>) -> Result<(), PerfettoError> {
        let group = self.group(tree.resource, tree.group);
        let mut piece = pieces.next_piece()?;
        if self.is_short(tree.start, tree.end, tree.failed) {
            let mut spans = Packed(&piece);
            let Some(root) = spans.next() else {
                return Ok(());
            };
            let mut within = spans.count();
            loop {
                let next = pieces.next_piece()?;
                if next.is_empty() {
                    return self.gather(group, &root, within as u64);
                }
                within += Packed(&next).count();
            }
        }
        let start = self.cursor(group, tree)?;
        let (mut lane, place, mut page) = (start.lane, start.place, start.page);
        let (mut run, mut within) = (None, None);
        let mut waiting: Vec<OpenSpan> = Vec::new();
        loop {
            let mut cursor = LaneCursor {
                lane,
                group,
                place,
                page,
                open: waiting.iter().map(OpenSpan::open).collect::<Result<_, _>>()?,
                run,
                within,
            };
            self.spans(&mut cursor, Packed(&piece))?;
            if piece.is_empty() {
                return self.close(&mut cursor, 0, u64::MAX);
            }
            let open = cursor.open.iter().enumerate();
            let open = open.map(|(depth, open)| OpenSpan::new(open, depth)).collect();
            (lane, page, run, within) = (cursor.lane, cursor.page, cursor.run, cursor.within);
            waiting = open;
            piece = pieces.next_piece()?;
        }
    }

    /// Continues in the next file in the middle of a tree. Open slices end in this file at their true end, with all their
    /// events. The next file draws them again with their full duration, around the slices that follow, and marks them.
    pub(super) fn cut(&mut self, cursor: &mut LaneCursor<'_>) -> Result<(), PerfettoError> {
        // A small part is not cut, and a file must contain more new data than slices that were drawn again.
        let drawn = self.output.trace.bytes() - cursor.page.from;
        if cursor.open.is_empty() || drawn < cursor.page.again.max(self.output.split() / SMALL) {
            return Ok(());
        }
        for open in cursor.open.iter_mut().rev() {
            self.events(cursor.lane, open, u64::MAX)?;
            self.output.trace.end(cursor.lane, open.end)?;
        }
        self.start_next_file()?;
        cursor.lane = self.lane(cursor.group, cursor.place, cursor.open[0].start)?;
        let (config, root) = (self.output.about.config, cursor.open[0].bytes);
        for (depth, open) in cursor.open.iter().enumerate() {
            let begun = self
                .output
                .trace
                .begin(cursor.lane, open.start, open.name, |event| {
                    annotations::continued(root, depth == 0, config, event);
                });
            begun?;
        }
        self.summary.continued += cursor.open.len() as u64;
        let from = self.output.trace.bytes();
        cursor.page = FilePart { from, again: from };
        Ok(())
    }
}

impl OpenSpan {
    fn new(open: &Open<'_>, depth: usize) -> Self {
        let events = open.events.len();
        Self {
            start: open.start,
            end: open.end,
            number: open.number,
            name: open.name.to_vec(),
            bytes: if events > 0 || depth == 0 {
                open.bytes.to_vec()
            } else {
                Vec::new()
            },
            events,
        }
    }

    fn open(&self) -> Result<Open<'_>, PerfettoError> {
        let mut events = annotations::events(&self.bytes, self.start)?;
        events.drain(..events.len().saturating_sub(self.events));
        Ok(Open {
            start: self.start,
            end: self.end,
            name: &self.name,
            bytes: &self.bytes,
            number: self.number,
            events: events.into_iter(),
            failure: None,
        })
    }
}
