//! Lines cut at short signs, and short words compared: both are so near and so short that the preparations of a search, and the
//! call of a comparison, would take longer than what they are for.

/// How far a byte is looked for eight bytes at a time; a vectorised search is faster beyond.
const NEAR: usize = 32;

/// Where `byte` stands first.
#[inline]
pub(crate) fn byte(text: &[u8], byte: u8) -> Option<usize> {
    let eight = [byte; 8];
    near(
        text,
        |word| zero_bytes(word ^ u64::from_le_bytes(eight)),
        |rest| memchr::memchr(byte, rest),
        |other| other == byte,
    )
}

/// Where the first of two bytes stands first.
#[inline]
pub(crate) fn either(text: &[u8], one: u8, two: u8) -> Option<usize> {
    let (ones, twos) = (u64::from_le_bytes([one; 8]), u64::from_le_bytes([two; 8]));
    near(
        text,
        |word| zero_bytes(word ^ ones) | zero_bytes(word ^ twos),
        |rest| memchr::memchr2(one, two, rest),
        |other| other == one || other == two,
    )
}

/// Where the first byte stands that is looked for: in eight of them, of which the lowest found has the lowest bit, or far away,
/// or alone.
#[inline]
fn near(
    text: &[u8],
    in_eight: impl Fn(u64) -> u64,
    far: impl Fn(&[u8]) -> Option<usize>,
    alone: impl Fn(u8) -> bool,
) -> Option<usize> {
    let mut at = 0;
    while let Some(eight) = text[at..].first_chunk() {
        if at == NEAR {
            return far(&text[at..]).map(|found| at + found);
        }
        let found = in_eight(u64::from_le_bytes(*eight));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = text[at..].iter().position(|other| alone(*other));
    rest.map(|found| at + found)
}

/// The lowest bit that is set belongs to the lowest byte that is zero (Mycroft's test; higher bytes may be wrong).
#[inline]
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    word.wrapping_sub(LOW) & !word & HIGH
}

/// Whether two words are the same.
#[inline]
pub(crate) fn same(one: &str, other: &str) -> bool {
    same_bytes(one.as_bytes(), other.as_bytes())
}

/// Whether the bytes of two words are the same.
#[inline]
pub(crate) fn same_bytes(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    // Pieces that overlap cover every length between theirs and twice theirs.
    match one.len() {
        16..=32 => {
            one.first_chunk::<16>() == other.first_chunk() && one.last_chunk::<16>() == other.last_chunk()
        }
        8..16 => one.first_chunk::<8>() == other.first_chunk() && one.last_chunk::<8>() == other.last_chunk(),
        4..8 => one.first_chunk::<4>() == other.first_chunk() && one.last_chunk::<4>() == other.last_chunk(),
        0..4 => one.iter().zip(other).all(|(one, other)| one == other),
        _ => one == other,
    }
}

/// Whether a text begins with what another had at its place.
#[inline]
pub(crate) fn begins_like(text: &[u8], known: &[u8]) -> bool {
    let start = text.get(..known.len());
    start.is_some_and(|start| same_bytes(start, known))
}

/// Whether a text begins with `sign`.
#[inline]
fn begins(text: &[u8], sign: &[u8]) -> bool {
    match (sign, text) {
        ([one], [first, ..]) => one == first,
        ([one, two], [first, second, ..]) => [one, two] == [first, second],
        ([one, two, three], [first, second, third, ..]) => [one, two, three] == [first, second, third],
        _ => begins_like(text, sign),
    }
}

/// The text behind `sign`, if it begins with it.
#[inline]
pub(crate) fn behind<'a>(text: &'a str, sign: &str) -> Option<&'a str> {
    begins(text.as_bytes(), sign.as_bytes()).then(|| &text[sign.len()..])
}

/// Where `sign` stands first.
#[inline]
pub(crate) fn find(text: &str, sign: &str) -> Option<usize> {
    let first = *sign.as_bytes().first()?;
    let mut at = 0;
    loop {
        at += byte(&text.as_bytes()[at..], first)?;
        if begins(&text.as_bytes()[at..], sign.as_bytes()) {
            return Some(at);
        }
        at += 1;
    }
}

/// The text before the first `sign`, and that behind it.
#[inline]
pub(crate) fn once<'a>(text: &'a str, sign: &str) -> Option<(&'a str, &'a str)> {
    let at = find(text, sign)?;
    Some((&text[..at], &text[at + sign.len()..]))
}

/// The text before the last `sign`, and that behind it.
#[inline]
pub(crate) fn last<'a>(text: &'a str, sign: &str) -> Option<(&'a str, &'a str)> {
    let first = *sign.as_bytes().first()?;
    let mut places = memchr::memrchr_iter(first, text.as_bytes());
    let at = places.find(|at| begins(&text.as_bytes()[*at..], sign.as_bytes()))?;
    Some((&text[..at], &text[at + sign.len()..]))
}

/// The parts of a text between all places of `sign`.
#[inline]
pub(crate) fn each<'a>(text: &'a str, sign: &'a str) -> impl Iterator<Item = &'a str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (part, after) = once(text, sign).map_or((text, None), |(part, after)| (part, Some(after)));
        rest = after;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_as_the_standard_library_cuts_them() {
        for (text, sign) in [
            ("a | b || c | ", " | "),
            ("", ", "),
            ("loss=1, lr=2", ", "),
            ("größe: ß: 1", ": "),
            ("no sign", "|"),
            ("aaab", "aab"),
            ("0123456789abcdef0123456789abcdef0123456789 | far", " | "),
            ("\u{81}\u{100}\u{7fff}=\u{1}", "="),
        ] {
            assert_eq!(find(text, sign), text.find(sign), "{text}");
            assert_eq!(once(text, sign), text.split_once(sign), "{text}");
            assert_eq!(last(text, sign), text.rsplit_once(sign), "{text}");
            assert_eq!(behind(text, sign), text.strip_prefix(sign), "{text}");
            let parts: Vec<&str> = each(text, sign).collect();
            assert_eq!(parts, text.split(sign).collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn a_byte_is_found_wherever_it_stands() {
        for len in 0..80 {
            for at in 0..len {
                let mut text = vec![b'='.wrapping_add(1); len];
                text[at..].fill(b'<');
                text[at] = b'=';
                assert_eq!(byte(&text, b'='), Some(at), "{at} of {len}");
                assert_eq!(byte(&text, b'?'), None);
                assert_eq!(either(&text, b'?', b'='), Some(at), "{at} of {len}");
                let first = text.iter().position(|byte| matches!(byte, b'<' | b'='));
                assert_eq!(either(&text, b'=', b'<'), first, "{at} of {len}");
                assert_eq!(either(&text, b'?', b'!'), None);
            }
        }
    }

    #[test]
    fn words_are_the_same_where_every_byte_is() {
        let word = "train/learning_rate_of_all_parameters_in_it";
        for len in 0..word.len() {
            assert!(same(&word[..len], &word.to_owned()[..len]));
            assert!(!same(&word[..len], &word[..len + 1]));
            assert!(begins_like(word.as_bytes(), word[..len].to_owned().as_bytes()));
            assert!(!begins_like(&word.as_bytes()[..len], word.as_bytes()));
            for at in 0..len {
                let mut other = word[..len].to_owned();
                other.replace_range(at..=at, "#");
                assert!(!same(&word[..len], &other), "{other}");
            }
        }
    }
}
