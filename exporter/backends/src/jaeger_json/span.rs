//! Encodes a span of Jaeger as a `Span` message.

use pulsetrain_otlp::write::{Buffer, span_field as field};

use super::{
    JaegerError, Log, Reference, Span,
    tag::{self, Tag},
};

const CHILD_OF: &str = "CHILD_OF";

/// Tags that become fields, and are not kept as attributes.
const FIELDS: [&str; 8] = [
    tag::KIND,
    tag::STATUS_CODE,
    tag::STATUS_MESSAGE,
    tag::TRACE_STATE,
    tag::SCOPE_NAME[0],
    tag::SCOPE_NAME[1],
    tag::SCOPE_VERSION[0],
    tag::SCOPE_VERSION[1],
];

impl Span<'_> {
    /// Returns the name and the version of the instrumentation scope.
    pub(super) fn scope(&self) -> [String; 2] {
        [tag::SCOPE_NAME, tag::SCOPE_VERSION]
            .map(|names| names.iter().find_map(|name| self.text(name)).unwrap_or_default())
    }

    /// Encodes a `Span` message.
    pub(super) fn encode(&self) -> Result<Buffer, JaegerError> {
        let mut out = Buffer::default();
        out.delimited(field::TRACE_ID, &id::<16>(&self.trace_id)?);
        out.delimited(field::SPAN_ID, &id::<8>(&self.span_id)?);
        out.text(
            field::TRACE_STATE,
            &self.text(tag::TRACE_STATE).unwrap_or_default(),
        );
        if let Some(parent) = self.parent() {
            out.delimited(field::PARENT_SPAN_ID, &id::<8>(parent)?);
        }
        out.delimited(field::NAME, self.operation_name.as_bytes());
        out.uint(field::KIND, self.kind());
        out.fixed64(field::START, nanos(self.start_time));
        out.fixed64(field::END, nanos(self.start_time.saturating_add(self.duration)));
        for tag in self.tags().filter(|tag| !is_field(tag)) {
            tag.encode(field::ATTRIBUTES, &mut out);
        }
        if let Some(warnings) = self.warnings.as_ref().filter(|warnings| !warnings.is_empty()) {
            tag::texts(field::ATTRIBUTES, tag::WARNINGS, warnings, &mut out);
        }
        for log in self.logs.iter().flatten() {
            out.delimited(field::EVENTS, log.encode().as_slice());
        }
        let parent = self.parent_reference();
        for reference in self.references.iter().flatten() {
            if !parent.is_some_and(|parent| std::ptr::eq(parent, reference)) {
                out.delimited(field::LINKS, reference.encode()?.as_slice());
            }
        }
        out.delimited(field::STATUS, self.status().as_slice());
        if let Some(flags) = self.flags.filter(|flags| *flags != 0) {
            out.fixed32(field::FLAGS, flags);
        }
        Ok(out)
    }

    fn tags(&self) -> impl Iterator<Item = &Tag<'_>> {
        self.tags.iter().flatten()
    }

    fn text(&self, key: &str) -> Option<String> {
        self.tags().find(|tag| tag.key == key)?.as_text()
    }

    /// Returns the id of the parent; old answers have it in a field instead of a reference.
    fn parent(&self) -> Option<&str> {
        let named = self.parent_span_id.as_deref().filter(|id| !id.is_empty());
        self.parent_reference()
            .map(|reference| reference.span_id.as_str())
            .or(named)
    }

    /// Returns the first reference to a parent in the same trace; all other references are links.
    fn parent_reference(&self) -> Option<&Reference> {
        self.references
            .iter()
            .flatten()
            .find(|reference| reference.ref_type == CHILD_OF && reference.trace_id == self.trace_id)
    }

    /// Returns the number of the span kind (`Span.SpanKind`).
    fn kind(&self) -> u64 {
        match self.text(tag::KIND).as_deref() {
            Some("internal") => 1,
            Some("server") => 2,
            Some("client") => 3,
            Some("producer") => 4,
            Some("consumer") => 5,
            _ => 0,
        }
    }

    /// Returns a `Status` message. A tag `error` without a status becomes one.
    fn status(&self) -> Buffer {
        let mut out = Buffer::default();
        let has_error = || {
            self.tags()
                .any(|tag| tag.key == tag::ERROR && tag.boolean_value() == Some(true))
        };
        out.text(2, &self.text(tag::STATUS_MESSAGE).unwrap_or_default());
        match self.text(tag::STATUS_CODE).as_deref() {
            Some("OK") => out.uint(3, 1),
            Some("ERROR") => out.uint(3, 2),
            _ if has_error() => out.uint(3, 2),
            _ => {}
        }
        out
    }
}

impl Log<'_> {
    /// Encodes an `Event` message; its name is the field `event`.
    fn encode(&self) -> Buffer {
        let mut out = Buffer::default();
        out.fixed64(1, nanos(self.timestamp));
        let fields = || self.fields.iter().flatten();
        let name = fields()
            .find(|field| field.key == tag::EVENT)
            .and_then(Tag::as_text);
        out.text(2, name.as_deref().unwrap_or_default());
        for field in fields().filter(|field| name.is_none() || field.key != tag::EVENT) {
            field.encode(3, &mut out);
        }
        out
    }
}

impl Reference {
    /// Returns a `Link` message. Jaeger stores links as `FOLLOWS_FROM`; an attribute keeps any other type.
    fn encode(&self) -> Result<Buffer, JaegerError> {
        let mut out = Buffer::default();
        out.delimited(1, &id::<16>(&self.trace_id)?);
        out.delimited(2, &id::<8>(&self.span_id)?);
        if self.ref_type == CHILD_OF {
            tag::text(4, tag::REFERENCE_TYPE, "child_of", &mut out);
        }
        Ok(out)
    }
}

/// Returns whether a tag became a field. A boolean `error` is one; an `error` with another value is kept as an attribute.
fn is_field(tag: &Tag<'_>) -> bool {
    FIELDS.contains(&tag.key.as_str()) || (tag.key == tag::ERROR && tag.boolean_value().is_some())
}

pub(crate) fn nanos(micros: u64) -> u64 {
    micros.saturating_mul(1000)
}

/// Parses an id, which may lack leading zeros.
pub(crate) fn id<const N: usize>(text: &str) -> Result<[u8; N], JaegerError> {
    let bad = || JaegerError::Id(text.to_owned(), 2 * N);
    if text.is_empty() || text.len() > 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let number = u128::from_str_radix(text, 16).map_err(|_| bad())?;
    let mut id = [0; N];
    id.copy_from_slice(&number.to_be_bytes()[16 - N..]);
    Ok(id)
}
