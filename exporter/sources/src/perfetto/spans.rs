//! Slices as spans: exactly those that were written, where the trace says so, else made of what a viewer shows.
//!
//! What a trace says is the map `otel` that the Perfetto sink writes (`sinks/perfetto/identity.rs`).

use std::collections::{BTreeMap, HashMap};

use pulsetrain_otlp::write::Buffer;
use pulsetrain_perfetto::AnnotationData;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::{
    slices::{Instant, Slice, Slices},
    tracks::Tracks,
    values::{self, Entries},
    written::Written,
};

/// Fields of `Span` and of what is in it (proto/trace/v1/trace.proto).
mod field {
    pub(super) const TRACE_ID: u32 = 1;
    pub(super) const SPAN_ID: u32 = 2;
    pub(super) const TRACE_STATE: u32 = 3;
    pub(super) const PARENT_SPAN_ID: u32 = 4;
    pub(super) const NAME: u32 = 5;
    pub(super) const KIND: u32 = 6;
    pub(super) const START: u32 = 7;
    pub(super) const END: u32 = 8;
    pub(super) const ATTRIBUTES: u32 = 9;
    pub(super) const DROPPED_ATTRIBUTES: u32 = 10;
    pub(super) const EVENTS: u32 = 11;
    pub(super) const DROPPED_EVENTS: u32 = 12;
    pub(super) const LINKS: u32 = 13;
    pub(super) const DROPPED_LINKS: u32 = 14;
    pub(super) const STATUS: u32 = 15;
    pub(super) const FLAGS: u32 = 16;
}

/// The kind of a span that nothing says anything of (`SPAN_KIND_INTERNAL`).
const INTERNAL: u64 = 1;

/// The key of the map that says what a span was.
pub(super) const KEY: &str = "otel";

/// The key of the map of a slice that stands for several spans.
const MERGED: &str = "merged";

/// Where a span belongs: its process, and the number of its scope, or the scope's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Home {
    pub(super) process: u64,
    pub(super) scope: Result<u64, String>,
}

/// Encodes the slices as spans, sorted by where they belong. Where a process says what it was, a slice that says nothing is
/// none: it is what a state looks like.
pub(super) fn encode(
    slices: &Slices,
    tracks: &Tracks,
    written: &Written<'_>,
    file: &str,
) -> BTreeMap<Home, Vec<Buffer>> {
    let events = events_of_spans(slices);
    let foreign = Foreign::new(slices, file);
    let mut spans = BTreeMap::<Home, Vec<Buffer>>::new();
    for (index, slice) in slices.slices.iter().enumerate() {
        let process = tracks.process(slice.track_uuid);
        let (scope, span) = match said(&slice.annotations) {
            Some((said, rest)) => {
                let number = values::number(said, "span").unwrap_or_default();
                let events = events.get(&number).map_or(&[][..], Vec::as_slice);
                let scope = Ok(values::number(said, "scope").unwrap_or_default());
                (scope, as_written(slice, said, rest, events))
            }
            None if written.has(process) && values::get(&slice.annotations, MERGED).is_none() => continue,
            None => (Err(slice.category.clone()), foreign.span(index, tracks)),
        };
        spans.entry(Home { process, scope }).or_default().push(span);
    }
    spans
}

/// The map that says what a span was, and the other annotations.
fn said(annotations: &Entries) -> Option<(&Entries, &Entries)> {
    match annotations.split_first()? {
        ((key, AnnotationData::Map(said)), rest) if key == KEY && values::get(said, "span").is_some() => {
            Some((said, rest))
        }
        _ => None,
    }
}

/// The instants that say which span they are an event of, by the span's number, in their places.
fn events_of_spans(slices: &Slices) -> HashMap<u64, Vec<&Instant>> {
    let mut events = HashMap::<u64, Vec<&Instant>>::new();
    let place = |instant: &Instant| {
        let said = values::entries(&instant.annotations, KEY)?;
        Some((values::number(said, "event_of")?, values::number(said, "place")?))
    };
    for instant in &slices.instants {
        if let Some((span, _)) = place(instant) {
            events.entry(span).or_default().push(instant);
        }
    }
    for list in events.values_mut() {
        list.sort_by_key(|instant| place(instant));
    }
    events
}

fn as_written(slice: &Slice, said: &Entries, attributes: &Entries, events: &[&Instant]) -> Buffer {
    let mut out = Buffer::default();
    let time = |key, drawn| values::number(said, key).unwrap_or(drawn);
    id(said, "trace_id", field::TRACE_ID, &mut out);
    id(said, "span_id", field::SPAN_ID, &mut out);
    out.text(
        field::TRACE_STATE,
        values::text(said, "trace_state").unwrap_or_default(),
    );
    id(said, "parent_span_id", field::PARENT_SPAN_ID, &mut out);
    out.text(field::NAME, &slice.name);
    uint(said, "kind", field::KIND, &mut out);
    out.fixed64(field::START, time("start_time_unix_nano", slice.start));
    out.fixed64(field::END, time("end_time_unix_nano", slice.end));
    values::attributes(field::ATTRIBUTES, attributes, &mut out);
    uint(
        said,
        "dropped_attributes_count",
        field::DROPPED_ATTRIBUTES,
        &mut out,
    );
    for instant in events {
        out.delimited(field::EVENTS, event(instant).as_slice());
    }
    uint(said, "dropped_events_count", field::DROPPED_EVENTS, &mut out);
    for said in values::maps(said, "links") {
        out.delimited(field::LINKS, link(said).as_slice());
    }
    uint(said, "dropped_links_count", field::DROPPED_LINKS, &mut out);
    if let Some(code) = values::number(said, "status_code") {
        let mut status = Buffer::default();
        status.text(2, values::text(said, "status_message").unwrap_or_default());
        status.uint(3, code);
        out.delimited(field::STATUS, status.as_slice());
    }
    if let Some(flags) = values::number(said, "flags") {
        out.fixed32(field::FLAGS, flags as u32);
    }
    out
}

