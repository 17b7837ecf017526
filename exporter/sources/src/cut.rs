//! Lines cut at short signs: at each by its first byte, because a line is too short for the preparations of a search.

/// Where `sign` stands first.
#[inline]
pub(crate) fn find(text: &str, sign: &str) -> Option<usize> {
    let first = *sign.as_bytes().first()?;
    memchr::memchr_iter(first, text.as_bytes()).find(|at| text.as_bytes()[*at..].starts_with(sign.as_bytes()))
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
    let at = places.find(|at| text.as_bytes()[*at..].starts_with(sign.as_bytes()))?;
    Some((&text[..at], &text[at + sign.len()..]))
}

/// The parts of a text between all places of `sign`.
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
        ] {
            assert_eq!(find(text, sign), text.find(sign), "{text}");
            assert_eq!(once(text, sign), text.split_once(sign), "{text}");
            assert_eq!(last(text, sign), text.rsplit_once(sign), "{text}");
            let parts: Vec<&str> = each(text, sign).collect();
            assert_eq!(parts, text.split(sign).collect::<Vec<_>>(), "{text}");
        }
    }
}
