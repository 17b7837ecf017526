//! The masked CRC-32C of TFRecord files (`tensorflow/core/lib/hash/crc32c.h`).

const MASK: u32 = 0xa282_ead8;

/// The checksum as a file has it: masked, since data that holds its own checksum is a weak case.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(MASK)
}
