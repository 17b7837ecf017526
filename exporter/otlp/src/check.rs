//! Checks protobuf bytes from outside in one pass, for broken structure and exceeded limits.
//!
//! The pass follows the descriptors into every message that they know. Unknown fields are skipped.

use crate::{
    Signal,
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor},
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
        let (mut rest, mut attributes) = (bytes, 0);
        loop {
            let skipped;
            (rest, skipped) = table.skips.skip(rest, self.skippable(depth, attributes));
            attributes += skipped;
            self.counts.attributes += skipped;
            self.counts.messages += 2 * skipped;
            if rest.is_empty() {
                return Ok(());
            }
            let mut reader = Reader::new(rest);
            let tag = reader.tag().map_err(|error| self.wire(error, rest))?;
            let value = reader.value(tag).map_err(|error| self.wire(error, rest))?;
            if let WireValue::Bytes(inner) = value
                && let Some((_, field)) = table.by_tag(tag)
            {
                self.field(field, inner, depth, &mut attributes)?;
            }
            rest = &rest[reader.position()..];
        }
    }

    /// Returns how many more attributes of a message at this depth are within the limits.
    #[inline]
    fn skippable(&self, depth: usize, attributes: u64) -> u64 {
        match self.limits.admit(Limit::Depth, depth as u64 + 2) {
            Ok(()) => (self.limits.attributes as u64).saturating_sub(attributes),
            Err(_) => 0,
        }
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
                if field.is_attribute {
                    *attributes += 1;
                    self.limits
                        .admit(Limit::Attributes, *attributes)
                        .map_err(|exceeded| self.exceeded(exceeded, bytes))?;
                }
                self.message(inner(), bytes, depth + 1)
            }
            FieldKind::PackedFixed64 | FieldKind::PackedDouble if bytes.len().is_multiple_of(8) => Ok(()),
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

#[cfg(test)]
mod tests;
