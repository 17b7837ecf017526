//! Where a part of some bytes lies in the whole, so that an error in a nested message names its place in the input.

use crate::wire::WireError;

/// The offset in `whole` of a slice of it.
pub(crate) fn of_part(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// An error in a slice of `whole`, with its offset in `whole`.
pub(crate) fn of_error(error: WireError, whole: &[u8], part: &[u8]) -> WireError {
    WireError {
        offset: error.offset + of_part(whole, part),
        ..error
    }
}
