//! Trace and span ids: lower-case hexadecimal when written, either case when read.

/// The two digits of each byte.
static DIGITS: [[u8; 2]; 256] = {
    let digit = *b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [digit[byte >> 4], digit[byte & 15]];
        byte += 1;
    }
    table
};

/// The value of each hex digit, and `NONE` for any other byte.
static VALUES: [u8; 256] = {
    let mut table = [NONE; 256];
    let mut value = 0;
    while value < 16 {
        let [_, digit] = DIGITS[value];
        table[digit as usize] = value as u8;
        table[digit.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    table
};

const NONE: u8 = 0xff;

/// An error in the digits of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadId {
    /// The character at this index is not a hex digit.
    NoDigit(usize),
    /// The last byte has only one digit.
    Odd,
}

/// Appends the digits of `bytes`.
#[inline]
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.extend_from_slice(&DIGITS[byte as usize]);
    }
}

/// Appends the bytes of `digits`.
#[inline]
pub(super) fn decode(digits: &[u8], out: &mut Vec<u8>) -> Result<(), BadId> {
    let mut wrong = 0;
    let (pairs, rest) = digits.as_chunks::<2>();
    let start = out.len();
    out.resize(start + pairs.len(), 0);
    for (byte, &[high, low]) in out[start..].iter_mut().zip(pairs) {
        let (high, low) = (VALUES[high as usize], VALUES[low as usize]);
        wrong |= high | low;
        *byte = high << 4 | (low & 15);
    }
    if wrong == NONE || rest.first().is_some_and(|&digit| VALUES[digit as usize] == NONE) {
        let index = digits.iter().position(|&digit| VALUES[digit as usize] == NONE);
        return Err(BadId::NoDigit(index.unwrap_or_default()));
    }
    if rest.is_empty() { Ok(()) } else { Err(BadId::Odd) }
}

/// Decodes the digits of a span id, or returns `None` if they are not hex digits.
#[inline]
pub(super) fn span_id(digits: &[u8; 16]) -> Option<[u8; 8]> {
    let (words, _) = digits.as_chunks::<8>();
    let [high, low] = [words[0], words[1]].map(|word| four_bytes(u64::from_le_bytes(word)));
    Some((u64::from(high?) | u64::from(low?) << 32).to_le_bytes())
}

/// Decodes the digits of a trace id, or returns `None` if they are not hex digits.
#[inline]
pub(super) fn trace_id(digits: &[u8; 32]) -> Option<[u8; 16]> {
    let (halves, _) = digits.as_chunks::<16>();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&span_id(&halves[0])?);
    id[8..].copy_from_slice(&span_id(&halves[1])?);
    Some(id)
}

/// Decodes eight hex digits, the first in the lowest byte, into four bytes at once (SWAR).
#[inline]
fn four_bytes(word: u64) -> Option<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES * 0x80;
    // The high bit of each byte that is at least `first`, if no byte of `word` has its high bit set.
    let from = |word: u64, first: u8| word + ONES * u64::from(0x80 - first);
    if word & HIGHS != 0 {
        return None;
    }
    let lower = word | (ONES * 0x20);
    let figures = from(word, b'0') & !from(word, b'9' + 1);
    let letters = from(lower, b'a') & !from(lower, b'f' + 1);
    if (figures | letters) & HIGHS != HIGHS {
        return None;
    }
    let values = (word & (ONES * 0x0f)) + (word >> 6 & ONES) * 9;
    let bytes = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let pairs = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    Some((pairs | pairs >> 16) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_id_decoding_matches_digit_by_digit_decoding() {
        for digit in 0..=255 {
            for place in 0..16 {
                let mut digits = *b"0123456789abCDeF";
                digits[place] = digit;
                let mut plain = Vec::new();
                let plain = decode(&digits, &mut plain).ok().map(|()| plain);
                assert_eq!(span_id(&digits).map(Vec::from), plain, "{digit} at {place}");
            }
        }
        let digits = b"4bf92f3577b34da6a3ce929d0e0e4736";
        let mut plain = Vec::new();
        decode(digits, &mut plain).unwrap();
        assert_eq!(trace_id(digits).unwrap().as_slice(), plain);
    }

    #[test]
    fn every_byte_round_trips_through_lower_and_upper_case_hex() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut digits = Vec::new();
        encode(&bytes, &mut digits);
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        decode(&digits, &mut lower).unwrap();
        decode(&digits.to_ascii_uppercase(), &mut upper).unwrap();
        assert_eq!((&lower, &upper), (&bytes, &bytes));
    }

    #[test]
    fn invalid_hex_digit_is_reported_with_its_offset() {
        assert_eq!(decode(b"0ag1", &mut Vec::new()), Err(BadId::NoDigit(2)));
        assert_eq!(decode(b"0a1g", &mut Vec::new()), Err(BadId::NoDigit(3)));
        assert_eq!(decode(b"0a\xff", &mut Vec::new()), Err(BadId::NoDigit(2)));
        assert_eq!(decode(b"0a1", &mut Vec::new()), Err(BadId::Odd));
    }
}
