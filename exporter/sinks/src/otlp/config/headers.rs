//! Parses the header list of `OTEL_EXPORTER_OTLP_HEADERS`: W3C Baggage, `key=value,key=value` with
//! percent-encoded values, without Baggage's `;metadata` (specification, protocol/exporter.md).

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::SinkError;

/// Headers that frame the request. Other values would break it.
const RESERVED: [&str; 8] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "grpc-encoding",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Parses the list. Values are marked as sensitive, and no error contains one.
pub(super) fn parse(variable: &str, list: &str) -> Result<HeaderMap, SinkError> {
    let entries = list
        .split(',')
        .enumerate()
        .filter(|(_, entry)| !entry.trim().is_empty());
    collect(variable, entries, |entry| {
        let (name, value) = entry
            .split_once('=')
            .ok_or("has no `=`: write key=value, with commas percent-encoded (%2C)")?;
        header(
            name.trim(),
            &percent_decode_str(value.trim()).collect::<Vec<u8>>(),
        )
    })
}

/// Like [`parse`], for names and values that are not encoded.
pub(super) fn from_pairs<'a>(
    setting: &str,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<HeaderMap, SinkError> {
    collect(setting, pairs.into_iter().enumerate(), |(name, value)| {
        header(name, value.as_bytes())
    })
}

fn collect<T>(
    variable: &str,
    entries: impl Iterator<Item = (usize, T)>,
    read: impl Fn(T) -> Result<(HeaderName, HeaderValue), &'static str>,
) -> Result<HeaderMap, SinkError> {
    let mut headers = HeaderMap::new();
    for (index, entry) in entries {
        let (name, value) = read(entry).map_err(|problem| SinkError::Header {
            variable: variable.to_owned(),
            position: index + 1,
            problem,
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn header(name: &str, value: &[u8]) -> Result<(HeaderName, HeaderValue), &'static str> {
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| "has a key that is not a header name: use letters, digits and hyphens")?;
    if RESERVED.contains(&name.as_str()) {
        return Err("names a header that the exporter sets itself: leave it out");
    }
    let mut value = HeaderValue::from_bytes(value)
        .map_err(|_| "has a value with a line break or another control character: leave it out")?;
    value.set_sensitive(true);
    Ok((name, value))
}
