//! Parses the header list of `OTEL_EXPORTER_OTLP_HEADERS`: W3C Baggage, `key=value,key=value` with
//! percent-encoded values, without Baggage's `;metadata` (specification, protocol/exporter.md).

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::{SinkError, error::HeaderFault};

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
        let (name, value) = entry.split_once('=').ok_or(HeaderFault::Form)?;
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
    read: impl Fn(T) -> Result<(HeaderName, HeaderValue), HeaderFault>,
) -> Result<HeaderMap, SinkError> {
    let mut headers = HeaderMap::new();
    for (index, entry) in entries {
        let (name, value) = read(entry).map_err(|fault| SinkError::Header {
            variable: variable.to_owned(),
            position: index + 1,
            fault,
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn header(name: &str, value: &[u8]) -> Result<(HeaderName, HeaderValue), HeaderFault> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderFault::Name)?;
    if RESERVED.contains(&name.as_str()) {
        return Err(HeaderFault::Reserved);
    }
    let mut value = HeaderValue::from_bytes(value).map_err(|_| HeaderFault::Value)?;
    value.set_sensitive(true);
    Ok((name, value))
}
