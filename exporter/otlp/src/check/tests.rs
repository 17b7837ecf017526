use super::*;
use crate::{limits::MAX_DEPTH, skip::is_simple, wire::WireErrorKind, write::Buffer};

/// Returns a message with `bytes` as field `number`, `times` times.
fn repeated(number: u32, bytes: &[u8], times: usize) -> Vec<u8> {
    let mut buffer = Buffer::default();
    for _ in 0..times {
        buffer.delimited(number, bytes);
    }
    buffer.into_vec()
}

/// A batch of one resource and one scope that holds `items`.
fn batch(items: &[u8]) -> Vec<u8> {
    repeated(1, &repeated(2, items, 1), 1)
}

/// A batch of one log record whose body is nested lists.
fn nested_lists(levels: usize) -> Vec<u8> {
    let body = (0..levels).fold(Vec::new(), |inner, _| repeated(5, &repeated(1, &inner, 1), 1));
    batch(&repeated(2, &repeated(5, &body, 1), 1))
}

fn breached(signal: Signal, bytes: &[u8]) -> Option<Limit> {
    match check(signal, bytes, &Limits::default()) {
        Err(LimitError::Exceeded { exceeded, .. }) => Some(exceeded.limit),
        _ => None,
    }
}

#[test]
fn items_attributes_and_messages_are_counted() {
    let attributes = repeated(9, &repeated(1, b"k", 1), 3);
    let bytes = batch(&repeated(2, &attributes, 2));
    let counts = check(Signal::Traces, &bytes, &Limits::default()).unwrap();
    assert_eq!(
        counts,
        Counts {
            items: 2,
            attributes: 6,
            messages: 11
        }
    );
}

#[test]
fn skipping_accepts_and_rejects_the_same_attributes_as_the_full_check() {
    let checked = |attribute: &[u8], depth| {
        let bytes = batch(&repeated(2, &repeated(9, attribute, 1), 1));
        let limits = Limits {
            depth,
            ..Limits::default()
        };
        check(Signal::Traces, &bytes, &limits).map_err(|error| match error {
            LimitError::Wire(error) => error.kind.to_string(),
            LimitError::Exceeded { exceeded, .. } => exceeded.to_string(),
        })
    };
    let values: [&[u8]; 4] = [
        b"\x0a\x04text",
        b"\x10\x01",
        b"\x18\x96\x01",
        b"\x21\0\0\0\0\0\0\xf0\x3f",
    ];
    for value in values {
        let attribute = [repeated(1, b"key", 1), repeated(2, value, 1)].concat();
        assert!(is_simple(&attribute) && checked(&attribute, 6).is_ok() && checked(&attribute, 5).is_err());
        for (place, byte) in
            (0..attribute.len()).flat_map(|place| (0..=u8::MAX).map(move |byte| (place, byte)))
        {
            let mut changed = attribute.clone();
            changed[place] = byte;
            // The check enters the messages, because the attribute begins with an unknown field.
            let entered = [&[0x78, 0], changed.as_slice()].concat();
            for depth in [4, 5, 6] {
                assert_eq!(checked(&changed, depth), checked(&entered, depth), "{changed:?}");
            }
        }
        assert!((0..attribute.len()).all(|end| !is_simple(&attribute[..end])));
    }
    let bits65 = [b"\x0a\x00\x12\x0b\x18".as_slice(), &[0xff; 9], &[2]].concat();
    assert!(!is_simple(&bits65) && checked(&bits65, 6).is_err());
}

#[test]
fn four_million_empty_spans_exceed_the_item_limit() {
    let bytes = batch(&repeated(2, &[], 4 << 20));
    assert_eq!(breached(Signal::Traces, &bytes), Some(Limit::Items));
}

#[test]
fn hundred_thousand_attributes_of_a_span_exceed_the_limit() {
    let bytes = batch(&repeated(2, &repeated(9, &[], 100_000), 1));
    assert_eq!(breached(Signal::Traces, &bytes), Some(Limit::Attributes));
}

#[test]
fn value_nested_ten_thousand_levels_exceeds_the_depth_limit() {
    assert_eq!(breached(Signal::Logs, &nested_lists(5_000)), Some(Limit::Depth));
}

#[test]
fn configured_depth_limit_is_capped_at_the_maximum_nesting() {
    let limits = Limits {
        depth: usize::MAX,
        ..Limits::default()
    };
    // Five messages are around the innermost list and its value.
    let deepest = (MAX_DEPTH - 5) / 2;
    assert!(check(Signal::Logs, &nested_lists(deepest), &limits).is_ok());
    assert!(check(Signal::Logs, &nested_lists(deepest + 1), &limits).is_err());
}

#[test]
fn message_over_the_byte_limit_is_rejected_before_parsing() {
    let limits = Limits {
        bytes: 3,
        ..Limits::default()
    };
    let error = check(Signal::Logs, &[0xff; 4], &limits).unwrap_err();
    assert_eq!(error.to_string(), "more than 3 bytes at byte 3");
}

#[test]
fn error_in_a_nested_message_has_its_offset_in_the_outer_message() {
    let whole = batch(&repeated(2, &[0x0a, 2, 0, 0, 0x12, 9], 1));
    let error = check(Signal::Traces, &whole, &Limits::default()).unwrap_err();
    let expected = WireError {
        kind: WireErrorKind::Truncated,
        offset: 11,
    };
    assert_eq!(error, LimitError::Wire(expected));
}

#[test]
fn truncated_packed_field_is_rejected() {
    let point = repeated(6, &[0; 9], 1);
    let metric = repeated(9, &repeated(1, &point, 1), 1);
    let bytes = batch(&repeated(2, &metric, 1));
    assert!(matches!(
        check(Signal::Metrics, &bytes, &Limits::default()),
        Err(LimitError::Wire(_))
    ));
}

#[test]
fn check_skips_unknown_fields() {
    let bytes = batch(&repeated(2, &repeated(99, &[0xff; 3], 5), 1));
    let counts = check(Signal::Traces, &bytes, &Limits::default()).unwrap();
    assert_eq!((counts.items, counts.attributes), (1, 0));
}
