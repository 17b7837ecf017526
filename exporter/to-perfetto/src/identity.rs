//! Writes the fields of a span that viewers do not show, as one map `otel`, which is enough to convert the span back.
//!
//! The counterpart is `from_perfetto/spans.rs`. Fields with their default value are omitted, as on the wire. Resources,
//! scopes, points and log records are written by `message`, with the names of OTLP/JSON.

use pulsetrain_otlp::{
    WireError,
    view::{InstrumentationScope, Message, Resource, Span, SpanEvent, SpanLink, Status},
};
use pulsetrain_perfetto::Annotations;

use super::{config::AttributePolicy, message, scopes::ScopeEntry, tree_span::TreeSpan, values};

/// The key of the map.
pub(super) const KEY: &str = "otel";

/// The key for the name of a failed span, at the instant on the row of errors.
pub(super) const ERROR_OF: &str = "error_of";

/// The field of a resource's attributes (proto/resource/v1/resource.proto).
const RESOURCE_ATTRIBUTES: u32 = 1;

/// Adds all fields of a span except its name, its drawn times, its events and its attributes.
pub(super) fn add_span(
    drawn: &TreeSpan<'_>,
    span: &Span<'_>,
    out: &mut Annotations<'_>,
) -> Result<(), WireError> {
    let mut outcome = Ok(());
    out.map(KEY, |map| {
        map.add("span", drawn.number);
        map.add("scope", drawn.scope);
        id(map, "trace_id", span.trace_id);
        id(map, "span_id", span.span_id);
        id(map, "parent_span_id", span.parent_span_id);
        text(map, "trace_state", span.trace_state.as_bytes());
        uint(map, "flags", span.flags);
        int(map, "kind", span.kind);
        uint(map, "dropped_attributes_count", span.dropped_attributes_count);
        uint(map, "dropped_events_count", span.dropped_events_count);
        uint(map, "dropped_links_count", span.dropped_links_count);
        if let Some(status) = span.status {
            map.add("status_code", status.code);
            text(map, "status_message", status.message.as_bytes());
        }
        if (span.start_time_unix_nano, span.end_time_unix_nano) != (drawn.start, drawn.end) {
            map.add("start_time_unix_nano", span.start_time_unix_nano);
            map.add("end_time_unix_nano", span.end_time_unix_nano);
        }
        if !span.links.is_empty() {
            map.list("links", |list| {
                for link in span.links {
                    outcome = link.and_then(|link| {
                        let mut added = Ok(());
                        list.map(|map| added = add_link(&link, map));
                        added
                    });
                    if outcome.is_err() {
                        break;
                    }
                }
            });
        }
    });
    outcome
}

fn add_link(link: &SpanLink<'_>, map: &mut Annotations<'_>) -> Result<(), WireError> {
    id(map, "trace_id", link.trace_id);
    id(map, "span_id", link.span_id);
    text(map, "trace_state", link.trace_state.as_bytes());
    uint(map, "flags", link.flags);
    uint(map, "dropped_attributes_count", link.dropped_attributes_count);
    let mut outcome = Ok(());
    map.map("attributes", |map| {
        outcome = values::attributes(link.attributes, &AttributePolicy::Full, map);
    });
    outcome
}

/// The fields of a span for readers, in a trace that is not for the conversion back.
pub(super) struct ViewerFields<'a> {
    pub(super) trace_id: Option<&'a [u8]>,
    /// The name of the kind, which is empty unless the span is between processes.
    pub(super) kind: &'a str,
    pub(super) failure: Option<Status<'a>>,
}

impl ViewerFields<'_> {
    /// Adds the fields, with the same keys as for log records.
    pub(super) fn add(&self, out: &mut Annotations<'_>) {
        if self.trace_id.is_none() && self.kind.is_empty() && self.failure.is_none() {
            return;
        }
        out.map(KEY, |map| {
            id(map, "trace_id", self.trace_id.unwrap_or_default());
            text(map, "kind", self.kind.as_bytes());
            if let Some(status) = self.failure {
                map.add("status", "error");
                text(map, "status_message", status.message.as_bytes());
            }
        });
    }
}

/// Returns the name of a `Span.SpanKind` between processes, or "" for another kind.
pub(super) fn kind_name(kind: u64) -> &'static str {
    match kind {
        2 => "server",
        3 => "client",
        4 => "producer",
        5 => "consumer",
        _ => "",
    }
}

/// Adds the number of an event's span, and the index of the event there.
pub(super) fn add_event(span: u64, place: u32, event: &SpanEvent<'_>, drawn: u64, out: &mut Annotations<'_>) {
    out.map(KEY, |map| {
        map.add("event_of", span);
        map.add("place", place);
        uint(map, "dropped_attributes_count", event.dropped_attributes_count);
        if event.time_unix_nano != drawn {
            map.add("time_unix_nano", event.time_unix_nano);
        }
    });
}

/// Adds the fields of a resource except its attributes, and the scopes of its items.
pub(super) fn add_resource<'a>(
    resource: &[u8],
    scopes: impl Iterator<Item = (u32, &'a ScopeEntry)>,
    out: &mut Annotations<'_>,
) -> Result<(), WireError> {
    let mut outcome = Ok(());
    out.map(KEY, |map| {
        map.add("resource", true);
        outcome = message::add(Resource::descriptor(), resource, &[RESOURCE_ATTRIBUTES], map);
        map.list("scopes", |list| {
            for (number, scope) in scopes {
                list.map(|map| {
                    let added = add_scope(number, scope, map);
                    outcome = outcome.and(added);
                });
            }
        });
    });
    outcome
}

fn add_scope(number: u32, entry: &ScopeEntry, map: &mut Annotations<'_>) -> Result<(), WireError> {
    map.add("number", number);
    text(map, "schemaUrl", &entry.schema_url);
    text(map, "resourceSchemaUrl", &entry.resource_schema_url);
    let mut outcome = Ok(());
    map.map("scope", |map| {
        outcome = message::add(InstrumentationScope::descriptor(), &entry.bytes, &[], map);
    });
    outcome
}

/// Adds an id in hexadecimal unless it is empty.
#[inline]
pub(super) fn id(map: &mut Annotations<'_>, key: &str, id: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
    let hex: Vec<u8> = id.iter().flat_map(digits).collect();
    text(map, key, &hex);
}

/// Adds a text unless it is empty.
pub(super) fn text(map: &mut Annotations<'_>, key: &str, text: &[u8]) {
    if !text.is_empty() {
        map.add(key, text);
    }
}

fn uint(map: &mut Annotations<'_>, key: &str, value: u32) {
    if value != 0 {
        map.add(key, value);
    }
}

fn int(map: &mut Annotations<'_>, key: &str, value: i32) {
    if value != 0 {
        map.add(key, value);
    }
}
