//! Decodes the framing of an event file: TFRecord (`tensorflow/core/lib/io/record_writer.h`).
//!
//! A frame is the length of a record in eight bytes, a checksum of the length, the record, and a checksum of the record.

use super::checksum;

/// The length of a frame's header.
pub(super) const HEAD_LEN: usize = 12;
/// The length of a frame's trailer.
pub(super) const TAIL_LEN: usize = 4;
/// The longest record that is parsed. The numbers of a training step need a millionth of it. Pictures and graphs may be longer.
pub(super) const MAX_LENGTH: u64 = 8 << 20;

/// The result of decoding the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A complete record.
    Complete {
        /// The record.
        record: &'a [u8],
        /// Whether its checksum is right.
        is_sound: bool,
    },
    /// A record above the limit, with the length of its frame.
    TooLong(u64),
    /// The beginning of a frame.
    Partial,
    /// An invalid length checksum: the next frame cannot be found.
    Broken,
}

/// Decodes the frame at the beginning of `bytes`.
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
    if length > MAX_LENGTH {
        return Frame::TooLong(length.saturating_add((HEAD_LEN + TAIL_LEN) as u64));
    }
    let Some((record, rest)) = rest.split_at_checked(length as usize) else {
        return Frame::Partial;
    };
    match rest.first_chunk::<4>() {
        None => Frame::Partial,
        Some(stated) => Frame::Complete {
            record,
            is_sound: checksum::masked(record) == u32::from_le_bytes(*stated),
        },
    }
}
