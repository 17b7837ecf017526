//! Finds how many envelopes are around the lines of a known format: the fewest without which the format detects the log.

use std::borrow::Cow;

use pulsetrain_otlp::UnixNanos;

use super::{Detect, clean::clean, envelope::Unwrapped, timestamp::DateOrder};

/// The most envelopes around a line.
pub(super) const MAX_LAYERS: usize = 4;

/// The most bytes that are kept until the number of envelopes is known.
pub(super) const MAX_KEPT: usize = 16 << 10;

/// Returns the number of envelopes around the lines of a log, or `None` while its first bytes do not show it: the fewest without
/// which the format detects the log, and those around nearly all of its lines.
pub(super) fn layers(detect: Detect, head: &[u8]) -> Option<usize> {
    let mut found = match detect(head) {
        Some(_) => 0,
        None => each_layer(head).find_map(|(layers, text)| detect(&text).map(|_| layers))?,
    };
    while found < MAX_LAYERS
        && let Some(text) = without_common_layer(head, found)
        && detect(&text).is_some()
    {
        found += 1;
    }
    Some(found)
}

/// Returns the head without one envelope more than `layers`, if nearly all of its lines have it.
fn without_common_layer(head: &[u8], layers: usize) -> Option<Vec<u8>> {
    let inner = match layers {
        0 => Cow::Borrowed(head),
        _ => Cow::Owned(without_layers(head, layers)?),
    };
    let order = DateOrder::default();
    let (mut lines, mut wrapped) = (0, 0);
    for line in inner
        .split(|byte| matches!(byte, b'\n' | b'\r'))
        .filter(|line| !line.is_empty())
    {
        lines += 1;
        wrapped += usize::from(Unwrapped::likely(&clean(line), UnixNanos::UNKNOWN, &order).is_some());
        if lines >= MAX_COUNTED {
            break;
        }
    }
    let is_common = wrapped > 0 && (lines - wrapped) * 10 <= lines;
    is_common.then(|| without_layers(head, layers + 1))?
}

/// The lines of a head that are counted.
const MAX_COUNTED: usize = 200;

/// Returns the offset of the first line that may have an envelope. Lines before it are the same with any number of envelopes.
pub(super) fn first_wrapped(head: &[u8]) -> usize {
    let order = DateOrder::default();
    let is_plain = |line: &&[u8]| Unwrapped::any(&clean(line), UnixNanos::UNKNOWN, &order).is_none();
    let lines = head.split_inclusive(|byte| matches!(byte, b'\n' | b'\r'));
    lines.take_while(is_plain).map(<[u8]>::len).sum()
}

/// Returns the head of a log without one envelope, without two, and so on, as far as its lines have them.
pub(super) fn each_layer(head: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> + '_ {
    let is_text = memchr::memchr(0, head).is_none();
    let layers = (1..=MAX_LAYERS).map(|layers| (layers, without_layers(head, layers)));
    layers
        .take_while(move |(_, text)| is_text && text.is_some())
        .filter_map(|(layers, text)| Some((layers, text?)))
}

/// Returns the head without this many envelopes, or `None` if no line has that number of them.
pub(super) fn without_layers(head: &[u8], layers: usize) -> Option<Vec<u8>> {
    let order = DateOrder::default();
    let mut text = Vec::with_capacity(head.len());
    let mut has_all = false;
    for line in head.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let mut inner = clean(line).into_owned();
        let mut is_partial = false;
        let mut removed = 0;
        while removed < layers
            && let Some(next) = Unwrapped::any(&inner, UnixNanos::UNKNOWN, &order)
        {
            is_partial = next.is_partial;
            inner = next.text.into_owned();
            removed += 1;
        }
        has_all |= removed == layers;
        text.extend_from_slice(inner.as_bytes());
        if !is_partial {
            text.push(b'\n');
        }
    }
    has_all.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(head: &[u8]) -> Option<&'static str> {
        let mut lines = head.split(|byte| *byte == b'\n');
        lines.any(|line| line.starts_with(b"step ")).then_some("a step")
    }

    #[test]
    fn the_fewest_envelopes_are_found() {
        for (head, expected) in [
            ("step 10\n", Some(0)),
            ("worker-0: step 10\n", Some(1)),
            (
                "start\nworker-0: 2025-12-13T14:02:11Z stdout F step 10\n",
                Some(2),
            ),
            ("start\n", None),
            ("worker-0: start\n", None),
        ] {
            assert_eq!(layers(detect, head.as_bytes()), expected, "{head}");
        }
        assert_eq!(first_wrapped(b"start\nworker-0: start\n"), 6);
        assert_eq!(first_wrapped(b"start\n"), 6);
    }
}
