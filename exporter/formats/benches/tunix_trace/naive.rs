//! Reads traces with prost: packets become structs, a stack pairs the slices of a track, and the structs become OTLP. The
//! reader removes tags from names. It leaves out parents, steps of version 1, copies of groups and times of steps.

use std::collections::HashMap;

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData},
};
use prost::{Message, bytes::Buf};

use crate::packets::{BEGIN, END, Packet};

/// The spans of a batch.
const BATCH: usize = 2_000;

/// Reads a complete trace. Returns the number of spans.
pub(crate) fn read(mut trace: &[u8]) -> u64 {
    let mut open: HashMap<u64, Vec<(String, u64)>> = HashMap::new();
    let mut names: HashMap<u64, String> = HashMap::new();
    let (mut waiting, mut spans) = (Vec::new(), 0);
    while trace.has_remaining() {
        assert_eq!(trace.get_u8(), b'\n');
        let packet = Packet::decode_length_delimited(&mut trace).unwrap();
        if let Some(track) = packet.track {
            names.insert(track.uuid(), track.name().to_owned());
        }
        let Some(event) = packet.event else { continue };
        let time = packet.timestamp.unwrap_or_default();
        let slices = open.entry(event.track()).or_default();
        match event.kind() {
            BEGIN => slices.push((event.name.unwrap_or_default(), time)),
            END => {
                let Some((name, start)) = slices.pop() else {
                    continue;
                };
                spans += 1;
                let timeline = names.get(&event.track.unwrap_or_default());
                waiting.push(span(&name, start, time, timeline, spans));
            }
            _ => {}
        }
        if waiting.len() >= BATCH {
            std::hint::black_box(encode(std::mem::take(&mut waiting)));
        }
    }
    std::hint::black_box(encode(waiting));
    spans
}

fn span(slice: &str, start: u64, end: u64, timeline: Option<&String>, number: u64) -> Span {
    let (name, tags) = slice.split_once(" (").unwrap_or((slice, ""));
    let tags = tags.trim_end_matches(')').split(", ");
    let mut attributes: Vec<KeyValue> = tags
        .filter_map(|tag| tag.split_once('='))
        .map(|(key, value)| match value.parse() {
            Ok(number) => attribute(key, Value::IntValue(number)),
            Err(_) => attribute(key, Value::StringValue(value.to_owned())),
        })
        .collect();
    attributes.extend(timeline.map(|name| attribute("timeline", Value::StringValue(name.clone()))));
    Span {
        trace_id: vec![7; 16],
        span_id: number.to_be_bytes().to_vec(),
        name: name.to_owned(),
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes,
        ..Span::default()
    }
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn encode(spans: Vec<Span>) -> Vec<u8> {
    let scope = ScopeSpans {
        spans,
        ..ScopeSpans::default()
    };
    let resource = ResourceSpans {
        scope_spans: vec![scope],
        ..ResourceSpans::default()
    };
    TracesData {
        resource_spans: vec![resource],
    }
    .encode_to_vec()
}
