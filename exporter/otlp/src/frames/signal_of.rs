//! Detects the signal of a protobuf message from its structure.
//!
//! `TracesData`, `MetricsData` and `LogsData` have the same outer layers: a list of resources, each with a list of scopes, each
//! with a list of items. Only the items differ. Nearly every real one has a field that no other kind has with that number and
//! wire type: a span's times (7 and 8, fixed64), a record's time (1, fixed64) or severity (2, varint), a metric's sum (7, a
//! message). An item without any of these, such as a gauge with only a name, has the signal whose fields fit all its content.

use crate::{
    Signal,
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor},
    view::{LogRecord, Message, Metric, Span},
    wire::{Reader, WireValue},
};

const RESOURCES: u32 = 1;
const SCOPES: u32 = 2;
const ITEMS: u32 = 2;

/// The number of items that are inspected.
const SAMPLE: usize = 16;

/// The depth to which content is compared with a descriptor.
const DEPTH: usize = 32;

/// Returns the signals in their order of preference for ambiguous content, with the descriptors of their items.
fn kinds() -> [(Signal, &'static MessageDescriptor); 3] {
    [
        (Signal::Metrics, Metric::descriptor()),
        (Signal::Logs, LogRecord::descriptor()),
        (Signal::Traces, Span::descriptor()),
    ]
}

/// Returns the signal of a protobuf message, by its first items, or `None` if it has no items or they fit no signal.
pub fn signal_of(bytes: &[u8]) -> Option<Signal> {
    let items = messages(bytes, RESOURCES)
        .flat_map(|resource| messages(resource, SCOPES))
        .flat_map(|scope| messages(scope, ITEMS));
    let mut possible = kinds().to_vec();
    let mut sample = Vec::new();
    for item in items.filter(|item| !item.is_empty()).take(SAMPLE) {
        narrow(&mut possible, item);
        if let [(signal, _)] = possible[..] {
            return Some(signal);
        }
        sample.push(item);
    }
    possible.retain(|(_, table)| sample.iter().all(|item| fits(table, item, DEPTH)));
    match (&possible[..], &sample[..]) {
        ([(signal, _), ..], [_, ..]) => Some(*signal),
        _ => None,
    }
}

/// Iterates over the messages in one field of a message, up to the first error.
fn messages(bytes: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    Reader::new(bytes)
        .map_while(Result::ok)
        .filter_map(move |field| match field.value {
            WireValue::Bytes(inner) if field.number == number => Some(inner),
            _ => None,
        })
}

/// Removes the signals that lack a field of an item. Fields unknown to every signal are ignored.
fn narrow(possible: &mut Vec<(Signal, &'static MessageDescriptor)>, item: &[u8]) {
    let mut reader = Reader::new(item);
    while !reader.is_at_end() {
        let Ok(tag) = reader.tag() else { return };
        let has_field = |(_, table): &(Signal, &'static MessageDescriptor)| table.by_tag(tag).is_some();
        if possible.iter().any(has_field) {
            possible.retain(has_field);
        }
        if reader.value(tag).is_err() {
            return;
        }
    }
}

/// Returns whether a message has only the fields of a descriptor, with content that fits them.
fn fits(table: &'static MessageDescriptor, bytes: &[u8], depth: usize) -> bool {
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        let Ok(tag) = reader.tag() else { return false };
        let Some((_, field)) = table.by_tag(tag) else {
            return false;
        };
        match reader.value(tag) {
            Ok(WireValue::Bytes(value)) if !value_fits(field, value, depth) => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    true
}

fn value_fits(field: &FieldDescriptor, value: &[u8], depth: usize) -> bool {
    match field.kind {
        FieldKind::One(inner) | FieldKind::Many(inner) => depth == 0 || fits(inner(), value, depth - 1),
        FieldKind::Id => matches!(value.len(), 0 | 8 | 16),
        // A message that is read as text nearly always has control characters: a tag or a length.
        FieldKind::String => std::str::from_utf8(value).is_ok_and(|text| !text.contains(|c: char| c < ' ')),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Buffer;

    fn batch(item: &[u8]) -> Vec<u8> {
        [2, 2, 1]
            .into_iter()
            .fold(item.to_vec(), |inner, number| message(number, &inner))
    }

    fn message(number: u32, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = Buffer::default();
        buffer.delimited(number, bytes);
        buffer.into_vec()
    }

    fn item(fill: impl FnOnce(&mut Buffer)) -> Option<Signal> {
        let mut buffer = Buffer::default();
        fill(&mut buffer);
        signal_of(&batch(buffer.as_slice()))
    }

    #[test]
    fn time_fields_distinguish_spans_from_log_records() {
        assert_eq!(item(|span| span.fixed64(8, 1)), Some(Signal::Traces));
        assert_eq!(item(|record| record.fixed64(1, 1)), Some(Signal::Logs));
        assert_eq!(item(|record| record.fixed64(11, 1)), Some(Signal::Logs));
    }

    #[test]
    fn gauge_is_distinguished_from_a_span_with_only_ids_and_a_name() {
        let gauge = |metric: &mut Buffer| {
            metric.text(1, "train.throughput");
            metric.text(2, "Tokens/s");
            metric.delimited(5, &message(1, &[0x19, 1, 2, 3, 4, 5, 6, 7, 8]));
        };
        assert_eq!(item(gauge), Some(Signal::Metrics));
        let span = |span: &mut Buffer| {
            span.delimited(1, &[0xf0; 16]);
            span.delimited(2, &[0xf0; 8]);
            span.text(5, "train.step");
        };
        assert_eq!(item(span), Some(Signal::Traces));
    }

    #[test]
    fn log_record_with_only_a_body_is_distinguished_from_a_gauge() {
        let body = message(1, b"a line of a log");
        assert_eq!(item(|record| record.delimited(5, &body)), Some(Signal::Logs));
    }

    #[test]
    fn fields_unknown_to_every_signal_do_not_affect_detection() {
        assert_eq!(item(|any| any.uint(99, 1)), None);
        let mixed = |span: &mut Buffer| {
            span.uint(99, 1);
            span.fixed64(7, 1);
        };
        assert_eq!(item(mixed), Some(Signal::Traces));
    }

    #[test]
    fn empty_and_malformed_messages_have_no_detected_signal() {
        assert_eq!(signal_of(&[]), None);
        assert_eq!(signal_of(&batch(&[])), None);
        assert_eq!(signal_of(b"\xff\xff"), None);
    }
}
