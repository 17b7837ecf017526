//! Parses a trace in plain code: protobuf by hand, one stack a track.

use std::collections::BTreeMap;

/// A slice of the file.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    pub(crate) track: String,
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The number of outermost tracks before the slice. Version 1 describes one a step.
    pub(crate) fragment: usize,
}

/// The slices of a trace in which each begins and ends in order on its track.
pub(crate) fn read(trace: &[u8]) -> Vec<Slice> {
    let (mut names, mut fragment) = (BTreeMap::new(), 0);
    let mut events = Vec::new();
    for (_, packet) in fields(trace) {
        let packet: BTreeMap<u64, Field<'_>> = fields(packet.bytes()).collect();
        if let Some(track) = packet.get(&60) {
            let track: BTreeMap<u64, Field<'_>> = fields(track.bytes()).collect();
            fragment += usize::from(!track.contains_key(&5));
            names.insert(track[&1].number(), text(&track[&2]));
        }
        if let Some(event) = packet.get(&11) {
            let event: BTreeMap<u64, Field<'_>> = fields(event.bytes()).collect();
            let (kind, track) = (event[&9].number(), event[&11].number());
            let name = event.get(&23).map(text);
            events.push((packet[&8].number(), track, kind, name, fragment));
        }
    }
    let (mut open, mut slices) = (BTreeMap::<u64, Vec<usize>>::new(), Vec::<Slice>::new());
    // Version 1 writes the end of a group before its children.
    let in_pairs = names.contains_key(&100);
    if !in_pairs {
        events.sort_by_key(|event| event.0);
    }
    for (time, track, kind, name, fragment) in events {
        if kind == 1 {
            open.entry(track).or_default().push(slices.len());
            slices.push(Slice {
                track: names[&track].clone(),
                name: name.expect("a slice has a name"),
                start: time,
                end: 0,
                fragment,
            });
        } else {
            let slice = open.get_mut(&track).and_then(Vec::pop);
            slices[slice.expect("something is open")].end = time;
        }
    }
    assert!(slices.iter().all(|slice| slice.end >= slice.start));
    slices
}

fn text(field: &Field<'_>) -> String {
    String::from_utf8(field.bytes().to_vec()).expect("names are text")
}

#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("no number"),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => panic!("no bytes"),
        }
    }
}

/// The fields of a message of numbers and bytes.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (field, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(field)
            }
            other => panic!("wire type {other}"),
        };
        Some((tag >> 3, field))
    })
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first().expect("a complete varint");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return number;
        }
    }
}
