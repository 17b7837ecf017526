//! Encodes events and pieces of spans for temporary files. Only this program reads the files, so their format is private.

use pulsetrain_perfetto::{AnnotationData, CounterReading, EventKind, Time, TraceEvent};

/// The kinds of events.
const KINDS: [EventKind; 5] = [
    EventKind::Begin,
    EventKind::End,
    EventKind::Instant,
    EventKind::Counter,
    EventKind::State,
];

/// Appends an event without its track and time, which are its sort key.
pub(super) fn pack_event(event: &TraceEvent, out: &mut Vec<u8>) {
    let kind = KINDS.iter().position(|kind| *kind == event.kind);
    out.push(kind.unwrap_or(KINDS.len()) as u8);
    put_bytes(event.name.as_bytes(), out);
    put_bytes(
        event.categories.first().map_or(&[][..], |name| name.as_bytes()),
        out,
    );
    match event.value {
        None => out.push(0),
        Some(CounterReading::Int(value)) => {
            out.push(1);
            put_number(value as u64, out);
        }
        Some(CounterReading::Double(value)) => {
            out.push(2);
            put_number(value.to_bits(), out);
        }
    }
    put_entries(&event.annotations, out);
    for flows in [&event.flows, &event.ended_flows] {
        put_number(flows.len() as u64, out);
        flows.iter().for_each(|flow| put_number(*flow, out));
    }
}

/// Decodes the event of a track at a time on the wall clock, or returns `None` for a kind that is not converted.
pub(super) fn unpack_event(track_uuid: u64, unix_nanos: u64, mut bytes: &[u8]) -> Option<TraceEvent> {
    let from = &mut bytes;
    let kind = *KINDS.get(usize::from(byte(from)?))?;
    let name = text(from)?;
    let category = text(from)?;
    let value = match byte(from)? {
        0 => None,
        1 => Some(CounterReading::Int(number(from)? as i64)),
        _ => Some(CounterReading::Double(f64::from_bits(number(from)?))),
    };
    Some(TraceEvent {
        track_uuid,
        time: Time::Unix(unix_nanos),
        kind,
        name,
        categories: if category.is_empty() {
            Vec::new()
        } else {
            vec![category]
        },
        annotations: entries(from)?,
        flows: numbers(from)?,
        ended_flows: numbers(from)?,
        correlation: None,
        value,
    })
}

fn numbers(from: &mut &[u8]) -> Option<Vec<u64>> {
    let count = number(from)?;
    (0..count).map(|_| number(from)).collect()
}

fn put_entries(entries: &[(String, AnnotationData)], out: &mut Vec<u8>) {
    put_number(entries.len() as u64, out);
    for (key, value) in entries {
        put_bytes(key.as_bytes(), out);
        put_value(value, out);
    }
}

fn entries(from: &mut &[u8]) -> Option<Vec<(String, AnnotationData)>> {
    let count = number(from)?;
    (0..count).map(|_| Some((text(from)?, value(from)?))).collect()
}

fn put_value(value: &AnnotationData, out: &mut Vec<u8>) {
    let mut tagged = |tag, number| {
        out.push(tag);
        put_number(number, out);
    };
    match value {
        AnnotationData::Bool(value) => tagged(1, u64::from(*value)),
        AnnotationData::Int(value) => tagged(2, *value as u64),
        AnnotationData::Uint(value) => tagged(3, *value),
        AnnotationData::Double(value) => tagged(4, value.to_bits()),
        AnnotationData::Text(text) => {
            out.push(5);
            put_bytes(text.as_bytes(), out);
        }
        AnnotationData::Map(entries) => {
            out.push(6);
            put_entries(entries, out);
        }
        AnnotationData::List(values) => {
            tagged(7, values.len() as u64);
            values.iter().for_each(|value| put_value(value, out));
        }
        _ => out.push(0),
    }
}

fn value(from: &mut &[u8]) -> Option<AnnotationData> {
    Some(match byte(from)? {
        1 => AnnotationData::Bool(number(from)? != 0),
        2 => AnnotationData::Int(number(from)? as i64),
        3 => AnnotationData::Uint(number(from)?),
        4 => AnnotationData::Double(f64::from_bits(number(from)?)),
        5 => AnnotationData::Text(text(from)?),
        6 => AnnotationData::Map(entries(from)?),
        7 => {
            let count = number(from)?;
            AnnotationData::List((0..count).map(|_| value(from)).collect::<Option<_>>()?)
        }
        _ => AnnotationData::Empty,
    })
}

/// Appends a number as a varint: small numbers have few bytes.
pub(crate) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes with a length prefix.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

pub(crate) fn byte(from: &mut &[u8]) -> Option<u8> {
    from.split_off_first().copied()
}

pub(crate) fn number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(from)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}

pub(crate) fn bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(from)? as usize;
    from.split_off(..length)
}

pub(crate) fn text(from: &mut &[u8]) -> Option<String> {
    Some(String::from_utf8_lossy(bytes(from)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_event_round_trips() {
        let values = vec![
            AnnotationData::Empty,
            AnnotationData::Bool(true),
            AnnotationData::Int(-7),
            AnnotationData::Uint(u64::MAX),
            AnnotationData::Double(-0.5),
            AnnotationData::Text("é".to_owned()),
            AnnotationData::Map(vec![("key".to_owned(), AnnotationData::List(Vec::new()))]),
        ];
        for (kind, value) in [
            (EventKind::Begin, None),
            (EventKind::Counter, Some(CounterReading::Int(i64::MIN))),
            (EventKind::State, Some(CounterReading::Double(f64::INFINITY))),
        ] {
            let event = TraceEvent {
                track_uuid: 9,
                time: Time::Unix(1 << 60),
                kind,
                name: "perf.forward".to_owned(),
                categories: vec!["trainer".to_owned()],
                annotations: vec![("all".to_owned(), AnnotationData::List(values.clone()))],
                flows: vec![7, u64::MAX],
                ended_flows: vec![7],
                correlation: None,
                value,
            };
            let mut packed = Vec::new();
            pack_event(&event, &mut packed);
            assert_eq!(unpack_event(9, 1 << 60, &packed), Some(event));
            for end in 0..packed.len() {
                assert_eq!(unpack_event(9, 1 << 60, &packed[..end]), None, "{end}");
            }
        }
    }
}
