//! Plain decimal numbers in one pass over their bytes. They are most of a log, and nearly all of them are short enough for
//! arithmetic that is exact; what is not, and what is no plain number, is left to the standard library.

/// The powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The first of them, as many as a number of eight bytes needs.
const SHORT_POWERS: [f64; 8] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

/// The largest integer up to which a double holds every one.
const EXACT_MANTISSA: u64 = 1 << 53;

/// More digits might not fit into 64 bits.
pub(super) const MOST_DIGITS: usize = 18;

/// A plain decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    mantissa: u64,
    /// The power of ten that the mantissa is times.
    power: i32,
    /// Whether it has neither a point nor an exponent.
    pub(super) is_integer: bool,
    /// How many bytes it takes.
    pub(super) len: usize,
}

impl Decimal {
    /// The number that `bytes` begin with; nothing where it takes more than this to read it.
    // Always: it is called for most of what is in a log, and its answer is large.
    #[inline(always)]
    pub(super) fn prefix(bytes: &[u8]) -> Option<Self> {
        let is_negative = bytes.first() == Some(&b'-');
        let mut at = usize::from(is_negative);
        let mut mantissa = 0_u64;
        let integer = digits(bytes, &mut at, &mut mantissa);
        let is_integer = !matches!(bytes.get(at), Some(b'.' | b'e'));
        let (mut fraction, mut exponent) = (0, 0);
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            fraction = digits(bytes, &mut at, &mut mantissa);
        }
        if bytes.get(at) == Some(&b'e') {
            at += 1;
            exponent = signed_exponent(bytes, &mut at)?;
        }
        if integer == 0 || integer + fraction > MOST_DIGITS {
            return None;
        }
        Some(Self {
            is_negative,
            mantissa,
            power: exponent - fraction as i32,
            is_integer,
            len: at,
        })
    }

    /// The number, of one that is an integer.
    #[inline]
    pub(super) fn int(self) -> i64 {
        let magnitude = self.mantissa as i64;
        if self.is_negative { -magnitude } else { magnitude }
    }

    /// The number, where it can be had exactly.
    #[inline]
    pub(super) fn double(self) -> Option<f64> {
        let magnitude = scaled(self.mantissa, self.power)?;
        Some(if self.is_negative { -magnitude } else { magnitude })
    }
}

/// Takes digits into the mantissa and says how many. Numbers that are too long for this are told by their count.
#[inline]
pub(super) fn digits(bytes: &[u8], at: &mut usize, mantissa: &mut u64) -> usize {
    let start = *at;
    // Before the point there is mostly one.
    if let Some(digit) = digit(bytes, *at) {
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
        *at += 1;
    }
    while let Some(eight) = bytes.get(*at..).and_then(<[u8]>::first_chunk) {
        let (number, count) = leading_digits(*eight);
        *mantissa = mantissa.wrapping_mul(POWERS[count]).wrapping_add(number);
        *at += count;
        if count < 8 {
            return *at - start;
        }
    }
    while let Some(digit) = digit(bytes, *at) {
        *mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
        *at += 1;
    }
    *at - start
}

#[inline]
fn digit(bytes: &[u8], at: usize) -> Option<u64> {
    let digit = bytes.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(u64::from(digit))
}

/// The powers of ten by the number of their zeros.
const POWERS: [u64; 9] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
];

const EACH: u64 = 0x0101_0101_0101_0101;

/// Marks the bytes of a word that are no digits' numbers. What the first of them carries may mark the one behind it too, unless
/// it is of ASCII.
#[inline]
pub(super) fn others(word: u64) -> u64 {
    // A byte above nine sets its highest bit.
    (word.wrapping_add(EACH * 0x76) | word) & (EACH * 0x80)
}

