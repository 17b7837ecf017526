//! Converts Jaeger's own JSON (`/api/traces`, and the files that its page downloads) to OTLP.
//!
//! The format is Jaeger's `internal/uimodel`. Jaeger stores some fields of OTLP as tags; the conversion restores those
//! fields, as Jaeger's own translator does (`internal/jptrace`). Times are microseconds. Lists and maps are text in this
//! format, and stay text.

use std::collections::{BTreeMap, HashMap};

use pulsetrain_otlp::write::Buffer;
use serde::Deserialize;

pub(super) use self::span::{id, nanos};
use self::tag::Tag;

mod span;
pub(super) mod tag;

/// A trace in Jaeger's model.
#[derive(Deserialize)]
struct Trace<'a> {
    #[serde(borrow)]
    spans: Vec<Span<'a>>,
    #[serde(borrow, default)]
    processes: HashMap<String, Process<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Process<'a> {
    #[serde(default)]
    service_name: String,
    #[serde(borrow, default)]
    tags: Option<Vec<Tag<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Span<'a> {
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
    #[serde(rename = "parentSpanID", default)]
    parent_span_id: Option<String>,
    #[serde(default)]
    flags: Option<u32>,
    #[serde(default)]
    operation_name: String,
    #[serde(default)]
    references: Option<Vec<Reference>>,
    start_time: u64,
    #[serde(default)]
    duration: u64,
    #[serde(borrow, default)]
    tags: Option<Vec<Tag<'a>>>,
    #[serde(borrow, default)]
    logs: Option<Vec<Log<'a>>>,
    #[serde(rename = "processID", default)]
    process_id: Option<String>,
    #[serde(borrow, default)]
    process: Option<Process<'a>>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference {
    ref_type: String,
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
}

#[derive(Deserialize)]
struct Log<'a> {
    timestamp: u64,
    #[serde(borrow, default)]
    fields: Option<Vec<Tag<'a>>>,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum JaegerError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0:?} is not an id of up to {1} hexadecimal digits")]
    Id(String, usize),
}

/// Converts a trace to OTLP messages, one for each process and scope.
pub(super) fn convert(text: &str) -> Result<Vec<Vec<u8>>, JaegerError> {
    let trace: Trace<'_> = serde_json::from_str(text)?;
    let mut groups = BTreeMap::<(Vec<u8>, [String; 2]), Buffer>::new();
    for span in &trace.spans {
        let known = span.process_id.as_ref().and_then(|id| trace.processes.get(id));
        let resource = span
            .process
            .as_ref()
            .or(known)
            .map(Process::encode)
            .unwrap_or_default();
        let spans = groups.entry((resource, span.scope())).or_default();
        spans.delimited(2, span.encode()?.as_slice());
    }
    let messages = groups
        .iter()
        .map(|((resource, scope), spans)| wrapped(resource, scope, spans));
    Ok(messages.collect())
}

/// Encodes a `TracesData` message of one resource and one scope.
pub(super) fn wrapped(resource: &[u8], [name, version]: &[String; 2], spans: &Buffer) -> Vec<u8> {
    let mut scope = Buffer::default();
    scope.text(1, name);
    scope.text(2, version);
    let mut scope_spans = tag::message(1, scope.as_slice());
    scope_spans.append(spans.as_slice());
    let mut resource_spans = tag::message(1, resource);
    resource_spans.delimited(2, scope_spans.as_slice());
    tag::message(1, resource_spans.as_slice()).into_vec()
}

impl Process<'_> {
    /// Encodes a `Resource` message.
    fn encode(&self) -> Vec<u8> {
        let mut out = Buffer::default();
        if !self.service_name.is_empty() {
            tag::text(1, tag::SERVICE_NAME, &self.service_name, &mut out);
        }
        for tag in self.tags.iter().flatten() {
            tag.encode(1, &mut out);
        }
        out.into_vec()
    }
}
