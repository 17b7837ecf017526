//! Decodes packets into items.

use std::collections::VecDeque;

use super::{
    Packet,
    clock::Clocks,
    counters::{Counters, Scale},
    error::ReadError,
    item::{AnnotationData, CounterReading, EventKind, Item, LogItem, Time, TraceEvent, Track, TrackKind},
    sequence::Sequence,
};
use crate::{
    WireError, WireErrorKind,
    field::{annotation, attributes, counter, event, interned, log, process, thread, track},
    wire::{FieldValue, Fields},
};

/// The depth to which nested annotations are decoded.
const DEEPEST: usize = 64;

/// Decodes the items of a packet. Returns `false` if the packet contains none that the reader knows.
pub(super) fn packet(
    packet: &Packet<'_>,
    sequence: &mut Sequence,
    clocks: &Clocks,
    counters: &mut Counters,
    ready: &mut VecDeque<Result<Item, ReadError>>,
) -> Result<bool, WireError> {
    let mut push = |item| ready.push_back(Ok(item));
    if let Some(bytes) = packet.track {
        let (track, scale) = decode_track(bytes)?;
        if let Some(scale) = scale {
            counters.describe(track.uuid, packet.sequence_id, scale);
        }
        push(Item::Track(track));
    } else if let Some(bytes) = packet.event {
        let time = clocks.time(packet, sequence);
        let Some((mut event, extra)) = decode_event(bytes, time, sequence)? else {
            return Ok(false);
        };
        for (track_uuid, value) in extra {
            push(Item::Event(TraceEvent {
                kind: EventKind::Counter,
                value: Some(counters.absolute(track_uuid, value)),
                ..blank(track_uuid, time)
            }));
        }
        event.value = event
            .value
            .map(|value| counters.absolute(event.track_uuid, value));
        push(Item::Event(event));
    } else if let Some(bytes) = packet.log {
        for line in messages(bytes, log::EVENTS) {
            push(Item::Log(decode_log(line?)?));
        }
    } else if let Some(bytes) = packet.attributes {
        for attribute in messages(bytes, attributes::ATTRIBUTE) {
            push(decode_attribute(attribute?)?);
        }
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Iterates over the occurrences of one field.
fn messages(bytes: &[u8], number: u32) -> impl Iterator<Item = Result<&[u8], WireError>> {
    Fields::new(bytes).filter_map(move |field| match field {
        Ok((found, FieldValue::Bytes(message))) if found == number => Some(Ok(message)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// Decodes a track; for a counter, also the meaning of its values.
fn decode_track(bytes: &[u8]) -> Result<(Track, Option<Scale>), WireError> {
    let (mut about, mut scale) = (Track::default(), None);
    for field in Fields::new(bytes) {
        let (number, value) = field?;
        match number {
            track::UUID => about.uuid = value.number(),
            track::PARENT_UUID => about.parent = Some(value.number()),
            track::NAME | track::STATIC_NAME => about.name = value.text(),
            track::DESCRIPTION => about.description = value.text(),
            track::SIBLING_ORDER_RANK => about.rank = value.number() as i32,
            track::PROCESS => about.kind = decode_process(value.bytes())?,
            track::THREAD => about.kind = decode_thread(value.bytes())?,
            track::COUNTER => {
                let (kind, values) = decode_counter(value.bytes())?;
                (about.kind, scale) = (kind, Some(values));
            }
            track::STATE => about.kind = TrackKind::State,
            _ => {}
        }
    }
    Ok((about, scale))
}

fn decode_process(bytes: &[u8]) -> Result<TrackKind, WireError> {
    let (mut pid, mut name, mut labels) = (0, String::new(), Vec::new());
    for field in Fields::new(bytes) {
        let (number, value) = field?;
        match number {
            process::PID => pid = value.number() as i32,
            process::NAME => name = value.text(),
            process::LABELS => labels.push(value.text()),
            _ => {}
        }
    }
    Ok(TrackKind::Process { pid, name, labels })
}

fn decode_thread(bytes: &[u8]) -> Result<TrackKind, WireError> {
    let (mut pid, mut tid, mut name) = (0, 0, String::new());
    for field in Fields::new(bytes) {
        let (number, value) = field?;
        match number {
            thread::PID => pid = value.number() as i32,
            thread::TID => tid = value.number() as i64,
            thread::NAME => name = value.text(),
            _ => {}
        }
    }
    Ok(TrackKind::Thread { pid, tid, name })
}

fn decode_counter(bytes: &[u8]) -> Result<(TrackKind, Scale), WireError> {
    let (mut unit, mut scale) = (String::new(), Scale::default());
    for field in Fields::new(bytes) {
        match field? {
            (counter::UNIT_NAME, value) => unit = value.text(),
            (counter::UNIT_MULTIPLIER, value) if value.number() != 0 => {
                scale.multiplier = value.number() as i64;
            }
            (counter::IS_INCREMENTAL, value) => scale.is_incremental = value.number() != 0,
            (counter::UNIT, value) => {
                unit = match value.number() {
                    counter::UNIT_TIME_NS => "ns".to_owned(),
                    counter::UNIT_SIZE_BYTES => "By".to_owned(),
                    _ => String::new(),
                };
            }
            _ => {}
        }
    }
    Ok((TrackKind::Counter { unit }, scale))
}

/// Returns an instant without content.
fn blank(track_uuid: u64, time: Time) -> TraceEvent {
    TraceEvent {
        track_uuid,
        time,
        kind: EventKind::Instant,
        name: String::new(),
        categories: Vec::new(),
        annotations: Vec::new(),
        flows: Vec::new(),
        ended_flows: Vec::new(),
        correlation: None,
        value: None,
    }
}

/// The values of counters, each with its track.
type CounterValues = Vec<(u64, CounterReading)>;

/// The values of further counters at an event: their tracks and values, of integers, and of floating point numbers.
#[derive(Default)]
struct ExtraCounters {
    tracks: [Vec<u64>; 2],
    values: [Vec<CounterReading>; 2],
}

impl ExtraCounters {
    /// Returns the values with their tracks, which are those of the sequence if the event has none.
    fn by_track(self, sequence: &Sequence) -> CounterValues {
        let mut all = Vec::new();
        let of_sequence = sequence.extra_tracks.iter();
        for ((tracks, values), defaults) in self.tracks.iter().zip(self.values).zip(of_sequence) {
            let tracks = if tracks.is_empty() { defaults } else { tracks };
            all.extend(tracks.iter().copied().zip(values));
        }
        all
    }
}

/// Decodes an event, and the values of further counters. Returns `None` if its type is unknown.
fn decode_event(
    bytes: &[u8],
    time: Time,
    sequence: &Sequence,
) -> Result<Option<(TraceEvent, CounterValues)>, WireError> {
    let (mut kind, mut extra) = (None, ExtraCounters::default());
    let mut about = blank(sequence.track_uuid.unwrap_or_default(), time);
    let string = |field, number| sequence.string(field, number).unwrap_or_default().to_owned();
    for field in Fields::new(bytes) {
        let (number, value) = field?;
        match number {
            event::TYPE => kind = kind_of(value.number()),
            event::TRACK_UUID => about.track_uuid = value.number(),
            event::NAME => about.name = value.text(),
            event::NAME_IID => about.name = string(interned::EVENT_NAMES, value.number()),
            event::CATEGORIES => about.categories.push(value.text()),
            event::CATEGORY_IIDS => {
                let numbers = numbers(value)?;
                let category = |number| string(interned::CATEGORIES, number);
                about.categories.extend(numbers.into_iter().map(category));
            }
            event::ANNOTATIONS => about.annotations.push(annotation(value.bytes(), sequence, 0)?),
            event::FLOW_IDS => about.flows.extend(numbers(value)?),
            event::TERMINATING_FLOW_IDS => {
                let ended = numbers(value)?;
                about.flows.extend(&ended);
                about.ended_flows.extend(ended);
            }
            event::CORRELATION_ID => about.correlation = Some(value.number()),
            event::COUNTER_VALUE => about.value = Some(CounterReading::Int(value.number() as i64)),
            event::DOUBLE_COUNTER_VALUE => about.value = Some(CounterReading::Double(value.double())),
            event::EXTRA_COUNTER_TRACK_UUIDS => extra.tracks[0].push(value.number()),
            event::EXTRA_COUNTER_VALUES => {
                extra.values[0].push(CounterReading::Int(value.number() as i64));
            }
            event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS => extra.tracks[1].push(value.number()),
            event::EXTRA_DOUBLE_COUNTER_VALUES => {
                extra.values[1].push(CounterReading::Double(value.double()));
            }
            _ => {}
        }
    }
    let Some(kind) = kind else { return Ok(None) };
    about.kind = kind;
    Ok(Some((about, extra.by_track(sequence))))
}

fn kind_of(number: u64) -> Option<EventKind> {
    Some(match number {
        event::SLICE_BEGIN => EventKind::Begin,
        event::SLICE_END => EventKind::End,
        event::INSTANT => EventKind::Instant,
        event::COUNTER => EventKind::Counter,
        event::STATE => EventKind::State,
        _ => return None,
    })
}

/// Decodes one occurrence of a repeated number: a single value, or several packed values (only fixed64 is packed).
fn numbers(value: FieldValue<'_>) -> Result<Vec<u64>, WireError> {
    match value {
        FieldValue::Bytes(packed) => {
            let (chunks, rest) = packed.as_chunks::<8>();
            if !rest.is_empty() {
                let offset = packed.len() - rest.len();
                let kind = WireErrorKind::Truncated;
                return Err(WireError { kind, offset });
            }
            Ok(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
        }
        single => Ok(vec![single.number()]),
    }
}

fn annotation(
    bytes: &[u8],
    sequence: &Sequence,
    depth: usize,
) -> Result<(String, AnnotationData), WireError> {
    if depth > DEEPEST {
        let kind = WireErrorKind::TooDeep;
        return Err(WireError { kind, offset: 0 });
    }
    let (mut name, mut data) = (String::new(), AnnotationData::Empty);
    let (mut entries, mut values) = (Vec::new(), Vec::new());
    let string = |field, number| sequence.string(field, number).unwrap_or_default().to_owned();
    for field in Fields::new(bytes) {
        let (number, value) = field?;
        match number {
            annotation::NAME => name = value.text(),
            annotation::NAME_IID => name = string(interned::ANNOTATION_NAMES, value.number()),
            annotation::BOOL => data = AnnotationData::Bool(value.number() != 0),
            annotation::UINT | annotation::POINTER => data = AnnotationData::Uint(value.number()),
            annotation::INT => data = AnnotationData::Int(value.number() as i64),
            annotation::DOUBLE => data = AnnotationData::Double(value.double()),
            annotation::STRING | annotation::LEGACY_JSON => data = AnnotationData::Text(value.text()),
            annotation::STRING_IID => {
                data = AnnotationData::Text(string(interned::ANNOTATION_STRINGS, value.number()));
            }
            annotation::DICT_ENTRIES => entries.push(annotation(value.bytes(), sequence, depth + 1)?),
            annotation::ARRAY_VALUES => values.push(annotation(value.bytes(), sequence, depth + 1)?.1),
            _ => {}
        }
    }
    if !entries.is_empty() {
        data = AnnotationData::Map(entries);
    } else if !values.is_empty() {
        data = AnnotationData::List(values);
    }
    Ok((name, data))
}

fn decode_log(bytes: &[u8]) -> Result<LogItem, WireError> {
    let mut line = LogItem {
        time: Time::Unix(0),
        pid: 0,
        priority: 0,
        tag: String::new(),
        message: String::new(),
    };
    for field in Fields::new(bytes) {
        let (number, value) = field?;
        match number {
            log::PID => line.pid = value.number() as i32,
            log::TIMESTAMP => line.time = Time::Unix(value.number()),
            log::TAG => line.tag = value.text(),
            log::PRIORITY => line.priority = value.number() as u32,
            log::MESSAGE => line.message = value.text(),
            _ => {}
        }
    }
    Ok(line)
}

fn decode_attribute(bytes: &[u8]) -> Result<Item, WireError> {
    let (mut key, mut text) = (String::new(), String::new());
    for field in Fields::new(bytes) {
        match field? {
            (attributes::KEY, value) => key = value.text(),
            (attributes::STRING_VALUE, value) => text = value.text(),
            (attributes::LONG_VALUE, value) => text = (value.number() as i64).to_string(),
            _ => {}
        }
    }
    Ok(Item::Attribute(key, text))
}
