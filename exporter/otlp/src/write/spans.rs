//! Encodes spans.

use pulsetrain_semconv as semconv;

use super::{
    buffer::Buffer,
    envelope::{Encoded, Envelope},
    span_field as field,
    value::{self, Attribute},
};
use crate::{Signal, UnixNanos};

/// Fields of `Span.Link` (proto/trace/v1/trace.proto).
mod link_field {
    pub(super) const TRACE_ID: u32 = 1;
    pub(super) const SPAN_ID: u32 = 2;
}

/// The size of a link in bytes: both ids, each with a tag and a length.
const LINK_BYTES: usize = 16 + 8 + 4;

/// A span with its ids, times and attributes.
#[derive(Clone, Copy, Debug)]
pub struct SpanParts<'a> {
    /// The definition of the span.
    pub span: &'static semconv::Span,
    /// The trace id.
    pub trace_id: [u8; 16],
    /// The span id.
    pub span_id: [u8; 8],
    /// The id of the parent span.
    pub parent_span_id: Option<[u8; 8]>,
    /// The start time.
    pub start_unix_nanos: UnixNanos,
    /// The end time.
    pub end_unix_nanos: UnixNanos,
    /// The attributes.
    pub attributes: &'a [Attribute<'a>],
}

/// A link to a span of the same trace or of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanLink {
    /// The trace id of the linked span.
    pub trace_id: [u8; 16],
    /// The span id of the linked span.
    pub span_id: [u8; 8],
}

/// Collects spans until a batch is full.
#[derive(Debug, Default)]
pub struct SpansWriter {
    spans: Buffer,
    scratch: Buffer,
    count: u32,
}

impl SpansWriter {
    /// Returns the number of spans so far.
    pub fn spans(&self) -> u32 {
        self.count
    }

    /// Returns the size of the spans so far, in bytes.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are no spans.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a span.
    pub fn span(&mut self, parts: &SpanParts<'_>) {
        self.linked_span(parts, &[]);
    }

    /// Adds a span with links.
    pub fn linked_span(&mut self, parts: &SpanParts<'_>, links: &[SpanLink]) {
        // Encoded into a buffer first: its length precedes it, and computing the length takes longer than copying the bytes.
        let out = &mut self.scratch;
        out.clear();
        out.delimited(field::TRACE_ID, &parts.trace_id);
        out.delimited(field::SPAN_ID, &parts.span_id);
        if let Some(parent) = &parts.parent_span_id {
            out.delimited(field::PARENT_SPAN_ID, parent);
        }
        out.delimited(field::NAME, parts.span.name.as_bytes());
        out.uint(field::KIND, kind(parts.span.kind));
        out.two_fixed64([
            (field::START, parts.start_unix_nanos.0),
            (field::END, parts.end_unix_nanos.0),
        ]);
        value::attributes(field::ATTRIBUTES, parts.attributes, out);
        for link in links {
            out.delimited_head(field::LINKS, LINK_BYTES);
            out.delimited(link_field::TRACE_ID, &link.trace_id);
            out.delimited(link_field::SPAN_ID, &link.span_id);
        }
        self.spans.delimited(2, self.scratch.as_slice());
        self.count += 1;
    }

    /// Returns the batch so far, if it has spans, and resets the writer.
    pub fn finish(&mut self, envelope: &Envelope) -> Option<Encoded> {
        if self.is_empty() {
            return None;
        }
        let bytes = envelope.wrap(self.spans.len(), |out| out.append(self.spans.as_slice()));
        let encoded = Encoded {
            signal: Signal::Traces,
            items: self.count,
            bytes,
        };
        self.spans.clear();
        self.count = 0;
        Some(encoded)
    }
}

/// Appends attributes to the fields of a span.
pub fn span_attributes(attributes: &[Attribute<'_>], out: &mut Buffer) {
    value::attributes(field::ATTRIBUTES, attributes, out);
}

/// Returns the number of a kind on the wire (`Span.SpanKind`).
fn kind(kind: semconv::SpanKind) -> u64 {
    match kind {
        semconv::SpanKind::Internal => 1,
        semconv::SpanKind::Server => 2,
        semconv::SpanKind::Client => 3,
        semconv::SpanKind::Producer => 4,
        semconv::SpanKind::Consumer => 5,
    }
}
