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

/// The value of each digit; `NONE` for what is none.
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

/// What is wrong with the digits of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadId {
    /// The character with this index is no digit.
    NoDigit(usize),
    /// The last byte has one digit only.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_in_either_case() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut digits = Vec::new();
        encode(&bytes, &mut digits);
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        decode(&digits, &mut lower).unwrap();
        decode(&digits.to_ascii_uppercase(), &mut upper).unwrap();
        assert_eq!((&lower, &upper), (&bytes, &bytes));
    }

    #[test]
    fn what_is_no_digit_is_named_by_its_place() {
        assert_eq!(decode(b"0ag1", &mut Vec::new()), Err(BadId::NoDigit(2)));
        assert_eq!(decode(b"0a1g", &mut Vec::new()), Err(BadId::NoDigit(3)));
        assert_eq!(decode(b"0a\xff", &mut Vec::new()), Err(BadId::NoDigit(2)));
        assert_eq!(decode(b"0a1", &mut Vec::new()), Err(BadId::Odd));
    }
}
