//! The least that any conversion does. From protobuf: every field of every span is read, attributes with their values included,
//! and a block of as many bytes as ours writes a span is copied. From JSON: every string and every bracket is found, and the same
//! block is copied for each span; no name is looked at, no number read. No nesting, no lanes, no strings remembered, nothing
//! encoded; and spans are written as they come, where a trace in any order needs each of them twice.
//!
//! A walk over the fields of JSON, as that over those of protobuf, has to read names and numbers: our own decoder does it.

use pulsetrain_otlp::{
    frames::FrameReader,
    limits::Limits,
    view::{AnyValue, Message, Span, TracesData},
};

pub(crate) fn protobuf(messages: &[Vec<u8>], bytes_a_span: usize, out: &mut Vec<u8>) {
    let mut packet = vec![0; bytes_a_span];
    for message in messages {
        write(message, &mut packet, out);
    }
}

pub(crate) fn fields_of_json(lines: &[u8], bytes_a_span: usize, out: &mut Vec<u8>) {
    let mut packet = vec![0; bytes_a_span];
    for frame in FrameReader::new(lines, Limits::default()) {
        write(&frame.unwrap().bytes, &mut packet, out);
    }
}

/// How many brackets of both kinds are open within a span: it is in the lists of its scope, its resource and the document.
const DEPTH_OF_A_SPAN: u64 = 7;

pub(crate) fn json(lines: &[u8], bytes_a_span: usize, out: &mut Vec<u8>) {
    let packet = vec![0; bytes_a_span];
    let (mut depth, mut at) = (0, 0);
    while let Some(byte) = lines.get(at) {
        at += 1;
        match byte {
            b'"' => at += string_len(&lines[at..]),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                if depth == DEPTH_OF_A_SPAN {
                    out.extend_from_slice(&packet);
                }
                depth -= 1;
            }
            _ => {}
        }
    }
}

/// The length of a string whose quote has been read, with the quote at its end.
fn string_len(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', &text[at..]).unwrap() + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
}

fn write(message: &[u8], packet: &mut [u8], out: &mut Vec<u8>) {
    for resource in TracesData::decode(message).unwrap().resource_spans {
        for scope in resource.unwrap().scope_spans {
            for span in scope.unwrap().spans {
                let sum = walk(&span.unwrap());
                packet[..8].copy_from_slice(&sum.to_le_bytes());
                out.extend_from_slice(packet);
            }
        }
    }
}

fn walk(span: &Span<'_>) -> u64 {
    let ids = span.trace_id.len() + span.span_id.len() + span.parent_span_id.len();
    let mut sum = span.start_time_unix_nano ^ span.end_time_unix_nano;
    sum += (ids + span.name.as_bytes().len() + span.events.len() + span.links.len()) as u64;
    sum += span.kind as u64 + span.status.map_or(0, |status| status.code as u64);
    for attribute in span.attributes {
        let attribute = attribute.unwrap();
        sum = sum.wrapping_add(match attribute.value {
            Some(AnyValue::String(text)) => text.as_bytes().len() as u64,
            Some(AnyValue::Int(value)) => value as u64,
            Some(AnyValue::Double(value)) => value.to_bits(),
            _ => 0,
        });
        sum ^= attribute.key.as_bytes().len() as u64;
    }
    sum
}
