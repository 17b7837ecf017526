//! Tags: Jaeger's typed attributes, and the names of the tags that represent a field of OTLP.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pulsetrain_otlp::write::Buffer;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Names that Jaeger and the OpenTelemetry specification ("OpenTelemetry to Jaeger Transformation") give to OTLP's fields.
pub(crate) const SERVICE_NAME: &str = "service.name";
pub(crate) const KIND: &str = "span.kind";
pub(crate) const ERROR: &str = "error";
pub(crate) const STATUS_CODE: &str = "otel.status_code";
pub(crate) const STATUS_MESSAGE: &str = "otel.status_description";
pub(crate) const TRACE_STATE: &str = "w3c.tracestate";
pub(crate) const SCOPE_NAME: [&str; 2] = ["otel.scope.name", "otel.library.name"];
pub(crate) const SCOPE_VERSION: [&str; 2] = ["otel.scope.version", "otel.library.version"];
pub(crate) const EVENT: &str = "event";
pub(crate) const REFERENCE_TYPE: &str = "opentracing.ref_type";
pub(crate) const WARNINGS: &str = "jaeger.internal.warnings";

/// A tag: a key, a type, and a value of that type.
#[derive(Deserialize)]
pub(super) struct Tag<'a> {
    pub(super) key: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(borrow)]
    value: &'a RawValue,
}

impl Tag<'_> {
    /// Returns the text of a string, or `None` for another type.
    pub(super) fn as_text(&self) -> Option<String> {
        serde_json::from_str(self.value.get()).ok()
    }

    /// Returns the value as a boolean, which may also be written as a string.
    pub(super) fn boolean_value(&self) -> Option<bool> {
        self.value.get().trim_matches('"').parse().ok()
    }

    /// Writes the tag as attribute `number`. A value that does not match its type is written as text.
    pub(super) fn encode(&self, number: u32, out: &mut Buffer) {
        let mut value = Buffer::default();
        if self.typed(&mut value).is_none() {
            let text = self.as_text().unwrap_or_else(|| self.value.get().to_owned());
            value.delimited(1, text.as_bytes());
        }
        pair(number, &self.key, &value, out);
    }

    /// Writes the fields of an `AnyValue`. Jaeger writes numbers above 2^53 as text.
    fn typed(&self, out: &mut Buffer) -> Option<()> {
        let written = self.value.get().trim_matches('"');
        match self.kind.as_str() {
            "bool" => out.uint(2, u64::from(self.boolean_value()?)),
            "int64" => out.uint(3, written.parse::<i64>().ok()? as u64),
            "float64" => out.double(4, written.parse().ok()?),
            "binary" => out.delimited(7, &STANDARD.decode(self.as_text()?).ok()?),
            _ => return None,
        }
        Some(())
    }
}

/// Writes a string attribute.
pub(crate) fn text(number: u32, key: &str, text: &str, out: &mut Buffer) {
    pair(number, key, &message(1, text.as_bytes()), out);
}

/// Writes an attribute with a list of strings.
pub(super) fn texts(number: u32, key: &str, texts: &[String], out: &mut Buffer) {
    let mut list = Buffer::default();
    for text in texts {
        list.delimited(1, message(1, text.as_bytes()).as_slice());
    }
    pair(number, key, &message(5, list.as_slice()), out);
}

pub(crate) fn pair(number: u32, key: &str, value: &Buffer, out: &mut Buffer) {
    let mut pair = message(1, key.as_bytes());
    pair.delimited(2, value.as_slice());
    out.delimited(number, pair.as_slice());
}

/// Returns a message that begins with this field.
pub(crate) fn message(number: u32, bytes: &[u8]) -> Buffer {
    let mut message = Buffer::default();
    message.delimited(number, bytes);
    message
}
