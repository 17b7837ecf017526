//! Content negotiation by `Accept` and `Accept-Encoding`.
//!
//! The rules are those of prometheus/common `expfmt.Negotiate`: the first supported entry with the highest
//! quality wins. Without one, the format is text 0.0.4.

use http::{
    HeaderMap,
    header::{ACCEPT, ACCEPT_ENCODING, HeaderName},
};

use super::{escape::Escaping, render::Format};

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseFormat {
    pub(super) format: Format,
    version: &'static str,
    pub(super) escaping: Escaping,
}

/// The compression of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Zstd,
}

impl ResponseFormat {
    /// Negotiates the format of a request.
    pub(super) fn to(headers: &HeaderMap) -> Self {
        entries(headers, &ACCEPT)
            .find_map(|entry| Self::from_entry(&entry))
            .unwrap_or(Self {
                format: Format::Text,
                version: "0.0.4",
                escaping: Escaping::Underscores,
            })
    }

    fn from_entry(entry: &Entry<'_>) -> Option<Self> {
        let version = entry.parameter("version");
        let (format, version) = match (entry.name.to_ascii_lowercase().as_str(), version) {
            ("application/vnd.google.protobuf", _) => {
                let delimited = entry.parameter("encoding") == Some("delimited");
                let family = entry.parameter("proto") == Some("io.prometheus.client.MetricFamily");
                (delimited && family).then_some((Format::Protobuf, ""))?
            }
            ("application/openmetrics-text", Some("1.0.0")) => (Format::OpenMetrics, "1.0.0"),
            ("application/openmetrics-text", Some("0.0.1") | None) => (Format::OpenMetrics, "0.0.1"),
            ("text/plain", Some("1.0.0")) => (Format::Text, "1.0.0"),
            ("text/plain" | "text/*" | "*/*", Some("0.0.4") | None) => (Format::Text, "0.0.4"),
            _ => return None,
        };
        let escaping = entry.parameter("escaping").and_then(Escaping::from_word);
        Some(Self {
            format,
            version,
            escaping: escaping.unwrap_or(Escaping::Underscores),
        })
    }

    /// Returns the value of `Content-Type`.
    pub(super) fn content_type(self) -> String {
        let escaping = self.escaping.word();
        match self.format {
            Format::Text => format!(
                "text/plain; version={}; charset=utf-8; escaping={escaping}",
                self.version
            ),
            Format::OpenMetrics => format!(
                "application/openmetrics-text; version={}; charset=utf-8; escaping={escaping}",
                self.version
            ),
            Format::Protobuf => format!(
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping={escaping}"
            ),
        }
    }
}

impl Coding {
    /// Negotiates the compression of a request.
    pub(super) fn to(headers: &HeaderMap) -> Self {
        let mut best = (Self::Identity, 0.0);
        for entry in entries(headers, &ACCEPT_ENCODING) {
            let coding = match entry.name {
                "zstd" => Self::Zstd,
                "gzip" | "x-gzip" | "*" => Self::Gzip,
                _ => continue,
            };
            // If entries have equal quality, the first one wins. Only zstd overrides gzip, because zstd is
            // several times faster.
            let better = coding == Self::Zstd && best.0 == Self::Gzip && entry.quality == best.1;
            if entry.quality > best.1 || better {
                best = (coding, entry.quality);
            }
        }
        best.0
    }

    /// Returns the value of `Content-Encoding`, if there is one.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

/// One entry of an `Accept` header.
struct Entry<'a> {
    name: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> Entry<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| (key.trim(), value.trim().trim_matches('"')))
            .collect();
        let quality = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case("q"));
        let quality = quality.map_or(1.0, |(_, value)| value.parse().unwrap_or(0.0));
        Self {
            name,
            parameters,
            quality,
        }
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        let found = self
            .parameters
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }
}

/// Returns the entries that the client accepts, in order of preference.
fn entries<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = Entry<'a>> {
    let values = headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let mut entries: Vec<Entry<'_>> = values
        .flat_map(|value| value.split(','))
        .map(|text| Entry::parse(text.trim()))
        .filter(|entry| entry.quality > 0.0)
        .collect();
    entries.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    entries.into_iter()
}

#[cfg(test)]
mod tests;
