//! Values of each type from random bytes; after the end of the bytes, all values are zero or empty.

pub(crate) struct Source<'s> {
    bytes: &'s [u8],
}

impl<'s> Source<'s> {
    pub(crate) fn new(bytes: &'s [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes.split_off_first().copied().unwrap_or_default()
    }

    pub(crate) fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    pub(crate) fn chance(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Returns a number of any size, small ones and the largest as often as others.
    pub(crate) fn u64(&mut self) -> u64 {
        match self.below(5) {
            0 => 0,
            1 => u64::from(self.byte()),
            2 => u64::MAX - u64::from(self.below(2)),
            3 => 1 << self.below(64),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    pub(crate) fn i64(&mut self) -> i64 {
        self.u64() as i64
    }

    pub(crate) fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    pub(crate) fn i32(&mut self) -> i32 {
        self.u64() as i32
    }

    /// Returns a double that is not NaN, unless all bits are allowed.
    pub(crate) fn f64(&mut self, is_any: bool) -> f64 {
        let value = match self.below(7) {
            0 => 0.0,
            1 => f64::from(self.byte()) / 7.0,
            2 => -0.0,
            3 => f64::INFINITY,
            4 => f64::NEG_INFINITY,
            5 => f64::NAN,
            _ => f64::from_bits(self.u64()),
        };
        if is_any || value.is_finite() { value } else { 2.31 }
    }

    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let length = match self.below(8) {
            0 => 0,
            7 => 130,
            other => other,
        };
        (0..length).map(|_| self.byte()).collect()
    }

    /// Returns text with all characters that JSON must escape, and some that it need not.
    pub(crate) fn text(&mut self) -> String {
        const ALPHABET: [char; 16] = [
            'a', 'Z', '0', '.', ' ', '"', '\\', '/', '\n', '\t', '\0', '\u{1f}', '\u{7f}', 'é', '\u{2028}',
            '🔥',
        ];
        let bytes = self.bytes();
        bytes
            .into_iter()
            .map(|byte| ALPHABET[usize::from(byte % 16)])
            .collect()
    }
}
