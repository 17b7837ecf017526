//! Parses a trace in plain code, with one stack a track.

use std::collections::BTreeMap;

use crate::upstream::{fields, message};

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
        let packet = message(packet.bytes());
        if let Some(track) = packet.get(&60) {
            let track = message(track.bytes());
            fragment += usize::from(!track.contains_key(&5));
            names.insert(track[&1].number(), track[&2].text());
        }
        if let Some(event) = packet.get(&11) {
            let event = message(event.bytes());
            let (kind, track) = (event[&9].number(), event[&11].number());
            let name = event.get(&23).map(|name| name.text());
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
