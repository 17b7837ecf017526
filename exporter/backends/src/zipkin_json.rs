//! Converts Zipkin's JSON, version 2 (an array of spans, an array of traces as `/api/v2/traces` answers, or spans after each
//! other), to OTLP.
//!
//! Times are microseconds, tags are text. Field and tag names follow the OpenTelemetry specification, "OpenTelemetry to
//! Zipkin Transformation". Spans are read one at a time, which keeps the memory independent of the file size.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    io::Read,
};

use pulsetrain_otlp::{
    Signal,
    write::{Buffer, span_field as field},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value, value::RawValue};

use crate::{
    QueryResponse,
    jaeger_json::{self, JaegerError, id, nanos, tag},
};

/// The limit on the spans of one message. The server's side of a shared span can follow its children by at most this number.
const MESSAGE_SPANS: usize = 1000;

/// The limit on the servers' sides of shared spans that are known at the same time.
const SERVERS: usize = 100_000;

/// The limit on the characters of a span that an error message quotes.
const QUOTED: usize = 80;

/// Tags of the specification that become fields of OTLP.
const FIELDS: [&str; 5] = [
    tag::STATUS_CODE,
    tag::ERROR,
    tag::SCOPE_NAME[0],
    tag::SCOPE_VERSION[0],
    tag::SERVICE_NAME,
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    trace_id: String,
    id: String,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    timestamp: Option<u64>,
    #[serde(default)]
    duration: Option<u64>,
    /// Whether this is the server's side of a span that shares its id with the client's side.
    #[serde(default, deserialize_with = "or_default")]
    shared: bool,
    #[serde(default)]
    local_endpoint: Option<Endpoint>,
    #[serde(default)]
    remote_endpoint: Option<Endpoint>,
    #[serde(default, deserialize_with = "or_default")]
    annotations: Vec<Annotation>,
    #[serde(default, deserialize_with = "or_default")]
    tags: BTreeMap<String, String>,
    /// A field of version 1.
    #[serde(default)]
    binary_annotations: Option<IgnoredAny>,
}

/// Reads `null` as the default value, as Zipkin does.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Endpoint {
    service_name: Option<String>,
    ipv4: Option<String>,
    ipv6: Option<String>,
    port: Option<u16>,
}

#[derive(Deserialize)]
struct Annotation {
    timestamp: u64,
    value: String,
    /// A field of version 1.
    #[serde(default)]
    endpoint: Option<IgnoredAny>,
}

/// Why a span cannot be converted.
#[derive(Debug, thiserror::Error)]
enum ZipkinError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Id(#[from] JaegerError),
    #[error("it has no timestamp")]
    NoTimestamp,
    #[error("it is of version 1 of the format; get version 2 from /api/v2/traces")]
    Version1,
}

/// Reads the spans of one array, or of several arrays or spans after each other, and passes them to `take` in messages of one
/// service and scope each.
///
/// # Errors
///
/// Returns the error of `take`. Faults of the input are reported as problems.
pub fn read_zipkin<E>(input: impl Read, take: impl FnMut(QueryResponse) -> Result<(), E>) -> Result<(), E> {
    let mut reader = Reader {
        waiting: Vec::new(),
        servers: HashMap::new(),
        read: 0,
        problems: Vec::new(),
        take,
        failure: None,
    };
    let mut json = serde_json::Deserializer::from_reader(input);
    loop {
        let outcome = Elements(&mut reader).deserialize(&mut json);
        let is_complete = outcome.is_ok();
        if let (Err(error), None) = (outcome, &reader.failure) {
            let read = reader.read;
            reader.problems.push(format!(
                "the spans cannot be read to their end: {error}; the first {read} are used"
            ));
        }
        if !is_complete || reader.failure.is_some() || json.end().is_ok() {
            break;
        }
    }
    reader.flush();
    reader.failure.map_or(Ok(()), Err)
}

struct Reader<T, E> {
    waiting: Vec<WaitingSpan>,
    /// The servers' sides of shared spans, with their resources.
    servers: HashMap<Id, Vec<u8>>,
    read: u64,
    problems: Vec<String>,
    take: T,
    failure: Option<E>,
}

/// The ids of a trace and of a span.
type Id = ([u8; 16], [u8; 8]);

