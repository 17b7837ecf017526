//! The index record of a span, of a fixed size: the message of the span stays in the file.

use std::io;

use pulsetrain_pipeline::spill::SpillFile;

use crate::{identities::SpanIds, spans::ScannedSpan, tree_span::Tree};

/// A span without its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) trace: u64,
    pub(super) id: u64,
    pub(super) parent: u64,
    /// Its index among all spans of the input.
    pub(super) number: u64,
    /// The offset of its message.
    pub(super) place: u64,
    pub(super) length: u32,
    pub(super) resource: u32,
    pub(super) scope: u32,
    /// The label of its group, its own or its parent's; `None` until that is known.
    pub(super) group: Option<u32>,
    pub(super) depth: u32,
    pub(super) name_at: u16,
    pub(super) failed: bool,
    /// Whether it is a log record, whose parent is the span that the record names.
    pub(super) is_log_record: bool,
    /// Whether its step is selected; `None` if it has no step.
    pub(super) asked: Option<bool>,
    /// Its tree, and its index among all spans, with each tree depth first.
    pub(super) tree: u64,
    pub(super) order: u64,
    /// The arrow from its parent, or 0.
    pub(super) flow: u64,
}

const NUMBERS: usize = 13;
const NO_GROUP: u32 = u32::MAX;

impl Record {
    /// The size of a record in bytes.
    pub(super) const BYTES: usize = NUMBERS * 8;

    pub(super) fn new(span: &ScannedSpan, number: u64, place: u64, length: usize) -> Self {
        Self {
            start: span.start,
            end: span.end,
            trace: span.ids.trace,
            id: span.ids.id,
            parent: span.ids.parent,
            number,
            place,
            length: length as u32,
            resource: span.around.resource,
            scope: span.around.scope,
            group: span.group,
            name_at: span.name_at,
            failed: span.failed,
            asked: span.asked,
            ..Self::default()
        }
    }

    pub(super) fn of_log(ids: SpanIds, time: u64, number: u64, (place, length): (u64, usize)) -> Self {
        Self {
            start: time,
            end: time,
            trace: ids.trace,
            parent: ids.parent,
            number,
            place,
            length: length as u32,
            is_log_record: true,
            asked: Some(true),
            ..Self::default()
        }
    }

    /// Returns the tree of a root.
    pub(super) fn tree(&self) -> Tree {
        Tree {
            resource: self.resource,
            group: self.group.unwrap_or_default(),
            start: self.start,
            end: self.end,
            failed: self.failed,
        }
    }

    /// Reads its message.
    pub(super) fn read(&self, file: &SpillFile) -> io::Result<Vec<u8>> {
        let mut message = vec![0; self.length as usize];
        file.read(self.place, &mut message)?;
        Ok(message)
    }

    pub(super) fn pack(&self, out: &mut Vec<u8>) {
        let asked = match self.asked {
            None => 0,
            Some(asked) => 1 + u64::from(asked),
        };
        let numbers: [u64; NUMBERS] = [
            self.start,
            self.end,
            self.trace,
            self.id,
            self.parent,
            self.number,
            self.place,
            pair(self.length, self.resource),
            pair(self.scope, self.group.unwrap_or(NO_GROUP)),
            u64::from(self.depth) << 32
                | u64::from(self.name_at) << 8
                | u64::from(self.is_log_record) << 3
                | asked << 1
                | u64::from(self.failed),
            self.tree,
            self.order,
            self.flow,
        ];
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    pub(super) fn unpack(bytes: &[u8]) -> Option<Self> {
        let (numbers, _) = bytes.as_chunks::<8>();
        let numbers: &[[u8; 8]; NUMBERS] = numbers.first_chunk()?;
        let [
            start,
            end,
            trace,
            id,
            parent,
            number,
            place,
            length,
            scope,
            flags,
            tree,
            order,
            flow,
        ] = numbers.map(u64::from_le_bytes);
        Some(Self {
            start,
            end,
            trace,
            id,
            parent,
            number,
            place,
            length: (length >> 32) as u32,
            resource: length as u32,
            scope: (scope >> 32) as u32,
            group: Some(scope as u32).filter(|group| *group != NO_GROUP),
            depth: (flags >> 32) as u32,
            name_at: (flags >> 8) as u16,
            failed: flags & 1 == 1,
            is_log_record: flags >> 3 & 1 == 1,
            asked: match flags >> 1 & 3 {
                0 => None,
                asked => Some(asked == 2),
            },
            tree,
            order,
            flow,
        })
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sort_record_round_trips() {
        for (group, asked, failed) in [
            (None, None, true),
            (Some(7), Some(false), false),
            (Some(0), Some(true), true),
        ] {
            let record = Record {
                start: 1,
                end: u64::MAX,
                trace: 2,
                id: 3,
                parent: 4,
                number: 5,
                place: 6 << 33,
                length: 7,
                resource: 8,
                scope: u32::MAX,
                group,
                depth: 499,
                name_at: u16::MAX,
                failed,
                is_log_record: !failed,
                asked,
                tree: 9,
                order: 10,
                flow: 11,
            };
            let mut bytes = Vec::new();
            record.pack(&mut bytes);
            assert_eq!(bytes.len(), Record::BYTES);
            assert_eq!(Record::unpack(&bytes), Some(record));
        }
        assert_eq!(Record::unpack(&[0; Record::BYTES - 1]), None);
    }
}
