//! Converts the JSON answers of Tempo and Jaeger, in each of their forms:
//!
//! | form | who | what is in it |
//! |---|---|---|
//! | `{"batches": [...]}` | Tempo, `/api/traces/ID` | OTLP with ids in base64 and enum values by name |
//! | `{"trace": {"resourceSpans": [...]}, "status": ...}` | Tempo, `/api/v2/traces/ID` | the same, and whether it is only a part |
//! | `{"result": {"resourceSpans": [...]}}`, several in a row too | Jaeger, `/api/v3/traces` | OTLP/JSON |
//! | `{"data": [{"spans": [...], "processes": {...}}]}` | Jaeger, `/api/traces` | Jaeger's own JSON |
//!
//! An answer that does not fit into memory is read in pieces (`pieces`).

mod pieces;

use pulsetrain_otlp::{
    Signal,
    json::{self, Dialect},
    limits::Limits,
};
use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::pieces::read_responses;
use super::jaeger_json;

/// An answer, converted to OTLP.
#[derive(Debug, Default)]
pub struct QueryResponse {
    /// OTLP messages, each with its signal.
    pub messages: Vec<(Signal, Vec<u8>)>,
    /// The parts that could not be read, with their place, and the parts that the store reported as missing.
    pub problems: Vec<String>,
    /// The offset of the text in the complete answer, if the text is a piece.
    pub(super) shift: i64,
    /// The offset of the first byte that is not used yet, if the text is a piece.
    pub(super) used_until: Option<u64>,
}

/// Names that an answer may begin with; OTLP/JSON begins with none of them.
const FIRST_NAMES: [&str; 8] = [
    "batches", "trace", "result", "data", "error", "errors", "status", "metrics",
];

/// The size of the head that has the first name of an object.
const HEAD: usize = 256;

/// Returns whether text looks like an answer, by the first name of its object; the text may be truncated after that.
pub fn looks_like_response(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let name = head
        .trim_start_matches('\u{feff}')
        .trim_start()
        .strip_prefix('{')
        .and_then(|inside| inside.trim_start().strip_prefix('"'))
        .and_then(|name| name.split_once('"'));
    name.is_some_and(|(name, rest)| FIRST_NAMES.contains(&name) && rest.trim_start().starts_with([':']))
}

/// The members of all forms.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    batches: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    trace: Option<Traces<'a>>,
    #[serde(borrow)]
    result: Option<Traces<'a>>,
    #[serde(borrow)]
    data: Option<Vec<&'a RawValue>>,
    /// OTLP that follows an answer.
    #[serde(borrow, rename = "resourceSpans", alias = "resource_spans")]
    resources: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
    status: Option<String>,
    message: Option<String>,
}

impl Envelope<'_> {
    fn has_traces(&self) -> bool {
        let lists = [&self.batches, &self.data, &self.resources];
        self.trace.is_some() || self.result.is_some() || lists.into_iter().any(Option::is_some)
    }
}

#[derive(Default, Deserialize)]
struct Traces<'a> {
    #[serde(
        borrow,
        alias = "resource_spans",
        alias = "batches",
        rename = "resourceSpans",
        default
    )]
    resources: Option<Vec<&'a RawValue>>,
}

/// Converts the objects of an answer. A bad part becomes a problem and does not prevent the conversion of the rest.
pub fn convert_response(text: &[u8], limits: &Limits) -> QueryResponse {
    let mut answer = QueryResponse::default();
    answer.take_all(text, limits);
    answer
}

impl QueryResponse {
    fn take_all(&mut self, text: &[u8], limits: &Limits) {
        let marked = text.len();
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        self.shift += (marked - text.len()) as i64;
        let mut objects = serde_json::Deserializer::from_slice(text).into_iter::<Envelope<'_>>();
        let mut count = 0;
        loop {
            let begin = objects.byte_offset();
            let Some(object) = objects.next() else {
                break;
            };
            count += 1;
            match object {
                Ok(object) => {
                    let head = &text[begin..text.len().min(begin + HEAD)];
                    if !object.has_traces() && !looks_like_response(head) {
                        let begin = self.place(begin);
                        self.problems.push(format!(
                            "the object after byte {begin} is not an answer of a trace store"
                        ));
                    }
                    self.take(object, text, limits);
                }
                Err(error) => return self.take_torn(text, objects.byte_offset(), &error, limits),
            }
        }
        if count == 0 {
            self.problems.push("the answer is empty".to_owned());
        }
    }

