//! The annotations of a span's slice, in one pass over the span's bytes: only what is written is decoded.

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, Message, Span, SpanEvent, Status},
    wire::Reader,
};
use pulsetrain_perfetto::{Annotations, Event};

use super::{
    config::AttributePolicy, identity, scan::tag, span_trees::LATEST, trace_output::About,
    tree_span::TreeSpan, values,
};

/// Tags of `KeyValue` and of `AnyValue` (proto/common/v1/common.proto).
mod attribute_tag {
    pub(super) const KEY: u32 = 1 << 3 | 2;
    pub(super) const VALUE: u32 = 2 << 3 | 2;
    pub(super) const STRING: u32 = 1 << 3 | 2;
    pub(super) const INT: u32 = 3 << 3;
    pub(super) const DOUBLE: u32 = 4 << 3 | 1;
}

/// An event of a span: its time, its place among the others, and all of it.
pub(super) type Placed<'s> = (u64, u32, SpanEvent<'s>);

/// Says of a slice which scope it is of, and which arrows start or end there.
#[inline]
pub(super) fn mark(event: &mut Event<'_>, scope: &str, flows: &[[u8; 8]]) {
    if !scope.is_empty() {
        event.category(scope);
    }
    for flow in flows {
        event.flow(u64::from_le_bytes(*flow));
    }
}

/// Says of a span what is asked for, of which `fields` are those that may be drawn, and gives its events in the order of
/// drawing; one without a time is drawn where its span begins.
#[inline]
pub(super) fn span<'s>(
    drawn: &TreeSpan<'s>,
    mut fields: Reader<'s>,
    about: About<'_>,
    event: &mut Event<'_>,
) -> Result<Vec<Placed<'s>>, WireError> {
    mark(event, about.scopes.name(drawn.scope), drawn.flows);
    let policy = &about.config.attributes;
    if policy.is_full() {
        identity::add_span(drawn, &Span::decode(drawn.bytes)?, &mut event.annotations())?;
    }
    let (mut events, mut status) = (Vec::new(), None);
    while !fields.is_at_end() {
        match fields.tag()? {
            tag::ATTRIBUTES => {
                let bytes = fields.delimited()?;
                let mut outcome = Ok(());
                event.annotate_from(bytes, |out| outcome = attribute(bytes, policy, out));
                outcome?;
            }
            tag::EVENTS => events.push(SpanEvent::decode(fields.delimited()?)?),
            tag::STATUS => status = Some(fields.delimited()?),
            other => drop(fields.value(other)?),
        }
    }
    if let Some(status) = status.filter(|_| !policy.is_full()) {
        identity::add_failure(&Status::decode(status)?, &mut event.annotations());
    }
    if events.is_empty() {
        return Ok(Vec::new());
    }
    Ok(by_time(events, drawn.start))
}

/// The events of a span in the order of drawing.
pub(super) fn events(bytes: &[u8], start: u64) -> Result<Vec<Placed<'_>>, WireError> {
    let events: Result<Vec<_>, _> = Span::decode(bytes)?.events.iter().collect();
    Ok(by_time(events?, start))
}

fn by_time(events: Vec<SpanEvent<'_>>, start: u64) -> Vec<Placed<'_>> {
    let time = |event: &SpanEvent<'_>| match event.time_unix_nano {
        // Without a time that can be drawn.
        1..=LATEST => event.time_unix_nano,
        _ => start,
    };
    let mut placed: Vec<_> = (0..)
        .zip(events)
        .map(|(place, event)| (time(&event), place, event))
        .collect();
    placed.sort_by_key(|(time, place, _)| (*time, *place));
    placed
}

/// Adds an attribute if it is asked for.
#[inline]
fn attribute(bytes: &[u8], policy: &AttributePolicy, out: &mut Annotations<'_>) -> Result<(), WireError> {
    let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        match reader.tag()? {
            attribute_tag::KEY => key = reader.delimited()?,
            attribute_tag::VALUE => value = reader.delimited()?,
            other => drop(reader.value(other)?),
        }
    }
    if policy.shows(key) {
        add(key, value, out)
    } else {
        Ok(())
    }
}

/// Adds a value: the usual ones as they are read, and all others by way of a view.
#[inline]
fn add(key: &[u8], bytes: &[u8], out: &mut Annotations<'_>) -> Result<(), WireError> {
    let mut reader = Reader::new(bytes);
    if !reader.is_at_end() {
        match reader.tag()? {
            attribute_tag::STRING => {
                let text = reader.delimited()?;
                if reader.is_at_end() {
                    out.add(key, text);
                    return Ok(());
                }
            }
            attribute_tag::INT => {
                let value = reader.varint()? as i64;
                if reader.is_at_end() {
                    out.add(key, value);
                    return Ok(());
                }
            }
            attribute_tag::DOUBLE => {
                let value = f64::from_bits(reader.fixed64()?);
                if reader.is_at_end() {
                    out.add(key, value);
                    return Ok(());
                }
            }
            _ => {}
        }
    }
    values::add(key, AnyValue::decode(bytes)?, out)
}
