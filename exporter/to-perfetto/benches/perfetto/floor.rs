//! The lower bound for any conversion. From protobuf: every field of every span is read, attributes with their values
//! included, and a block with the size of a converted span is copied. From JSON: every string and every bracket is found, and
//! the same block is copied for each span; names and numbers are not parsed. There is no nesting, no lanes, no interning and
//! no encoding, and spans are written in the order of the input, whereas a trace from input in any order needs each of them
//! twice.
//!
//! `protobuf_in_any_order` is the lower bound for input in any order: the fields of each span are read for its ids and times,
//! which are kept, and again with its attributes when the block is copied. Nothing is linked, sorted or encoded.
//!
//! A reader of the fields of JSON, like that of the fields of protobuf, has to parse names and numbers: the decoder of
//! OTLP/JSON does that.

use std::hint::black_box;

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

/// The part of a span that is kept until all spans are known.
struct SpanLinks<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
    parent_span_id: &'a [u8],
    start: u64,
    end: u64,
    bytes: &'a [u8],
}

pub(crate) fn protobuf_in_any_order(messages: &[Vec<u8>], bytes_a_span: usize, out: &mut Vec<u8>) {
    let mut spans = Vec::new();
    for message in messages {
        for resource in TracesData::decode(message).unwrap().resource_spans {
            for scope in resource.unwrap().scope_spans {
                let mut items = scope.unwrap().spans.iter();
                while let Some(bytes) = items.next_bytes() {
                    let bytes = bytes.unwrap();
                    let span = Span::decode(bytes).unwrap();
                    spans.push(SpanLinks {
                        trace_id: span.trace_id,
                        span_id: span.span_id,
                        parent_span_id: span.parent_span_id,
                        start: span.start_time_unix_nano,
                        end: span.end_time_unix_nano,
                        bytes,
                    });
                }
            }
        }
    }
    let mut packet = vec![0; bytes_a_span];
    for links in black_box(spans) {
        let ids = links.trace_id.len() + links.span_id.len() + links.parent_span_id.len();
        let span = Span::decode(links.bytes).unwrap();
        let sum = walk(&span) ^ links.start ^ links.end ^ ids as u64;
        copy_block(sum, &mut packet, out);
    }
}

pub(crate) fn fields_of_json(lines: &[u8], bytes_a_span: usize, out: &mut Vec<u8>) {
    let mut packet = vec![0; bytes_a_span];
    for frame in FrameReader::new(lines, Limits::default()) {
        write(&frame.unwrap().bytes, &mut packet, out);
    }
}

/// The number of open brackets within a span: it is in the lists of its scope, its resource and the document.
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

/// Returns the length of a string after its opening quote, closing quote included.
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
                copy_block(sum, packet, out);
            }
        }
    }
}

fn copy_block(sum: u64, packet: &mut [u8], out: &mut Vec<u8>) {
    packet[..8].copy_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(packet);
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
