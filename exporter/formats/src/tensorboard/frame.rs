//! The frames of an event file: TFRecord (`tensorflow/core/lib/io/record_writer.h`).
//!
//! A frame is the length of a record in eight bytes, a checksum of the length, the record, and a checksum of the record.

use super::checksum;

/// The bytes before a record.
pub(super) const HEAD_LEN: usize = 12;
/// The bytes after it.
pub(super) const TAIL_LEN: usize = 4;
/// The longest record that is read: a training step's numbers take a millionth of it, pictures and graphs may take more.
pub(super) const LONGEST: u64 = 8 << 20;

/// What stands at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A whole record.
    Whole {
        /// The record.
        record: &'a [u8],
        /// Whether its checksum is right.
        is_sound: bool,
    },
    /// A record that is longer than any that is read; the frame has this length.
    TooLong(u64),
    /// The beginning of a frame.
    Partial,
    /// No frame: the checksum of its length is wrong, so where the next one begins is not known.
    Broken,
}

/// The frame at the beginning of `bytes`.
#[inline]
pub(super) fn first(bytes: &[u8]) -> Frame<'_> {
    let Some((length_bytes, rest)) = bytes.split_first_chunk::<8>() else {
        return Frame::Partial;
    };
    let Some((length_checksum, rest)) = rest.split_first_chunk::<4>() else {
        return Frame::Partial;
    };
    let length = u64::from_le_bytes(*length_bytes);
    if checksum::masked_length(length) != u32::from_le_bytes(*length_checksum) {
        return Frame::Broken;
    }
    if length > LONGEST {
        return Frame::TooLong(length.saturating_add((HEAD_LEN + TAIL_LEN) as u64));
    }
    let Some((record, rest)) = rest.split_at_checked(length as usize) else {
        return Frame::Partial;
    };
    match rest.first_chunk::<4>() {
        None => Frame::Partial,
        Some(stated) => Frame::Whole {
            record,
            is_sound: checksum::masked(record) == u32::from_le_bytes(*stated),
        },
    }
}
