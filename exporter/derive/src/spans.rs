//! Extracts spans from a batch, and builds batches of them with additional attributes. All other bytes are
//! unchanged.

use std::sync::Arc;

use pulsetrain_otlp::{
    WireError,
    view::{Message, Resource, Span},
    wire::{Field, Reader, WireValue},
    write::{Attribute, Buffer, span_attributes},
};
use pulsetrain_pipeline::Batch;
use pulsetrain_run::RunOrigin;

use crate::{config::MAX_RESOURCE_BYTES, steps::assembler::handle};

/// Fields of the messages that contain spans (proto/trace/v1/trace.proto).
const RESOURCE_SPANS: u32 = 1;
const RESOURCE: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SPANS: u32 = 2;

/// The messages that enclose spans of one resource and one scope.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// The message of the resource.
    pub(crate) resource: Vec<u8>,
    /// The run, rank and host of the resource.
    pub(crate) origin: RunOrigin,
    /// The fields of `ResourceSpans` without its scopes, and of `ScopeSpans` without its spans.
    around_scopes: Vec<u8>,
    around_spans: Vec<u8>,
    /// The batch of the spans, without its contents. The spans still belong to its ack.
    pub(crate) batch: Batch,
}

/// A span that was extracted from its batch.
#[derive(Clone, Debug)]
pub(crate) struct ExtractedSpan {
    pub(crate) envelope: Arc<Envelope>,
    pub(crate) bytes: Vec<u8>,
}

/// Extracts the spans that `wanted` selects from a batch, in their order. Returns the rest of the batch, or
/// `None` if no item is left, and the extracted spans.
///
/// # Errors
/// Bytes that are not spans.
pub(crate) fn extract(
    batch: &Batch,
    mut wanted: impl FnMut(&RunOrigin, &Span<'_>) -> bool,
) -> Result<(Option<Batch>, Vec<ExtractedSpan>), WireError> {
    let (mut rest, mut extracted) = (Buffer::default(), Vec::new());
    for field in Reader::new(batch.bytes()) {
        match field? {
            Field {
                number: RESOURCE_SPANS,
                value: WireValue::Bytes(resource_spans),
            } => rest.delimited(
                RESOURCE_SPANS,
                &of_resource(batch, resource_spans, &mut wanted, &mut extracted)?,
            ),
            other => copy(&other, &mut rest),
        }
    }
    let items = batch.items().saturating_sub(extracted.len() as u32);
    let left = (items > 0).then(|| batch.with_contents(items, rest.into_vec()));
    Ok((left, extracted))
}

/// Returns batches of these spans; spans of one envelope are in one batch.
pub(crate) fn batches(spans: &[ExtractedSpan]) -> Vec<Batch> {
    spans
        .chunk_by(|one, next| Arc::ptr_eq(&one.envelope, &next.envelope))
        .filter_map(|spans| Some(spans.first()?.envelope.batch_of(spans)))
        .collect()
}

/// Returns one `ResourceSpans` without the extracted spans.
fn of_resource(
    batch: &Batch,
    resource_spans: &[u8],
    wanted: &mut impl FnMut(&RunOrigin, &Span<'_>) -> bool,
    extracted: &mut Vec<ExtractedSpan>,
) -> Result<Vec<u8>, WireError> {
    let (mut around_scopes, mut scopes, mut resource) = (Buffer::default(), Vec::new(), &[][..]);
    for field in Reader::new(resource_spans) {
        match field? {
            Field {
                number: SCOPE_SPANS,
                value: WireValue::Bytes(scope),
            } => scopes.push(scope),
            other => {
                if let (RESOURCE, WireValue::Bytes(bytes)) = (other.number, other.value) {
                    resource = bytes;
                }
                copy(&other, &mut around_scopes);
            }
        }
    }
    if resource.len() > MAX_RESOURCE_BYTES {
        return Ok(resource_spans.to_vec());
    }
    let origin = RunOrigin::from_attributes(Resource::decode(resource)?.attributes);
    let mut rest = around_scopes.clone();
    for scope in scopes {
        let (left, around_spans, spans) = of_scope(scope, |span| wanted(&origin, span))?;
        rest.delimited(SCOPE_SPANS, left.as_slice());
        if spans.is_empty() {
            continue;
        }
        let envelope = Arc::new(Envelope {
            resource: resource.to_vec(),
            origin: origin.clone(),
            around_scopes: around_scopes.as_slice().to_vec(),
            around_spans: around_spans.into_vec(),
            batch: handle(batch),
        });
        extracted.extend(spans.into_iter().map(|bytes| ExtractedSpan {
            envelope: Arc::clone(&envelope),
            bytes: bytes.to_vec(),
        }));
    }
    Ok(rest.into_vec())
}

/// Returns one `ScopeSpans` without the extracted spans, its fields without any span, and the extracted spans.
fn of_scope(
    scope: &[u8],
    mut wanted: impl FnMut(&Span<'_>) -> bool,
) -> Result<(Buffer, Buffer, Vec<&[u8]>), WireError> {
    let (mut rest, mut around, mut extracted) = (Buffer::default(), Buffer::default(), Vec::new());
    for field in Reader::new(scope) {
        let field = field?;
        match (field.number, field.value) {
            (SPANS, WireValue::Bytes(span)) if wanted(&Span::decode(span)?) => extracted.push(span),
            (SPANS, _) => copy(&field, &mut rest),
            _ => {
                copy(&field, &mut rest);
                copy(&field, &mut around);
            }
        }
    }
    Ok((rest, around, extracted))
}

impl ExtractedSpan {
    /// Returns the bytes that the span holds back, with its envelope as if no other span had it.
    pub(crate) fn held_bytes(&self) -> usize {
        let envelope = &self.envelope;
        let around = envelope.around_scopes.len() + envelope.around_spans.len();
        self.bytes.len() + envelope.resource.len() + around
    }
}

impl Envelope {
    /// Returns a batch of these spans.
    fn batch_of(&self, spans: &[ExtractedSpan]) -> Batch {
        let mut scope = Buffer::default();
        scope.append(&self.around_spans);
        spans.iter().for_each(|span| scope.delimited(SPANS, &span.bytes));
        let mut resource_spans = Buffer::default();
        resource_spans.append(&self.around_scopes);
        resource_spans.delimited(SCOPE_SPANS, scope.as_slice());
        let mut data = Buffer::default();
        data.delimited(RESOURCE_SPANS, resource_spans.as_slice());
        self.batch.with_contents(spans.len() as u32, data.into_vec())
    }
}

impl ExtractedSpan {
    /// Appends attributes to the span.
    pub(crate) fn append(&mut self, attributes: &[Attribute<'_>]) {
        let mut fields = Buffer::default();
        span_attributes(attributes, &mut fields);
        self.bytes.extend_from_slice(fields.as_slice());
    }
}

/// Writes a field unchanged.
pub(crate) fn copy(field: &Field<'_>, out: &mut Buffer) {
    match field.value {
        WireValue::Varint(value) => out.uint(field.number, value),
        WireValue::Fixed64(value) => out.fixed64(field.number, value),
        WireValue::Bytes(value) => out.delimited(field.number, value),
        WireValue::Fixed32(value) => out.fixed32(field.number, value),
    }
}
