//! Recognises a protobuf message that is not length-delimited: the body of a POST, a response of Tempo, `SerializeToString()`.
//!
//! Such a message begins with field 1, and so does a Perfetto trace. They differ in the nested messages: a resource has
//! attributes and a scope has a name where a packet of Perfetto has numbers. Both are compared with the descriptors of OTLP.

use crate::{
    descriptor::{FieldDescriptor, FieldKind, MessageDescriptor},
    view::{LogsData, Message, MetricsData, TracesData},
    wire::{Reader, WireErrorKind},
};

/// The tag of the resources, which is the only field of the three messages.
const RESOURCES: u8 = 0x0a;

/// The depth to which fields are compared: data, resources, scopes, items. Deeper content may be any bytes.
const DEPTH: u32 = 3;

/// From this depth on, a later version of OTLP may have fields that the descriptors do not have.
const EXTENSIBLE: u32 = 2;

/// Whether the message may be incomplete.
enum Truncation {
    /// The message ends with its bytes.
    No,
    /// More bytes of the message may follow.
    Maybe,
}

/// Returns whether an input begins with `TracesData`, `MetricsData` or `LogsData` that is not length-delimited.
///
/// `head` is the beginning of the input, or all of it; 1 KiB is enough. Returns `false` for a Perfetto trace, OTLP/JSON and
/// length-delimited messages.
pub fn is_unframed(head: &[u8]) -> bool {
    let tables = [
        TracesData::descriptor(),
        MetricsData::descriptor(),
        LogsData::descriptor(),
    ];
    head.first() == Some(&RESOURCES)
        && tables.into_iter().any(|table| {
            let mut known_items = 0;
            fits(table, head, &Truncation::Maybe, 0, &mut known_items).is_some() && known_items > 0
        })
}

/// Compares bytes with a descriptor and counts the known fields at the greatest depth. Returns `None` if a field is not in the
/// descriptor.
fn fits(
    table: &'static MessageDescriptor,
    mut bytes: &[u8],
    cut: &Truncation,
    depth: u32,
    known_items: &mut u64,
) -> Option<()> {
    while !bytes.is_empty() {
        let mut reader = Reader::new(bytes);
        let tag = match reader.tag() {
            Ok(tag) => tag,
            Err(error) => return is_cut(error.kind, cut),
        };
        let known = table.by_tag(tag).map(|(_, field)| field);
        let is_later = depth >= EXTENSIBLE && table.by_number(tag >> 3).is_none();
        if known.is_none() && !is_later {
            return None;
        }
        *known_items += u64::from(depth == DEPTH && known.is_some());
        if tag & 7 != 2 {
            match reader.value(tag) {
                Ok(_) => bytes = &bytes[reader.position()..],
                Err(error) => return is_cut(error.kind, cut),
            }
            continue;
        }
        let length = match reader.varint() {
            Ok(length) => usize::try_from(length).ok()?,
            Err(error) => return is_cut(error.kind, cut),
        };
        let rest = &bytes[reader.position()..];
        let (value, inner_cut) = match rest.get(..length) {
            Some(value) => (value, Truncation::No),
            None => (rest, Truncation::Maybe),
        };
        if matches!((&inner_cut, cut), (Truncation::Maybe, Truncation::No)) {
            return None;
        }
        if let Some(field) = known {
            value_fits(field, value, &inner_cut, depth, known_items)?;
        }
        bytes = &rest[value.len()..];
    }
    Some(())
}

fn is_cut(error: WireErrorKind, cut: &Truncation) -> Option<()> {
    matches!((error, cut), (WireErrorKind::Truncated, Truncation::Maybe)).then_some(())
}

fn value_fits(
    field: &FieldDescriptor,
    value: &[u8],
    cut: &Truncation,
    depth: u32,
    known_items: &mut u64,
) -> Option<()> {
    let suits = match (field.kind, cut) {
        (FieldKind::One(inner) | FieldKind::Many(inner), _) if depth < DEPTH => {
            return fits(inner(), value, cut, depth + 1, known_items);
        }
        (FieldKind::Id, Truncation::No) => matches!(value.len(), 0 | 8 | 16),
        // A message that is read as text nearly always has control characters: a tag or a length. Real text has them in
        // terminal colours (ESC).
        (FieldKind::String, _) => !value
            .iter()
            .any(|byte| *byte < b' ' && !b"\t\n\r\x1b".contains(byte)),
        _ => true,
    };
    suits.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, limits::Limits};

    fn protobuf(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        json::decode(text.as_bytes(), &Limits::default(), &mut bytes).unwrap();
        bytes
    }

    /// Encodes a field with a length-delimited value.
    fn field(number: u8, value: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, value.len() as u8], value].concat()
    }

    #[test]
    fn unframed_message_of_every_signal_is_detected_from_a_prefix() {
        for text in [
            r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"web"}}]},"scopeSpans":[{"spans":[{"name":"a"}]}]}]}"#,
            r#"{"resourceMetrics":[{"scopeMetrics":[{"scope":{"name":"meter"},"metrics":[{"name":"g","gauge":{}}]}],"schemaUrl":"u"}]}"#,
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","body":{"stringValue":"\u001b[1m"}}]}]}]}"#,
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","severityText":"\u001b[32mINFO"}]}]}]}"#,
        ] {
            let message = protobuf(text);
            assert!(is_unframed(&message), "{text}");
            assert!(is_unframed(&message.repeat(3)), "{text}");
            let shortest = (0..message.len()).find(|end| is_unframed(&message[..*end]));
            let shortest = shortest.unwrap();
            assert!(
                (shortest..message.len()).all(|end| is_unframed(&message[..end])),
                "{text}"
            );
        }
    }

    #[test]
    fn perfetto_packets_are_not_detected_as_unframed_otlp() {
        let thread = field(2, &[0x08, 7, 0x18, 1]);
        let process = field(1, &[0x08, 1, 0x10, 0]);
        let ftrace = [&[0x08, 0][..], &field(2, &[0x08, 9])].concat();
        for packet in [
            field(2, &process),
            field(2, &thread),
            field(1, &ftrace),
            field(1, &field(2, &[0x08, 9])),
            field(6, &field(1, &[0x08, 6, 0x10, 9])),
            vec![0x40, 9, 0x18, 5],
            vec![],
        ] {
            assert!(!is_unframed(&field(1, &packet)), "{packet:?}");
        }
    }

    #[test]
    fn text_and_messages_without_items_are_not_detected_as_unframed_otlp() {
        let nothing = field(1, &field(1, &[]));
        let texts = [
            &b"\n{\"resourceSpans\":[]}"[..],
            b"\n \n {\n",
            b"\nstep 1 loss 2.5",
            b"\n",
            b"",
        ];
        for bytes in texts.into_iter().chain([&nothing[..]]) {
            assert!(!is_unframed(bytes), "{bytes:?}");
        }
    }
}
