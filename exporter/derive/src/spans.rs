//! Spans taken out of a batch, and put on their way again with more attributes: all else stays byte for byte what it was.

use std::sync::Arc;

use pulsetrain_otlp::{
    WireError,
    view::{Message, Resource, Span},
    wire::{Field, Reader, Value},
    write::{Attribute, Buffer, span_attributes},
};
use pulsetrain_pipeline::Batch;

use crate::origin::Origin;

/// Fields of the messages that stand around spans (proto/trace/v1/trace.proto).
const RESOURCE_SPANS: u32 = 1;
const RESOURCE: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SPANS: u32 = 2;

/// What stood around spans of one resource and one scope.
#[derive(Debug)]
pub(crate) struct Envelope {
    /// The message of the resource.
    pub(crate) resource: Vec<u8>,
    /// Who speaks.
    pub(crate) origin: Origin,
    /// The fields of `ResourceSpans` but its scopes, and of `ScopeSpans` but its spans.
    around_scopes: Vec<u8>,
    around_spans: Vec<u8>,
    /// The batch that the spans came in, without its contents: its receipt watches over them still.
    pub(crate) batch: Batch,
}

/// A span that was taken out of its batch.
#[derive(Clone, Debug)]
pub(crate) struct TakenSpan {
    pub(crate) envelope: Arc<Envelope>,
    pub(crate) bytes: Vec<u8>,
}

/// Takes the spans that `wanted` wants out of a batch, in their order, and gives the rest, where there is any.
///
/// # Errors
/// Bytes that are no spans; nothing was taken then.
pub(crate) fn take(
    batch: &Batch,
    mut wanted: impl FnMut(&Origin, &Span<'_>) -> bool,
) -> Result<(Option<Batch>, Vec<TakenSpan>), WireError> {
    let (mut rest, mut taken) = (Buffer::default(), Vec::new());
    for field in Reader::new(batch.bytes()) {
        match field? {
            Field {
                number: RESOURCE_SPANS,
                value: Value::Bytes(whole),
            } => rest.delimited(
                RESOURCE_SPANS,
                &of_resource(batch, whole, &mut wanted, &mut taken)?,
            ),
            other => copy(&other, &mut rest),
        }
    }
    let items = batch.items().saturating_sub(taken.len() as u32);
    let left = (items > 0).then(|| batch.with_contents(items, rest.into_vec()));
    Ok((left, taken))
}

/// The batches that bring these spans on; those that came together go together.
pub(crate) fn batches(spans: &[TakenSpan]) -> Vec<Batch> {
    spans
        .chunk_by(|one, next| Arc::ptr_eq(&one.envelope, &next.envelope))
        .filter_map(|spans| Some(spans.first()?.envelope.around(spans)))
        .collect()
}

/// One `ResourceSpans` without the spans that are taken.
fn of_resource(
    batch: &Batch,
    whole: &[u8],
    wanted: &mut impl FnMut(&Origin, &Span<'_>) -> bool,
    taken: &mut Vec<TakenSpan>,
) -> Result<Vec<u8>, WireError> {
    let (mut around_scopes, mut scopes, mut resource) = (Buffer::default(), Vec::new(), &[][..]);
    for field in Reader::new(whole) {
        match field? {
            Field {
                number: SCOPE_SPANS,
                value: Value::Bytes(scope),
            } => scopes.push(scope),
            other => {
                if let (RESOURCE, Value::Bytes(bytes)) = (other.number, other.value) {
                    resource = bytes;
                }
                copy(&other, &mut around_scopes);
            }
        }
    }
    let origin = Origin::of(Resource::decode(resource)?.attributes);
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
            batch: batch.with_contents(0, Vec::new()),
        });
        taken.extend(spans.into_iter().map(|bytes| TakenSpan {
            envelope: Arc::clone(&envelope),
            bytes: bytes.to_vec(),
        }));
    }
    Ok(rest.into_vec())
}

/// One `ScopeSpans` without the spans that are taken, its fields but the spans, and the spans that are taken.
fn of_scope(
    scope: &[u8],
    mut wanted: impl FnMut(&Span<'_>) -> bool,
) -> Result<(Buffer, Buffer, Vec<&[u8]>), WireError> {
    let (mut rest, mut around, mut taken) = (Buffer::default(), Buffer::default(), Vec::new());
    for field in Reader::new(scope) {
        let field = field?;
        match (field.number, field.value) {
            (SPANS, Value::Bytes(span)) if wanted(&Span::decode(span)?) => taken.push(span),
            (SPANS, _) => copy(&field, &mut rest),
            _ => {
                copy(&field, &mut rest);
                copy(&field, &mut around);
            }
        }
    }
    Ok((rest, around, taken))
}

impl Envelope {
    /// A batch of these spans.
    fn around(&self, spans: &[TakenSpan]) -> Batch {
        let mut scope = Buffer::default();
        scope.append(&self.around_spans);
        spans.iter().for_each(|span| scope.delimited(SPANS, &span.bytes));
        let mut whole = Buffer::default();
        whole.append(&self.around_scopes);
        whole.delimited(SCOPE_SPANS, scope.as_slice());
        let mut data = Buffer::default();
        data.delimited(RESOURCE_SPANS, whole.as_slice());
        self.batch.with_contents(spans.len() as u32, data.into_vec())
    }
}

impl TakenSpan {
    /// Writes attributes behind what the span has.
    pub(crate) fn append(&mut self, attributes: &[Attribute<'_>]) {
        let mut fields = Buffer::default();
        span_attributes(attributes, &mut fields);
        self.bytes.extend_from_slice(fields.as_slice());
    }
}

/// Writes a field as it is.
pub(crate) fn copy(field: &Field<'_>, out: &mut Buffer) {
    match field.value {
        Value::Varint(value) => out.uint(field.number, value),
        Value::Fixed64(value) => out.fixed64(field.number, value),
        Value::Bytes(value) => out.delimited(field.number, value),
        Value::Fixed32(value) => out.fixed32(field.number, value),
    }
}