/// A span that is not yet in a message, because its parent is not yet known.
struct WaitingSpan {
    /// The encoded resource, and the scope.
    place: (Vec<u8>, [String; 2]),
    id: Id,
    parent: Option<[u8; 8]>,
    /// Its encoded fields other than the ids.
    fields: Buffer,
}

impl<T: FnMut(QueryResponse) -> Result<(), E>, E> Reader<T, E> {
    fn element(&mut self, text: &str) {
        if text.trim_start().starts_with('[') {
            match serde_json::from_str::<Vec<&RawValue>>(text) {
                Ok(trace) => trace.into_iter().for_each(|span| self.span(span.get())),
                Err(error) => self.problems.push(error.to_string()),
            }
        } else {
            self.span(text);
        }
        if self.waiting.len() >= MESSAGE_SPANS || self.problems.len() >= MESSAGE_SPANS {
            self.flush();
        }
    }

    fn span(&mut self, text: &str) {
        self.read += 1;
        if let Err(error) = self.convert(text) {
            let quoted: String = text.chars().take(QUOTED).collect();
            self.problems
                .push(format!("span {}, {quoted}...: {error}", self.read));
        }
    }

    /// Adds a span. The server's side of a shared span gets its own id, as a child of the client's side.
    fn convert(&mut self, text: &str) -> Result<(), ZipkinError> {
        let span: Span = serde_json::from_str(text)?;
        let fields = span.encode()?;
        let place = (span.resource(), span.scope());
        let (trace, own) = (id::<16>(&span.trace_id)?, id::<8>(&span.id)?);
        let (own, parent) = if span.shared {
            if self.servers.len() >= SERVERS {
                self.servers.clear();
            }
            self.servers.insert((trace, own), place.0.clone());
            (of_server(own), Some(own))
        } else {
            let parent = span.parent_id.as_deref().filter(|parent| !parent.is_empty());
            (own, parent.map(id::<8>).transpose()?)
        };
        self.waiting.push(WaitingSpan {
            place,
            id: (trace, own),
            parent,
            fields,
        });
        Ok(())
    }

    /// Returns the parent of a span: the server's side of a shared span if that is of the same service.
    fn parent(&self, span: &WaitingSpan) -> Option<[u8; 8]> {
        let parent = span.parent?;
        let is_shared = span.id.1 == of_server(parent);
        let server = self.servers.get(&(span.id.0, parent));
        let is_of_server =
            server.is_some_and(|resource| !resource.is_empty() && *resource == span.place.0) && !is_shared;
        Some(if is_of_server { of_server(parent) } else { parent })
    }

    fn flush(&mut self) {
        let mut messages: BTreeMap<(Vec<u8>, [String; 2]), Buffer> = BTreeMap::new();
        for span in std::mem::take(&mut self.waiting) {
            let mut encoded = Buffer::default();
            encoded.delimited(field::TRACE_ID, &span.id.0);
            encoded.delimited(field::SPAN_ID, &span.id.1);
            if let Some(parent) = self.parent(&span) {
                encoded.delimited(field::PARENT_SPAN_ID, &parent);
            }
            encoded.append(span.fields.as_slice());
            let spans = messages.entry(span.place).or_default();
            spans.delimited(2, encoded.as_slice());
        }
        let messages = messages
            .iter()
            .map(|((resource, scope), spans)| (Signal::Traces, jaeger_json::wrapped(resource, scope, spans)));
        let answer = QueryResponse {
            messages: messages.collect(),
            problems: std::mem::take(&mut self.problems),
            ..QueryResponse::default()
        };
        if self.failure.is_none() {
            self.failure = (self.take)(answer).err();
        }
    }
}

/// Returns the id of the server's side of a shared span.
fn of_server(shared: [u8; 8]) -> [u8; 8] {
    shared.map(|byte| !byte)
}

/// A seed that reads a span, or the elements of an array one at a time.
struct Elements<'r, T, E>(&'r mut Reader<T, E>);

impl<'de, T: FnMut(QueryResponse) -> Result<(), E>, E> DeserializeSeed<'de> for Elements<'_, T, E> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: FnMut(QueryResponse) -> Result<(), E>, E> Visitor<'de> for Elements<'_, T, E> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Zipkin spans")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<(), A::Error> {
        let span: Map<String, Value> = Map::deserialize(MapAccessDeserializer::new(fields))?;
        self.0.element(&Value::from(span).to_string());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            self.0.element(element.get());
            if self.0.failure.is_some() {
                return Err(serde::de::Error::custom("the output failed"));
            }
        }
        Ok(())
    }
}

