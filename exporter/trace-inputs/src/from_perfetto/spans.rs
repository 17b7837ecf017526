//! Converts slices to spans: the original spans if the trace has all fields, else spans derived from the viewer
//! representation.
//!
//! The original fields are in the map `otel` that the mapper writes (`to_perfetto/identity.rs`).

use pulsetrain_otlp::write::{Buffer, span_field as field};
use pulsetrain_perfetto::{AnnotationData, TraceEvent};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::{
    metric_metadata::{KEY, otel_fields},
    names::name_and_tags,
    tracks::Thread,
    values::{self, Entries},
};

/// The kind of a span without a kind (`SPAN_KIND_INTERNAL`).
const INTERNAL: u64 = 1;

/// The kinds from `INTERNAL` on, in the spelling of a trace without all fields.
const KINDS: [&str; 5] = ["internal", "server", "client", "producer", "consumer"];

/// The keys of the map in a trace without all fields.
const SHOWN: [&str; 4] = ["trace_id", "kind", "status", "status_message"];

/// The status code of a failure.
const ERROR: u64 = 2;

/// A span from its begin event: its fields up to its start, the original end, its attributes, and the fields after its events.
#[derive(Debug, Default)]
pub(super) struct SpanBegin {
    pub(super) before: Buffer,
    pub(super) end: Option<u64>,
    pub(super) attributes: Buffer,
    pub(super) after: Buffer,
    pub(super) ids: Ids,
}

/// The ids of a span.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    pub(super) trace: Vec<u8>,
    pub(super) span: Vec<u8>,
}

/// Returns the map of a span's original fields and the other annotations.
pub(super) fn span_fields(annotations: &Entries) -> Option<(&Entries, &Entries)> {
    match annotations.split_first()? {
        ((key, AnnotationData::Map(fields)), rest) if key == KEY && values::get(fields, "span").is_some() => {
            Some((fields, rest))
        }
        _ => None,
    }
}

/// Returns the annotations of a slice, and the fields that the mapper wrote for readers if the annotations end with such a
/// map.
fn shown_fields(annotations: &Entries) -> (&Entries, &Entries) {
    match annotations.split_last() {
        Some(((key, AnnotationData::Map(fields)), rest))
            if key == KEY && fields.iter().all(|(key, _)| SHOWN.contains(&key.as_str())) =>
        {
            (rest, fields)
        }
        _ => (annotations, &[]),
    }
}

/// Reads an original span.
pub(super) fn as_written(
    event: &TraceEvent,
    start: u64,
    fields: &Entries,
    attributes: &Entries,
) -> SpanBegin {
    let mut begun = SpanBegin {
        end: values::number(fields, "end_time_unix_nano"),
        ids: Ids {
            trace: values::id(fields, "trace_id"),
            span: values::id(fields, "span_id"),
        },
        ..SpanBegin::default()
    };
    let out = &mut begun.before;
    id(fields, "trace_id", field::TRACE_ID, out);
    id(fields, "span_id", field::SPAN_ID, out);
    out.text(
        field::TRACE_STATE,
        values::text(fields, "trace_state").unwrap_or_default(),
    );
    id(fields, "parent_span_id", field::PARENT_SPAN_ID, out);
    out.text(field::NAME, &event.name);
    uint(fields, "kind", field::KIND, out);
    let start = values::number(fields, "start_time_unix_nano").unwrap_or(start);
    out.fixed64(field::START, start);
    values::attributes(field::ATTRIBUTES, attributes, &mut begun.attributes);
    write_fields_after_events(fields, &mut begun.after);
    begun
}

fn write_fields_after_events(fields: &Entries, out: &mut Buffer) {
    uint(fields, "dropped_attributes_count", field::DROPPED_ATTRIBUTES, out);
    uint(fields, "dropped_events_count", field::DROPPED_EVENTS, out);
    for fields in values::maps(fields, "links") {
        out.delimited(field::LINKS, link(fields).as_slice());
    }
    uint(fields, "dropped_links_count", field::DROPPED_LINKS, out);
    if let Some(code) = values::number(fields, "status_code") {
        let mut status = Buffer::default();
        status.text(2, values::text(fields, "status_message").unwrap_or_default());
        status.uint(3, code);
        out.delimited(field::STATUS, status.as_slice());
    }
    if let Some(flags) = values::number(fields, "flags") {
        out.fixed32(field::FLAGS, flags as u32);
    }
}

