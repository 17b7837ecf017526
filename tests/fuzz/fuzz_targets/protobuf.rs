//! Any bytes as each signal: `check`, the views and the JSON encoder accept the input that prost accepts, with the same result.

#![no_main]

#[path = "../../../exporter/otlp/tests/oracle/from_view.rs"]
mod from_view;

mod canonical;

use canonical::through_prost;
use from_view::ToProst;
use libfuzzer_sys::fuzz_target;
use prost::Message;
use pulsetrain_otlp::{
    Signal, WireErrorKind, frames, json,
    limits::{Counts, LimitError, Limits, MAX_DEPTH, check},
    split::split,
    view::{self, Message as _},
};

fuzz_target!(|bytes: &[u8]| {
    let _ = frames::signal_of(bytes);
    for signal in Signal::ALL {
        let checked = check(signal, bytes, &limits());
        let encoded = json::encode(signal, bytes, &mut Vec::new());
        assert!(checked.is_err() || encoded.is_ok(), "{checked:?} {encoded:?}");
        if let Ok(counts) = &checked {
            parts_hold_the_same_items(signal, bytes, counts.items);
        }
        if let Some(canonical) = through_prost(signal, bytes) {
            assert!(checked.as_ref().map_or_else(is_group, |_| true), "{checked:?}");
            reads_as_prost_wrote(signal, &canonical);
        }
    }
});

/// Asserts that the parts of a split message are messages and have all its items.
fn parts_hold_the_same_items(signal: Signal, bytes: &[u8], items: u64) {
    let parts = split(signal, bytes, bytes.len() / 2).unwrap();
    let in_part = |bytes: &[u8]| check(signal, bytes, &limits()).unwrap().items;
    let together: u64 = parts.iter().map(|part| in_part(&part.bytes)).sum();
    assert!(parts.is_empty() || together == items, "{together} of {items}");
    assert!(parts.iter().all(|part| u64::from(part.items) == in_part(&part.bytes)));
}

/// Returns limits with the maximum depth of our readers, which is greater than that of prost.
fn limits() -> Limits {
    Limits {
        depth: MAX_DEPTH,
        ..Limits::default()
    }
}

/// Returns whether the error is about a group, which OTLP has never had; prost skips unknown groups.
fn is_group(error: &LimitError) -> bool {
    matches!(error, LimitError::Wire(error) if error.kind == WireErrorKind::BadWireType)
}

/// Asserts that bytes from prost have the same meaning for the views, and survive JSON except for the payload of a NaN.
fn reads_as_prost_wrote(signal: Signal, canonical: &[u8]) {
    assert_eq!(through_views(signal, canonical), canonical);
    let (once, counts) = through_json(signal, canonical);
    assert_eq!(check(signal, canonical, &limits()).unwrap(), counts);
    assert_eq!(once.len(), canonical.len());
    assert_eq!(through_json(signal, &once).0, once);
}

fn through_views(signal: Signal, bytes: &[u8]) -> Vec<u8> {
    match signal {
        Signal::Traces => view::TracesData::decode(bytes)
            .unwrap()
            .to_prost()
            .encode_to_vec(),
        Signal::Metrics => view::MetricsData::decode(bytes)
            .unwrap()
            .to_prost()
            .encode_to_vec(),
        Signal::Logs => view::LogsData::decode(bytes).unwrap().to_prost().encode_to_vec(),
    }
}

fn through_json(signal: Signal, bytes: &[u8]) -> (Vec<u8>, Counts) {
    let (mut text, mut again) = (Vec::new(), Vec::new());
    json::encode(signal, bytes, &mut text).unwrap();
    let decoded = json::decode(&text, &limits(), &mut again).unwrap();
    assert_eq!(decoded.unknown_fields, 0);
    (again, decoded.counts)
}