impl Span {
    /// Encodes a `Resource` message.
    fn resource(&self) -> Vec<u8> {
        let mut out = Buffer::default();
        let local = self.local_endpoint.as_ref();
        let name = local.and_then(|local| local.service_name.as_deref());
        let name = name.or_else(|| self.tag(tag::SERVICE_NAME));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            tag::text(1, tag::SERVICE_NAME, name, &mut out);
        }
        out.into_vec()
    }

    /// Returns the name and the version of the scope, in the tags of OpenTelemetry's exporters.
    fn scope(&self) -> [String; 2] {
        [tag::SCOPE_NAME[0], tag::SCOPE_VERSION[0]].map(|name| self.tag(name).unwrap_or_default().to_owned())
    }

    fn tag(&self, name: &str) -> Option<&str> {
        self.tags.get(name).map(String::as_str)
    }

    /// Encodes the fields of a `Span` message after its ids.
    fn encode(&self) -> Result<Buffer, ZipkinError> {
        let is_old = self.annotations.iter().any(|one| one.endpoint.is_some());
        if is_old || self.binary_annotations.is_some() {
            return Err(ZipkinError::Version1);
        }
        let start = self.timestamp.ok_or(ZipkinError::NoTimestamp)?;
        let mut out = Buffer::default();
        out.text(field::NAME, self.name.as_deref().unwrap_or_default());
        out.uint(field::KIND, self.kind());
        out.fixed64(field::START, nanos(start));
        let end = start.saturating_add(self.duration.unwrap_or_default());
        out.fixed64(field::END, nanos(end));
        if let Some(local) = &self.local_endpoint {
            local.encode(["network.local.address", "network.local.port"], &mut out);
        }
        if let Some(remote) = &self.remote_endpoint {
            if let Some(name) = &remote.service_name {
                tag::text(field::ATTRIBUTES, "peer.service", name, &mut out);
            }
            remote.encode(["network.peer.address", "network.peer.port"], &mut out);
        }
        let tags = self
            .tags
            .iter()
            .filter(|(key, _)| !FIELDS.contains(&key.as_str()));
        for (key, value) in tags {
            tag::text(field::ATTRIBUTES, key, value, &mut out);
        }
        for annotation in &self.annotations {
            let mut event = Buffer::default();
            event.fixed64(1, nanos(annotation.timestamp));
            event.text(2, &annotation.value);
            out.delimited(field::EVENTS, event.as_slice());
        }
        out.delimited(field::STATUS, self.status().as_slice());
        Ok(out)
    }

    /// Returns the number of the span kind (`Span.SpanKind`).
    fn kind(&self) -> u64 {
        match self.kind.as_deref() {
            Some("SERVER") => 2,
            Some("CLIENT") => 3,
            Some("PRODUCER") => 4,
            Some("CONSUMER") => 5,
            _ => 0,
        }
    }

    /// Encodes a `Status` message: a tag `error` other than `false` is an error, and its text the description.
    fn status(&self) -> Buffer {
        let mut out = Buffer::default();
        let error = self.tag(tag::ERROR).filter(|text| *text != "false");
        if let Some(description) = error.filter(|text| !text.is_empty() && *text != "true") {
            out.text(2, description);
        }
        match self.tag(tag::STATUS_CODE) {
            _ if error.is_some() => out.uint(3, 2),
            Some("ERROR") => out.uint(3, 2),
            Some("OK") => out.uint(3, 1),
            _ => {}
        }
        out
    }
}

impl Endpoint {
    /// Writes the address and the port as attributes with these names.
    fn encode(&self, [address, port]: [&str; 2], out: &mut Buffer) {
        if let Some(ip) = self.ipv4.as_ref().or(self.ipv6.as_ref()) {
            tag::text(field::ATTRIBUTES, address, ip, out);
        }
        if let Some(number) = self.port {
            let mut value = Buffer::default();
            value.uint(3, u64::from(number));
            tag::pair(field::ATTRIBUTES, port, &value, out);
        }
    }
}
