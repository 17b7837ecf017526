//! The data for drawing a tree and its spans, and their encoding for temporary files.

use pulsetrain_otlp::wire::Reader;

use super::scan::{self, tag};

/// A tree: the nested spans of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) resource: u32,
    /// The label of its group.
    pub(super) group: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether any of its spans failed.
    pub(super) failed: bool,
}

/// A span that is to be drawn, or a log record on the lane of its span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeSpan<'a> {
    /// The number of enclosing spans.
    pub(super) depth: u32,
    pub(super) scope: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Its index among all spans of the input.
    pub(super) number: u64,
    /// Whether the span or any of its descendants failed.
    pub(super) failed: bool,
    /// The arrows that start or end here, little endian.
    pub(super) flows: &'a [[u8; 8]],
    /// The offset of the name in the message if everything that is drawn follows it, else 0.
    pub(super) name_at: u16,
    /// Whether it is a log record, which has only a depth, a start and bytes.
    pub(super) is_log_record: bool,
    /// The message, or the stored log record.
    pub(super) bytes: &'a [u8],
}

impl Tree {
    pub(super) fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.resource.to_le_bytes());
        out.extend_from_slice(&self.group.to_le_bytes());
        out.extend_from_slice(&self.start.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
        out.push(self.failed.into());
    }

    /// Decodes a tree; returns it with the bytes of its spans.
    pub(super) fn unpack(mut bytes: &[u8]) -> Option<(Self, &[u8])> {
        let from = &mut bytes;
        let tree = Self {
            resource: u32::from_le_bytes(array(from)?),
            group: u32::from_le_bytes(array(from)?),
            start: u64::from_le_bytes(array(from)?),
            end: u64::from_le_bytes(array(from)?),
            failed: array::<1>(from)? != [0],
        };
        Some((tree, bytes))
    }
}

impl<'a> TreeSpan<'a> {
    /// Returns the name in its wire form, and the fields that may be drawn.
    #[inline]
    pub(super) fn parts(&self) -> (&'a [u8], DrawnFields<'a>) {
        let rest = self.bytes.get(usize::from(self.name_at)..);
        let mut reader = Reader::new(rest.unwrap_or_default());
        match reader.delimited() {
            Ok(name) if self.name_at > 0 => {
                let kind = reader.take_chunk(scan::between_name_and_attributes);
                (
                    name,
                    DrawnFields {
                        kind: kind.unwrap_or_default(),
                        rest: reader,
                    },
                )
            }
            _ => {
                let (name, rest) = (last_name(self.bytes), Reader::new(self.bytes));
                (name.unwrap_or_default(), DrawnFields { kind: 0, rest })
            }
        }
    }

    /// Returns the name in its wire form.
    pub(super) fn name(&self) -> &'a [u8] {
        self.parts().0
    }

    pub(super) fn pack(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.depth.to_le_bytes());
        out.extend_from_slice(&self.scope.to_le_bytes());
        out.extend_from_slice(&self.start.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.push(u8::from(self.failed) | u8::from(self.is_log_record) << 1);
        out.extend_from_slice(&self.name_at.to_le_bytes());
        out.extend_from_slice(&(self.flows.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(self.flows.as_flattened());
        out.extend_from_slice(self.bytes);
    }
}

/// The fields of a span that may be drawn.
#[derive(Clone, Copy)]
pub(super) struct DrawnFields<'a> {
    /// The kind, or 0 if it is in `rest`.
    pub(super) kind: u64,
    pub(super) rest: Reader<'a>,
}

/// Returns the trace id of a span.
pub(super) fn trace_id(bytes: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        match reader.tag().ok()? {
            tag::TRACE_ID => return reader.delimited().ok(),
            other => drop(reader.value(other).ok()?),
        }
    }
    None
}

/// Returns the last name of a span, which is the one that counts.
fn last_name(bytes: &[u8]) -> Option<&[u8]> {
    let mut name = None;
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        match reader.tag().ok()? {
            tag::NAME => name = Some(reader.delimited().ok()?),
            other => drop(reader.value(other).ok()?),
        }
    }
    name
}

