//! Offsets of subslices in their input, so that an error in a nested message names its place in the input.

use crate::wire::WireError;

/// Returns the offset in `input` of one of its subslices.
pub(crate) fn of_part(input: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(input.as_ptr() as usize)
}

/// Returns the error of a subslice with its offset in `input`.
pub(crate) fn of_error(error: WireError, input: &[u8], part: &[u8]) -> WireError {
    WireError {
        offset: error.offset + of_part(input, part),
        ..error
    }
}
