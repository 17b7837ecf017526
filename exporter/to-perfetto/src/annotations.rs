//! Writes the annotations of a span's slice, in one pass over the bytes of the span: only annotations that are written are
//! decoded.

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, Message, Span, SpanEvent, Status},
    wire::Reader,
};
use pulsetrain_perfetto::{Annotations, Event};

use super::{
    config::{AttributePolicy, PerfettoConfig},
    identity,
    scan::{ERROR, tag},
    span_trees::LATEST,
    trace_output::DrawContext,
    tree_span::{self, DrawnFields, TreeSpan},
    values,
};

/// Tags of `KeyValue` and of `AnyValue` (proto/common/v1/common.proto).
mod attribute_tag {
    pub(super) const KEY: u32 = 1 << 3 | 2;
    pub(super) const VALUE: u32 = 2 << 3 | 2;
    pub(super) const STRING: u32 = 1 << 3 | 2;
    pub(super) const INT: u32 = 3 << 3;
    pub(super) const DOUBLE: u32 = 4 << 3 | 1;
}

/// An event of a span: its time, its index among the events of the span, and the event.
pub(super) type Placed<'s> = (u64, u32, SpanEvent<'s>);

/// Writes the scope of a slice and the arrows that start or end there.
#[inline]
pub(super) fn mark(event: &mut Event<'_>, scope: &str, flows: &[[u8; 8]]) {
    if !scope.is_empty() {
        event.category(scope);
    }
    for flow in flows {
        event.flow(u64::from_le_bytes(*flow));
    }
}

/// Returns a number that all spans of one trace share. It has 28 bits, which take four bytes.
fn color(trace_id: &[u8]) -> u64 {
    // FNV-1a: the same number in every file and version.
    let hash = trace_id.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash >> 36
}

/// The parts of a span that are drawn in addition to its slice.
#[derive(Default)]
pub(super) struct SpanExtras<'s> {
    /// Its events in drawing order; an event without a time is drawn at the start of its span.
    pub(super) events: Vec<Placed<'s>>,
    /// Its status if it failed.
    pub(super) failure: Option<Status<'s>>,
}

/// Writes the attributes and fields of a span that are selected, and returns its events and its failure. `fields` are those
/// that may be drawn.
#[inline]
pub(super) fn span<'s>(
    drawn: &TreeSpan<'s>,
    fields: DrawnFields<'s>,
    about: DrawContext<'_>,
    event: &mut Event<'_>,
) -> Result<SpanExtras<'s>, WireError> {
    mark(event, about.scopes.name(drawn.scope), drawn.flows);
    if about.config.color_by_trace
        && let Some(trace) = tree_span::trace_id(drawn.bytes)
    {
        event.correlation(color(trace));
    }
    let policy = &about.config.attributes;
    if policy.is_full() {
        identity::add_span(drawn, &Span::decode(drawn.bytes)?, &mut event.annotations())?;
    }
    let (mut events, mut status) = (Vec::new(), None);
    let DrawnFields {
        mut kind,
        rest: mut fields,
    } = fields;
    while !fields.is_at_end() {
        match fields.tag()? {
            tag::ATTRIBUTES => {
                let bytes = fields.delimited()?;
                let mut outcome = Ok(());
                event.annotate_from(bytes, |out| outcome = attribute(bytes, policy, out));
                outcome?;
            }
            tag::EVENTS => events.push(SpanEvent::decode(fields.delimited()?)?),
            tag::STATUS => status = Some(Status::decode(fields.delimited()?)?),
            tag::KIND => kind = fields.varint()?,
            other => drop(fields.value(other)?),
        }
    }
    let failure = status.filter(|status| status.code == ERROR);
    if !policy.is_full() {
        let is_lean = *policy == AttributePolicy::Lean;
        let shown = identity::ViewerFields {
            // All spans of a tree have the same trace id.
            trace_id: (is_lean && drawn.depth == 0)
                .then(|| tree_span::trace_id(drawn.bytes))
                .flatten(),
            kind: if is_lean { identity::kind_name(kind) } else { "" },
            failure,
        };
        shown.add(&mut event.annotations());
    }
    let events = if events.is_empty() {
        Vec::new()
    } else {
        by_time(events, drawn.start)
    };
    Ok(SpanExtras { events, failure })
}

/// Marks a slice that the previous file began. `root` is the span of the outermost slice.
pub(super) fn continued(root: &[u8], is_root: bool, config: &PerfettoConfig, event: &mut Event<'_>) {
    let trace_id = tree_span::trace_id(root);
    if config.color_by_trace
        && let Some(trace) = trace_id
    {
        event.correlation(color(trace));
    }
    let mut out = event.annotations();
    out.add("continued", true);
    if is_root && config.attributes == AttributePolicy::Lean {
        let shown = identity::ViewerFields {
            trace_id,
            kind: "",
            failure: None,
        };
        shown.add(&mut out);
    }
}

/// Returns the events of a span in drawing order.
pub(super) fn events(bytes: &[u8], start: u64) -> Result<Vec<Placed<'_>>, WireError> {
    let events: Result<Vec<_>, _> = Span::decode(bytes)?.events.iter().collect();
    Ok(by_time(events?, start))
}

fn by_time(events: Vec<SpanEvent<'_>>, start: u64) -> Vec<Placed<'_>> {
    let time = |event: &SpanEvent<'_>| match event.time_unix_nano {
        // 0 and times beyond the range cannot be drawn.
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

/// Adds an attribute if it is selected.
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

/// Adds a value: the usual types directly, and all others through a view.
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
