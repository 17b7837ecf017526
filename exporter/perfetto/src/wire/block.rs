//! Short fields, combined in a register and written with one store: one capacity check for all of them, instead of one for
//! each byte.

/// The capacity of a block in bytes.
const MOST: usize = 16;

/// At most 16 bytes of protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The first byte is the lowest.
    bytes: u128,
    length: usize,
}

/// Returns a tag: the field number and the wire type.
#[inline(always)]
const fn tag(number: u32, wire_type: u32) -> u64 {
    (number << 3 | wire_type) as u64
}

impl Block {
    /// An empty block.
    pub(crate) const EMPTY: Self = Self { bytes: 0, length: 0 };

    /// A bare varint.
    #[inline(always)]
    pub(crate) fn varint(value: u64) -> Self {
        if value < 0x80 {
            return Self {
                bytes: u128::from(value),
                length: 1,
            };
        }
        Self::long_varint(value)
    }

    #[inline(always)]
    fn long_varint(value: u64) -> Self {
        let length = super::varint_len(value);
        // Eight groups of seven bits are spread in three steps. Each step doubles the number of groups.
        let spread = (value & 0x0fff_ffff) | ((value & 0xff_ffff_f000_0000) << 4);
        let spread = (spread & 0x0000_3fff_0000_3fff) | ((spread & 0x0fff_c000_0fff_c000) << 2);
        let spread = (spread & 0x007f_007f_007f_007f) | ((spread & 0x3f80_3f80_3f80_3f80) << 1);
        let high = u128::from((value >> 56 & 0x7f) | ((value >> 63) << 8));
        let more = 0x0080_8080_8080_8080_8080_u128 & ((1 << (8 * (length - 1))) - 1);
        Self {
            bytes: u128::from(spread) | (high << 64) | more,
            length,
        }
    }

    /// Encodes a number of at most 35 bits as a varint of up to five bytes, and returns it with its length.
    #[inline(always)]
    pub(crate) fn five_bytes(value: u64) -> (u64, usize) {
        let length = super::varint_len(value);
        let spread = (value & 0x0fff_ffff) | ((value & 0x7_f000_0000) << 4);
        let spread = (spread & 0x7f_0000_3fff) | ((spread & 0x0fff_c000) << 2);
        let spread = (spread & 0x7f_007f_007f) | ((spread & 0x3f80_3f80) << 1);
        let more = 0x80_8080_8080 & ((1 << (8 * (length - 1))) - 1);
        (spread | more, length)
    }

    /// A block of bytes that are already encoded. The first byte is the lowest, and the bytes above `length` are zero.
    #[inline(always)]
    pub(crate) fn new(bytes: u64, length: usize) -> Self {
        Self {
            bytes: bytes.into(),
            length,
        }
    }

    /// A field of wire type 0; a negative number is its two's complement.
    #[inline(always)]
    pub(crate) fn uint(number: u32, value: u64) -> Self {
        Self::varint(tag(number, 0)).then(Self::varint(value))
    }

    /// A field of wire type 1.
    #[inline(always)]
    pub(crate) fn fixed64(number: u32, value: u64) -> Self {
        let value = Self {
            bytes: u128::from(value),
            length: 8,
        };
        Self::varint(tag(number, 1)).then(value)
    }

    /// Tag and length of a value whose `length` bytes follow.
    #[inline(always)]
    pub(crate) fn head(number: u32, length: usize) -> Self {
        Self::varint(tag(number, 2)).then(Self::varint(length as u64))
    }

    /// Concatenates two blocks whose total length is within the capacity.
    #[inline(always)]
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            bytes: self.bytes | (next.bytes << (8 * self.length)),
            length: self.length + next.length,
        }
    }

    /// Concatenates two blocks, or returns `None` if the total length exceeds the capacity.
    #[inline(always)]
    pub(crate) fn checked_then(self, next: Self) -> Option<Self> {
        (self.length + next.length <= MOST).then(|| self.then(next))
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.length
    }

    /// Returns the bytes, padded with zeros.
    #[inline(always)]
    pub(crate) fn padded(self) -> [u8; MOST] {
        self.bytes.to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes one byte at a time, as a reference.
    fn plain(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    #[test]
    fn block_encodes_varints_of_every_length() {
        let edges = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) | 0x55, !(1_u64 << bit)]);
        for value in edges.chain([u64::MAX, 0x0123_4567_89ab_cdef]) {
            let block = Block::varint(value);
            assert_eq!(block.padded()[..block.len()], plain(value), "{value:#x}");
            assert!(block.padded()[block.len()..].iter().all(|byte| *byte == 0));
            if value < 1 << 35 {
                let (bytes, length) = Block::five_bytes(value);
                assert_eq!(Block::new(bytes, length), block, "{value:#x}");
            }
        }
    }

    #[test]
    fn blocks_are_joined_up_to_their_capacity() {
        let longest = Block::uint(3, u64::MAX);
        assert_eq!(longest.len(), 11);
        let both = Block::head(4, 13).checked_then(longest).unwrap();
        assert_eq!(both.padded()[..4], [0x22, 13, 0x18, 0xff]);
        assert_eq!(both.checked_then(Block::uint(1, 0)).map(Block::len), Some(15));
        assert_eq!(both.checked_then(longest), None);
    }
}
