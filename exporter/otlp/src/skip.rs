//! Skips the fields of a message that contain no message or only a simple attribute: most of what [`check`](crate::check) reads.
//!
//! A table by tag decides how a field is skipped, so that a field costs one lookup, one jump and one comparison with the end
//! (benches/results/codec.txt).

use crate::descriptor::{FieldDescriptor, FieldKind};

/// How the fields of a message are skipped, by the first byte of their tag.
#[derive(Debug)]
pub(crate) struct SkipTable([Skip; 256]);

#[derive(Clone, Copy, Debug)]
enum Skip {
    /// The field contains a message or packed numbers, its tag is longer than a byte, or the wire type is unknown.
    Never,
    Varint,
    Fixed64,
    Fixed32,
    Bytes,
    Attribute,
}

impl SkipTable {
    /// Creates the table of a message with these fields. Unknown fields are skipped by their wire type.
    pub(crate) const fn new(fields: &[FieldDescriptor]) -> Self {
        let (mut skips, mut tag) = ([Skip::Never; 256], 1 << 3);
        while tag < 0x80 {
            skips[tag] = match tag & 7 {
                0 => Skip::Varint,
                1 => Skip::Fixed64,
                2 => Skip::Bytes,
                5 => Skip::Fixed32,
                _ => Skip::Never,
            };
            tag += 1;
        }
        let mut index = 0;
        while index < fields.len() {
            let FieldDescriptor { number, kind, .. } = &fields[index];
            let tag = (*number << 3 | kind.wire_type()) as usize;
            if tag < 0x80 {
                skips[tag] = match kind {
                    _ if fields[index].is_attribute => Skip::Attribute,
                    FieldKind::One(_) | FieldKind::Many(_) => Skip::Never,
                    _ if kind.unpacked_wire_type().is_some() => Skip::Never,
                    _ => skips[tag],
                };
            }
            index += 1;
        }
        Self(skips)
    }

    /// Skips fields whose tag has one byte and whose length or varint has one byte, and at most `attributes` simple attributes.
    /// Returns the bytes from the first other field on, or from a truncated one, and the number of attributes.
    #[inline(always)]
    pub(crate) fn skip<'a>(&self, fields: &'a [u8], attributes: u64) -> (&'a [u8], u64) {
        let (mut rest, mut left) = (fields, attributes);
        while let [tag, value @ ..] = rest {
            let after = match (self.0[usize::from(*tag)], value) {
                (Skip::Varint, [..0x80, after @ ..]) => Some(after),
                (Skip::Fixed64, _) => value.get(8..),
                (Skip::Fixed32, _) => value.get(4..),
                (Skip::Bytes, [length @ ..0x80, after @ ..]) => after.get(usize::from(*length)..),
                (Skip::Attribute, [length @ ..0x80, after @ ..]) if left > 0 => {
                    let parts = after.split_at_checked(usize::from(*length));
                    let parts = parts.filter(|(attribute, _)| is_simple(attribute));
                    left -= u64::from(parts.is_some());
                    parts.map(|(_, after)| after)
                }
                _ => None,
            };
            let Some(after) = after else { break };
            rest = after;
        }
        (rest, attributes - left)
    }
}

/// Returns whether an attribute has only a key and a string, number or `bool`, the texts shorter than 128 bytes.
#[inline(always)]
pub(crate) fn is_simple(attribute: &[u8]) -> bool {
    let [0x0a, key @ ..0x80, rest @ ..] = attribute else {
        return false;
    };
    let Some([0x12, length, tag, value @ ..]) = rest.get(usize::from(*key)..) else {
        return false;
    };
    usize::from(*length) == value.len() + 1
        && match (tag, value) {
            (0x0a, [length @ ..0x80, text @ ..]) => usize::from(*length) == text.len(),
            (0x10 | 0x18, [high @ .., ..0x80]) => high.len() < 9 && high.iter().all(|byte| *byte >= 0x80),
            (0x21, value) => value.len() == 8,
            _ => false,
        }
}