/// Encodes a `Span.Event` message.
pub(super) fn event(event: &TraceEvent, time: u64) -> Buffer {
    let mut out = Buffer::default();
    let fields = otel_fields(&event.annotations);
    let written = fields.and_then(|fields| values::number(fields, "time_unix_nano"));
    out.fixed64(1, written.unwrap_or(time));
    out.text(2, &event.name);
    let own = event.annotations.iter().skip(usize::from(fields.is_some()));
    values::attributes(3, own, &mut out);
    fields
        .into_iter()
        .for_each(|fields| uint(fields, "dropped_attributes_count", 4, &mut out));
    out
}

/// Encodes a `Span.Link` message.
fn link(fields: &Entries) -> Buffer {
    let mut out = Buffer::default();
    id(fields, "trace_id", 1, &mut out);
    id(fields, "span_id", 2, &mut out);
    out.text(3, values::text(fields, "trace_state").unwrap_or_default());
    values::attributes(
        4,
        values::entries(fields, "attributes").unwrap_or_default(),
        &mut out,
    );
    uint(fields, "dropped_attributes_count", 5, &mut out);
    if let Some(flags) = values::number(fields, "flags") {
        out.fixed32(6, flags as u32);
    }
    out
}

/// Encodes a `Span.Link` message that points to a span.
pub(super) fn link_to(ids: &Ids) -> Buffer {
    let mut out = Buffer::default();
    out.delimited(1, &ids.trace);
    out.delimited(2, &ids.span);
    out
}

fn id(fields: &Entries, key: &str, number: u32, out: &mut Buffer) {
    let id = values::id(fields, key);
    if !id.is_empty() {
        out.delimited(number, &id);
    }
}

fn uint(fields: &Entries, key: &str, number: u32, out: &mut Buffer) {
    if let Some(value) = values::number(fields, key) {
        out.uint(number, value);
    }
}

/// Creates a span from a slice without original fields. Its ids are derived from the name of the file and the position of the
/// slice, so that the same file gives the same ids. Its trace is that of the enclosing slice, else one for each step in the
/// names of slices, and one for all slices without a step. A trace from the mapper contains the trace id, the kind and the
/// failure.
pub(super) fn as_shown(
    event: &TraceEvent,
    (file, index): (&str, u64),
    start: u64,
    parent: Option<&Ids>,
    thread: &Thread,
) -> SpanBegin {
    let (name, tags) = name_and_tags(&event.name);
    let (annotations, shown) = shown_fields(&event.annotations);
    let place = format!("{file}\0span\0{}\0{start}\0{index}", event.track_uuid);
    let trace = || {
        let written = values::id(shown, "trace_id");
        if !written.is_empty() {
            return written;
        }
        let step = tags.iter().find(|(key, _)| key == "step").map(|(_, value)| value);
        let id = xxh3_128(format!("{file}\0trace\0{step:?}").as_bytes()).max(1);
        id.to_be_bytes().to_vec()
    };
    let mut begun = SpanBegin {
        ids: Ids {
            trace: parent.map_or_else(trace, |parent| parent.trace.clone()),
            span: xxh3_64(place.as_bytes()).max(1).to_be_bytes().to_vec(),
        },
        ..SpanBegin::default()
    };
    let out = &mut begun.before;
    out.delimited(field::TRACE_ID, &begun.ids.trace);
    out.delimited(field::SPAN_ID, &begun.ids.span);
    if let Some(parent) = parent {
        out.delimited(field::PARENT_SPAN_ID, &parent.span);
    }
    out.text(field::NAME, name);
    let kind = values::text(shown, "kind").and_then(|kind| KINDS.iter().position(|name| *name == kind));
    out.uint(field::KIND, kind.map_or(INTERNAL, |kind| kind as u64 + INTERNAL));
    out.fixed64(field::START, start);
    values::attributes(field::ATTRIBUTES, &tags, &mut begun.attributes);
    values::attributes(field::ATTRIBUTES, annotations, &mut begun.attributes);
    if values::text(shown, "status").is_some() {
        let mut status = Buffer::default();
        status.text(2, values::text(shown, "status_message").unwrap_or_default());
        status.uint(3, ERROR);
        begun.after.delimited(field::STATUS, status.as_slice());
    }
    thread.add(field::ATTRIBUTES, annotations, &mut begun.attributes);
    begun
}
