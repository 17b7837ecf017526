//! A straightforward conversion: prost types for input and output, names in a hash map, and greedily packed lanes on each
//! process. It has the semantics of the mapper in the simple case: parents that contain their children.

use std::collections::HashMap;

use opentelemetry_proto::tonic::{
    common::v1::any_value::Value,
    trace::v1::{Span, TracesData},
};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    name_iid: Option<u64>,
    #[prost(bool, optional, tag = "2")]
    bool_value: Option<bool>,
    #[prost(int64, optional, tag = "4")]
    int_value: Option<i64>,
    #[prost(double, optional, tag = "5")]
    double_value: Option<f64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct InternedData {
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<Entry>,
    #[prost(message, repeated, tag = "3")]
    annotation_names: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(uint64, optional, tag = "1")]
    iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

pub(crate) fn protobuf(messages: &[Vec<u8>], out: &mut Vec<u8>) {
    convert(
        messages
            .iter()
            .map(|message| TracesData::decode(message.as_slice()).unwrap()),
        out,
    );
}

pub(crate) fn json(lines: &[u8], out: &mut Vec<u8>) {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    convert(lines.map(|line| serde_json::from_slice(line).unwrap()), out);
}

fn convert(messages: impl Iterator<Item = TracesData>, out: &mut Vec<u8>) {
    let mut processes: Vec<(Vec<u8>, Vec<Span>)> = Vec::new();
    for message in messages {
        for resource in message.resource_spans {
            let key = resource.resource.unwrap_or_default().encode_to_vec();
            let place = processes.iter().position(|(other, _)| *other == key);
            let place = place.unwrap_or_else(|| {
                processes.push((key, Vec::new()));
                processes.len() - 1
            });
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            processes[place].1.extend(spans);
        }
    }
    for (number, (_, mut spans)) in (1..).zip(processes) {
        spans.sort_by_key(|span| {
            (
                span.start_time_unix_nano,
                std::cmp::Reverse(span.end_time_unix_nano),
            )
        });
        process(number, spans, out);
    }
}

/// Writes the spans of one process, each on the first lane whose open spans contain it.
fn process(number: u64, spans: Vec<Span>, out: &mut Vec<u8>) {
    let mut names = Names::default();
    let mut lanes: Vec<Vec<u64>> = Vec::new();
    for span in spans {
        let (start, end) = (span.start_time_unix_nano, span.end_time_unix_nano);
        let fits = |lane: &&mut Vec<u64>| {
            lane.iter()
                .rev()
                .find(|open| **open > start)
                .is_none_or(|open| end <= *open)
        };
        let place = match lanes.iter_mut().enumerate().find(|(_, lane)| fits(lane)) {
            Some((place, _)) => place,
            None => {
                lanes.push(Vec::new());
                lanes.len() - 1
            }
        };
        let uuid = number * 1000 + place as u64;
        while let Some(open) = lanes[place].last().copied().filter(|open| *open <= start) {
            lanes[place].pop();
            names.packet(open, end_event(uuid), out);
        }
        lanes[place].push(end);
        let event = names.begin(uuid, span);
        names.packet(start, event, out);
    }
    for (place, lane) in lanes.into_iter().enumerate() {
        for open in lane.into_iter().rev() {
            names.packet(open, end_event(number * 1000 + place as u64), out);
        }
    }
}

fn end_event(track: u64) -> TrackEvent {
    TrackEvent {
        r#type: Some(2),
        track_uuid: Some(track),
        ..TrackEvent::default()
    }
}

#[derive(Default)]
struct Names {
    events: HashMap<String, u64>,
    annotations: HashMap<String, u64>,
    news: InternedData,
}

impl Names {
    fn begin(&mut self, track: u64, span: Span) -> TrackEvent {
        let name = number(&mut self.events, span.name, &mut self.news.event_names);
        let mut annotations = Vec::new();
        for attribute in span.attributes {
            let key = number(
                &mut self.annotations,
                attribute.key,
                &mut self.news.annotation_names,
            );
            let mut annotation = DebugAnnotation {
                name_iid: Some(key),
                ..DebugAnnotation::default()
            };
            match attribute.value.and_then(|value| value.value) {
                Some(Value::StringValue(text)) => annotation.string_value = Some(text),
                Some(Value::BoolValue(value)) => annotation.bool_value = Some(value),
                Some(Value::IntValue(value)) => annotation.int_value = Some(value),
                Some(Value::DoubleValue(value)) => annotation.double_value = Some(value),
                _ => {}
            }
            annotations.push(annotation);
        }
        TrackEvent {
            r#type: Some(1),
            name_iid: Some(name),
            track_uuid: Some(track),
            debug_annotations: annotations,
        }
    }

    fn packet(&mut self, time: u64, event: TrackEvent, out: &mut Vec<u8>) {
        let news = std::mem::take(&mut self.news);
        let packet = TracePacket {
            timestamp: Some(time),
            trusted_packet_sequence_id: Some(1),
            track_event: Some(event),
            interned_data: (news != InternedData::default()).then_some(news),
            sequence_flags: Some(2),
        };
        Trace { packet: vec![packet] }.encode(out).unwrap();
    }
}

fn number(table: &mut HashMap<String, u64>, text: String, news: &mut Vec<Entry>) -> u64 {
    if let Some(number) = table.get(&text) {
        return *number;
    }
    let number = table.len() as u64 + 1;
    news.push(Entry {
        iid: Some(number),
        name: Some(text.clone()),
    });
    table.insert(text, number);
    number
}
