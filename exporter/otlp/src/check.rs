//! Checks protobuf bytes from outside in one pass, for broken structure and exceeded limits.
//!
//! The pass follows the descriptors into every message that they know. Unknown fields are skipped.

use crate::{
    Signal,
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor, Role},
    limits::{Counts, Exceeded, Limit, LimitError, Limits},
    lookup, place,
    wire::{Reader, WireError, WireValue},
};

/// Checks that bytes are a well-formed message of a signal within limits, and counts its content.
///
/// # Errors
///
/// Returns the first violation, with its offset in `bytes`. Invalid UTF-8 is accepted: readers replace it.
pub fn check(signal: Signal, bytes: &[u8], limits: &Limits) -> Result<Counts, LimitError> {
    let mut walk = Walk {
        limits,
        whole: bytes,
        counts: Counts::default(),
    };
    limits
        .admit(Limit::Bytes, bytes.len() as u64)
        .map_err(|exceeded| LimitError::Exceeded {
            exceeded,
            offset: limits.bytes,
        })?;
    walk.message(lookup::top(signal), bytes, 1)
        .map_err(|error| *error)?;
    Ok(walk.counts)
}

struct Walk<'a> {
    limits: &'a Limits,
    whole: &'a [u8],
    counts: Counts,
}

impl<'a> Walk<'a> {
    fn message(
        &mut self,
        table: &'static MessageDescriptor,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<(), Box<LimitError>> {
        self.counts
            .enter(table.role, depth, self.limits)
            .map_err(|exceeded| self.exceeded(exceeded, bytes))?;
        let mut reader = Reader::new(bytes);
        let mut attributes = 0;
        while !reader.is_at_end() {
            let tag = reader.tag().map_err(|error| self.wire(error, bytes))?;
            let value = reader.value(tag).map_err(|error| self.wire(error, bytes))?;
            if let WireValue::Bytes(inner) = value
                && let Some((_, field)) = table.by_tag(tag)
            {
                self.field(field, inner, depth, &mut attributes)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn field(
        &mut self,
        field: &FieldDescriptor,
        bytes: &'a [u8],
        depth: usize,
        attributes: &mut u64,
    ) -> Result<(), Box<LimitError>> {
        match field.kind {
            FieldKind::One(inner) => self.message(inner(), bytes, depth + 1),
            FieldKind::Many(inner) => {
                let inner = inner();
                if inner.role == Role::Attribute {
                    *attributes += 1;
                    self.limits
                        .admit(Limit::Attributes, *attributes)
                        .map_err(|exceeded| self.exceeded(exceeded, bytes))?;
                    if is_short_text(bytes) && self.limits.admit(Limit::Depth, depth as u64 + 2).is_ok() {
                        self.counts.attributes += 1;
                        self.counts.messages += 2;
                        return Ok(());
                    }
                }
                self.message(inner, bytes, depth + 1)
            }
            FieldKind::PackedFixed64 | FieldKind::PackedUint64 | FieldKind::PackedDouble => self
                .packed(field.kind, bytes)
                .map_err(|error| self.wire(error, bytes)),
            _ => Ok(()),
        }
    }

    fn packed(&self, kind: FieldKind, bytes: &[u8]) -> Result<(), WireError> {
        let mut reader = Reader::new(bytes);
        while !reader.is_at_end() {
            match kind {
                FieldKind::PackedUint64 => reader.varint()?,
                _ => reader.fixed64()?,
            };
        }
        Ok(())
    }

    #[cold]
    fn wire(&self, error: WireError, bytes: &[u8]) -> Box<LimitError> {
        Box::new(LimitError::Wire(place::of_error(error, self.whole, bytes)))
    }

    #[cold]
    fn exceeded(&self, exceeded: Exceeded, bytes: &[u8]) -> Box<LimitError> {
        Box::new(LimitError::Exceeded {
            exceeded,
            offset: place::of_part(self.whole, bytes),
        })
    }
}

/// Returns whether an attribute has only a key and a string, each shorter than 128 bytes. Most attributes are short, and the
/// check takes half the time if it does not enter their two messages (benches/results/codec.txt).
#[inline]
fn is_short_text(attribute: &[u8]) -> bool {
    let [0x0a, key @ ..0x80, rest @ ..] = attribute else {
        return false;
    };
    matches!(
        rest.get(usize::from(*key)..),
        Some([0x12, value, 0x0a, length @ ..0x7e, text @ ..])
            if usize::from(*length) == text.len() && *value == *length + 2
    )
}

#[cfg(test)]
mod tests;
