//! The lower bound for any conversion. From protobuf: every field of every span is read, attributes with their values
//! included, and a block with the size of a converted span is copied. From JSON: every string and every bracket is found, and
//! the same block is copied for each span; names and numbers are not parsed. There is no nesting, no lanes, no interning and
//! no encoding, and spans are written in the order of the input, whereas a trace from input in any order needs each of them
//! twice.
//!
//! A reader of the fields of JSON, like that of the fields of protobuf, has to parse names and numbers: the decoder of
//! OTLP/JSON does that.

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
