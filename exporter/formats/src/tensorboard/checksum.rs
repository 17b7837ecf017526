//! Computes the masked CRC-32C of TFRecord files (`tensorflow/core/lib/hash/crc32c.h`).

const MASK: u32 = 0xa282_ead8;
/// CRC-32C (Castagnoli), its bits mirrored (RFC 3720, section 12.1).
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Returns the masked checksum, as it is in the file. The mask protects data that contains its own checksum.
#[inline]
pub(super) fn masked(bytes: &[u8]) -> u32 {
    mask(crc32c::crc32c(bytes))
}

/// Returns the checksum of a record's length. Most records have less than 512 bytes, so a table holds these checksums.
#[inline]
pub(super) fn masked_length(length: u64) -> u32 {
    match OF_LENGTHS.get(length as usize) {
        Some(checksum) if length < OF_LENGTHS.len() as u64 => *checksum,
        _ => masked(&length.to_le_bytes()),
    }
}

const fn mask(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(MASK)
}

static OF_LENGTHS: [u32; 512] = of_lengths();

const fn of_lengths() -> [u32; 512] {
    let mut checksums = [0; 512];
    let mut length = 0;
    while length < checksums.len() {
        checksums[length] = mask(of_length(length as u64));
        length += 1;
    }
    checksums
}

/// Computes a checksum bit by bit, as defined.
const fn of_length(length: u64) -> u32 {
    let bytes = length.to_le_bytes();
    let (mut checksum, mut bit) = (u32::MAX, 0);
    while bit < u64::BITS {
        let input = bytes[bit as usize / 8] >> (bit % 8) & 1;
        let carries = (checksum ^ input as u32) & 1 == 1;
        checksum = checksum >> 1 ^ if carries { POLYNOMIAL } else { 0 };
        bit += 1;
    }
    !checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_checksum_equals_the_checksum_of_its_bytes() {
        for length in (0..1000).chain([1 << 32, (1 << 32) + 7, u64::MAX]) {
            assert_eq!(masked_length(length), masked(&length.to_le_bytes()), "{length}");
        }
    }
}