/// A `Span.Event` message.
fn event(instant: &Instant) -> Buffer {
    let mut out = Buffer::default();
    let said = values::entries(&instant.annotations, KEY);
    let written = said.and_then(|said| values::number(said, "time_unix_nano"));
    out.fixed64(1, written.unwrap_or(instant.time));
    out.text(2, &instant.name);
    let own = instant.annotations.iter().skip(usize::from(said.is_some()));
    values::attributes(3, own, &mut out);
    said.into_iter()
        .for_each(|said| uint(said, "dropped_attributes_count", 4, &mut out));
    out
}

/// A `Span.Link` message.
fn link(said: &Entries) -> Buffer {
    let mut out = Buffer::default();
    id(said, "trace_id", 1, &mut out);
    id(said, "span_id", 2, &mut out);
    out.text(3, values::text(said, "trace_state").unwrap_or_default());
    values::attributes(
        4,
        values::entries(said, "attributes").unwrap_or_default(),
        &mut out,
    );
    uint(said, "dropped_attributes_count", 5, &mut out);
    if let Some(flags) = values::number(said, "flags") {
        out.fixed32(6, flags as u32);
    }
    out
}

fn id(said: &Entries, key: &str, number: u32, out: &mut Buffer) {
    let id = values::id(said, key);
    if !id.is_empty() {
        out.delimited(number, &id);
    }
}

fn uint(said: &Entries, key: &str, number: u32, out: &mut Buffer) {
    if let Some(value) = values::number(said, key) {
        out.uint(number, value);
    }
}

/// Slices that say nothing of spans. Ids are derived from the file's name and the slice's place, so that the same file gives
/// the same ids again.
struct Foreign<'a> {
    slices: &'a Slices,
    file: &'a str,
    events: HashMap<usize, Vec<&'a Instant>>,
}

impl<'a> Foreign<'a> {
    fn new(slices: &'a Slices, file: &'a str) -> Self {
        let mut events = HashMap::<usize, Vec<&Instant>>::new();
        for instant in &slices.instants {
            if let Some(parent) = instant.parent {
                events.entry(parent).or_default().push(instant);
            }
        }
        Self { slices, file, events }
    }

    fn span(&self, index: usize, tracks: &Tracks) -> Buffer {
        let slice = &self.slices.slices[index];
        let (name, tags) = name_and_tags(&slice.name);
        let mut out = Buffer::default();
        out.delimited(field::TRACE_ID, &self.trace_id(index));
        out.delimited(field::SPAN_ID, &self.span_id(index));
        if let Some(parent) = slice.parent {
            out.delimited(field::PARENT_SPAN_ID, &self.span_id(parent));
        }
        out.text(field::NAME, name);
        out.uint(field::KIND, INTERNAL);
        out.fixed64(field::START, slice.start);
        out.fixed64(field::END, slice.end);
        values::attributes(field::ATTRIBUTES, &tags, &mut out);
        values::attributes(field::ATTRIBUTES, &slice.annotations, &mut out);
        let label = tracks.label(slice.track_uuid);
        if !label.is_empty() {
            values::attribute(
                field::ATTRIBUTES,
                "thread.name",
                &AnnotationData::Text(label),
                &mut out,
            );
        }
        for instant in self.events.get(&index).map_or(&[][..], Vec::as_slice) {
            out.delimited(field::EVENTS, event(instant).as_slice());
        }
        out
    }

    /// A trace for each step that the outermost slice names, and one for all that name none.
    fn trace_id(&self, index: usize) -> [u8; 16] {
        let mut outermost = index;
        while let Some(parent) = self.slices.slices[outermost].parent {
            outermost = parent;
        }
        let (_, tags) = name_and_tags(&self.slices.slices[outermost].name);
        let step = tags.iter().find(|(key, _)| key == "step").map(|(_, value)| value);
        xxh3_128(format!("{}\0trace\0{step:?}", self.file).as_bytes())
            .max(1)
            .to_be_bytes()
    }

    fn span_id(&self, index: usize) -> [u8; 8] {
        let Slice {
            track_uuid, start, ..
        } = &self.slices.slices[index];
        let place = format!("{}\0span\0{track_uuid}\0{start}\0{index}", self.file);
        xxh3_64(place.as_bytes()).max(1).to_be_bytes()
    }
}

/// Splits `rollout (step=3, role=actor)`, which is how Tunix writes attributes, into the name and the attributes.
fn name_and_tags(name: &str) -> (&str, Vec<(String, AnnotationData)>) {
    let tags = name.strip_suffix(')').and_then(|name| name.split_once(" ("));
    let Some((short, tags)) = tags else {
        return (name, Vec::new());
    };
    let tag = |tag: &str| {
        let (key, value) = tag.split_once('=')?;
        let value = value
            .parse()
            .map_or_else(|_| AnnotationData::Text(value.to_owned()), AnnotationData::Int);
        Some((key.to_owned(), value))
    };
    match tags.split(", ").map(tag).collect() {
        Some(tags) => (short, tags),
        None => (name, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_in_a_name_are_taken_out_of_it_and_other_brackets_are_left() {
        let (name, tags) = name_and_tags("rollout (step=3, role=actor)");
        assert_eq!(name, "rollout");
        assert_eq!(
            tags,
            [
                ("step".to_owned(), AnnotationData::Int(3)),
                ("role".to_owned(), AnnotationData::Text("actor".to_owned()))
            ]
        );
        assert_eq!(name_and_tags("GET (retried)").0, "GET (retried)");
    }
}