    /// Converts the complete elements of a truncated object.
    fn take_torn(&mut self, text: &[u8], at: usize, error: &serde_json::Error, limits: &Limits) {
        let rest = text.get(at..).unwrap_or_default();
        let closed = json::close_truncated(rest).filter(|_| error.is_eof());
        let used_until = closed.as_ref().map(|(_, cut)| self.place(at + cut));
        let kept = match used_until.or(self.used_until) {
            Some(until) => format!("the data before byte {until} is used"),
            None => "is the saved file complete?".to_owned(),
        };
        let begin = self.place(at);
        self.problems.push(format!(
            "the answer that begins at byte {begin} cannot be read to its end: {error}; {kept}"
        ));
        if let Some((object, _)) = closed
            && let Ok(whole) = serde_json::from_slice(&object)
        {
            self.take(whole, &object, limits);
        }
    }

    /// Returns the offset in the complete answer for an offset in the text.
    fn place(&self, at: usize) -> u64 {
        (at as u64).saturating_add_signed(self.shift)
    }

    fn take(&mut self, object: Envelope<'_>, text: &[u8], limits: &Limits) {
        let traces = [object.trace, object.result].into_iter().flatten();
        let resources = traces
            .filter_map(|traces| traces.resources)
            .chain(object.batches)
            .chain(object.resources)
            .flatten();
        for resource in resources {
            self.resource(resource, text, limits);
        }
        for trace in object.data.into_iter().flatten() {
            match jaeger_json::convert(trace.get()) {
                Ok(messages) => self
                    .messages
                    .extend(messages.into_iter().map(|bytes| (Signal::Traces, bytes))),
                Err(error) => {
                    let at = self.place(offset(text, trace.get()));
                    self.problems.push(format!(
                        "the trace that begins at byte {at} is not in Jaeger's format: {error}"
                    ));
                }
            }
        }
        for error in [object.error, object.errors].into_iter().flatten() {
            if !matches!(error.get(), "null" | "[]") {
                self.problems
                    .push(format!("the store answered with an error: {}", error.get()));
            }
        }
        if object
            .status
            .is_some_and(|status| status.eq_ignore_ascii_case("partial"))
        {
            let why = object.message.unwrap_or_default();
            self.problems
                .push(format!("the store returned only a part of the trace: {why}"));
        }
    }

    /// Converts each resource separately, so that a bad one does not affect the others.
    fn resource(&mut self, resource: &RawValue, text: &[u8], limits: &Limits) {
        const BEFORE: &str = "{\"resourceSpans\":[";
        let object = format!("{BEFORE}{}]}}", resource.get());
        let begin = self.place(offset(text, resource.get()));
        let place = |at: usize| begin + at.saturating_sub(BEFORE.len()) as u64;
        let mut bytes = Vec::with_capacity(object.len() / 2);
        match json::decode_dialect(object.as_bytes(), Dialect::Stored, limits, &mut bytes) {
            Ok(decoded) => {
                if let Some(first) = decoded.first_unknown {
                    self.problems.push(format!(
                        "{} fields that OTLP does not have are left out; the first is {:?} at byte {}",
                        decoded.unknown_fields,
                        first.name,
                        place(first.offset)
                    ));
                }
                if decoded.counts.items > 0 {
                    self.messages.push((Signal::Traces, bytes));
                }
            }
            Err(mut error) => {
                error.offset = place(error.offset) as usize;
                self.problems.push(error.to_string());
            }
        }
    }
}

/// Returns the offset of a part in its text.
fn offset(text: &[u8], part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

#[cfg(test)]
mod tests;