/// How many bytes stand before the first that is marked.
#[inline]
fn count_before(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// The byte that a word of digits' numbers was made of at this place, of eight.
#[inline]
fn byte_at(word: u64, place: usize) -> u8 {
    (word >> (8 * place % 64)) as u8 ^ b'0'
}

/// The number that the first digits of a word make, one at least: all at once
/// (<https://kholdstare.github.io/technical/2020/05/26/faster-integer-parsing.html>).
#[inline]
fn number_of(word: u64, count: usize) -> u64 {
    // Zeros in front, so that the last digit is in the last byte.
    let ones = word << (64 - 8 * count);
    let tens = ones.wrapping_mul(10).wrapping_add(ones >> 8);
    let low = (tens & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let high = (tens >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    low.wrapping_add(high) >> 32
}

/// The number that the digits make with which eight bytes begin, and how many they are.
#[inline]
fn leading_digits(bytes: [u8; 8]) -> (u64, usize) {
    let word = u64::from_le_bytes(bytes) ^ (EACH * u64::from(b'0'));
    match count_before(others(word)) {
        0 => (0, 0),
        count => (number_of(word, count), count),
    }
}

/// A number without a sign that ends within eight bytes, point and all, as most of a log do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    pub(super) value: f64,
    /// How many bytes it takes.
    pub(super) len: usize,
    /// Whether it is digits alone.
    pub(super) is_integer: bool,
    /// The byte behind it.
    pub(super) next: u8,
}

impl Short {
    /// The number that `bytes` begin with; nothing where it may go on behind the eighth, or has an exponent or no digit.
    // Always: it is called for nearly every number of a log, and its answer is large.
    #[inline(always)]
    pub(super) fn prefix(bytes: &[u8]) -> Option<Self> {
        let word = u64::from_le_bytes(*bytes.first_chunk()?) ^ (EACH * u64::from(b'0'));
        let others = others(word);
        let integer = count_before(others);
        if integer == 0 {
            return None;
        }
        // The digits behind a point end at the next byte that is none, and follow those before it.
        let has_point = byte_at(word, integer) == b'.';
        let (digits, others) = if has_point {
            let before = (1_u64 << (8 * integer)) - 1;
            (word & before | word >> 8 & !before, others & (others - 1))
        } else {
            (word, others)
        };
        let len = count_before(others);
        let count = len - usize::from(has_point);
        if others == 0 || byte_at(word, len) == b'e' {
            return None;
        }
        let mantissa = number_of(digits, count) as f64;
        Some(Self {
            value: mantissa / SHORT_POWERS[(count - integer) % SHORT_POWERS.len()],
            len,
            is_integer: !has_point,
            next: byte_at(word, len),
        })
    }
}

/// Two digits at most: more are out of the exact range anyway.
fn signed_exponent(bytes: &[u8], at: &mut usize) -> Option<i32> {
    let is_negative = bytes.get(*at) == Some(&b'-');
    *at += usize::from(matches!(bytes.get(*at), Some(b'-' | b'+')));
    let mut exponent = 0;
    let count = digits(bytes, at, &mut exponent);
    let exponent = (1..=2).contains(&count).then_some(exponent as i32)?;
    Some(if is_negative { -exponent } else { exponent })
}

/// `mantissa` times a power of ten: one operation on two exact numbers is rounded once, and so correctly (Clinger, "How to
/// read floating point numbers accurately", 1990).
fn scaled(mantissa: u64, power: i32) -> Option<f64> {
    let factor = EXACT_POWERS.get(power.unsigned_abs() as usize)?;
    let exact = (mantissa <= EXACT_MANTISSA).then_some(mantissa as f64)?;
    Some(if power < 0 { exact / factor } else { exact * factor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_the_one_that_the_standard_library_reads() {
        let mut shorts = 0;
        for text in [
            "0",
            "-7",
            "16384",
            "0.05",
            "-3.25",
            "6.0000002e-05",
            "2e+3",
            "9007199254740993.0",
            "1.5e22",
            "-0.0",
            "-0",
            "5.",
            "1234.567",
            "123456.7",
            "1234567",
            "12345678",
            "123.45678",
            "1e-5",
            "1.5e3",
        ] {
            let decimal = Decimal::prefix(text.as_bytes()).unwrap();
            assert_eq!(decimal.len, text.len(), "{text}");
            if let Some(number) = decimal.double() {
                let expected: f64 = text.parse().unwrap();
                assert_eq!(number.to_bits(), expected.to_bits(), "{text}");
            }
            for behind in [
                " | norm",
                "% of all",
                "/40 [00:03",
                ",ééé",
                "\u{0}23456789",
                "-0.5, 1.5",
            ] {
                let followed = format!("{text}{behind}");
                assert_eq!(Decimal::prefix(followed.as_bytes()), Some(decimal), "{followed}");
                if let Some(short) = Short::prefix(followed.as_bytes()) {
                    let found = (Some(short.value), short.len, short.is_integer);
                    assert_eq!(
                        found,
                        (decimal.double(), decimal.len, decimal.is_integer),
                        "{followed}"
                    );
                    shorts += 1;
                }
            }
        }
        assert_eq!(Decimal::prefix(b"9007199254740993.0").unwrap().double(), None);
        assert!(shorts > 20, "{shorts}");
    }

    #[test]
    fn as_many_digits_are_taken_as_there_are() {
        for count in 0..=18 {
            for behind in ["", ".", "}", "/", ":", "é", " 1234567", "\u{0}23456789"] {
                let text = format!("{}{behind}", &"987654321012345678"[..count]);
                let (mut at, mut mantissa) = (0, 0);
                assert_eq!(digits(text.as_bytes(), &mut at, &mut mantissa), count, "{text}");
                assert_eq!(mantissa, text[..count].parse().unwrap_or(0), "{text}");
            }
        }
    }

    #[test]
    fn a_number_ends_where_its_text_goes_on() {
        let read =
            |text: &str| Decimal::prefix(text.as_bytes()).map(|decimal| (decimal.double(), decimal.len));
        assert_eq!(read("0.000120000004, "), Some((Some(0.000_120_000_004), 14)));
        assert_eq!(read("1.5k tps"), Some((Some(1.5), 3)));
        assert_eq!(Decimal::prefix(b"-12}").map(Decimal::int), Some(-12));
    }

    #[test]
    fn what_is_long_or_no_plain_number_is_left_alone() {
        for text in [
            "",
            "-",
            ".",
            ".5",
            "nan",
            "1e",
            "1e400",
            "1234567890123456789",
            "0.30000000000000004123",
        ] {
            assert_eq!(Decimal::prefix(text.as_bytes()), None, "{text}");
        }
    }
}