/// The size of the head of an encoded span, before its flows.
pub(super) const PACKED_HEAD: usize = 2 * 4 + 3 * 8 + 1 + 2 + 2 * 4;

/// Returns the number of bytes that follow a head.
pub(super) fn packed_length(head: &[u8]) -> Option<usize> {
    let lengths = &mut head.get(PACKED_HEAD - 8..PACKED_HEAD)?;
    let flows = u32::from_le_bytes(array(lengths)?) as usize;
    Some(8 * flows + u32::from_le_bytes(array(lengths)?) as usize)
}

/// An iterator over the encoded spans of a tree.
pub(super) struct Packed<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Packed<'a> {
    type Item = TreeSpan<'a>;

    fn next(&mut self) -> Option<TreeSpan<'a>> {
        let from = &mut self.0;
        let depth = u32::from_le_bytes(array(from)?);
        let scope = u32::from_le_bytes(array(from)?);
        let start = u64::from_le_bytes(array(from)?);
        let end = u64::from_le_bytes(array(from)?);
        let number = u64::from_le_bytes(array(from)?);
        let [flags] = array(from)?;
        let name_at = u16::from_le_bytes(array(from)?);
        let flows = u32::from_le_bytes(array(from)?) as usize;
        let length = u32::from_le_bytes(array(from)?) as usize;
        let (flows, _) = from.split_off(..8 * flows)?.as_chunks();
        Some(TreeSpan {
            depth,
            scope,
            start,
            end,
            number,
            failed: flags & 1 != 0,
            flows,
            name_at,
            is_log_record: flags & 2 != 0,
            bytes: from.split_off(..length)?,
        })
    }
}

/// Splits `N` bytes off the front.
pub(super) fn array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        PerfettoConfig,
        scan::{AttributeFilter, Scanned},
    };

    #[test]
    fn span_name_is_found_in_any_field_order_and_attributes_are_kept() {
        let (name, attribute) = (b"\x2a\x01n".as_slice(), b"\x4a\x03\x0a\x01k".as_slice());
        let other = b"\x2a\x01o".as_slice();
        let orders: [&[&[u8]]; 5] = [
            &[name, attribute],
            &[attribute, name],
            &[b"\x0a\x01i", name, attribute],
            &[other, attribute, name],
            &[other, name, attribute],
        ];
        for order in orders {
            let bytes = order.concat();
            let mut scanned = Scanned::default();
            let config = PerfettoConfig::default();
            scanned
                .read(&bytes, &AttributeFilter::new(&config), &config)
                .unwrap();
            let drawn = TreeSpan {
                name_at: scanned.name_at,
                bytes: &bytes,
                ..TreeSpan::default()
            };
            let (found, fields) = drawn.parts();
            let attributes = fields.rest.filter(|field| field.as_ref().unwrap().number == 9);
            assert_eq!((found, attributes.count()), (&b"n"[..], 1), "{bytes:?}");
        }
    }

    #[test]
    fn spilled_tree_round_trips() {
        let tree = Tree {
            resource: 3,
            group: 1,
            start: 7,
            end: u64::MAX,
            failed: true,
        };
        let root = TreeSpan {
            depth: 0,
            scope: 9,
            start: 7,
            end: u64::MAX,
            number: 1 << 40,
            failed: true,
            flows: &[[1; 8], [2; 8]],
            name_at: 0,
            is_log_record: false,
            bytes: b"root",
        };
        let child = TreeSpan {
            depth: 1,
            flows: &[],
            failed: false,
            is_log_record: true,
            bytes: b"",
            ..root
        };
        let mut bytes = Vec::new();
        tree.pack(&mut bytes);
        [root, child].iter().for_each(|span| span.pack(&mut bytes));
        let (unpacked, spans) = Tree::unpack(&bytes).unwrap();
        assert_eq!(unpacked, tree);
        assert_eq!(Packed(spans).collect::<Vec<_>>(), [root, child]);
    }
}
