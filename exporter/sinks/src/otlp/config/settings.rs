//! The receiver settings of a configuration section.

use std::time::Duration;

use http::HeaderMap;
use pulsetrain_net::client::{ClientTls, Compression, Credentials};

use super::headers;
use crate::SinkError;

/// The settings of one section, for all signals. A missing setting comes from the environment if both
/// endpoints have the same origin, otherwise from the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtlpSettings {
    /// Whether bodies over HTTP are JSON instead of protobuf.
    pub json: Option<bool>,
    /// The headers of every request, from [`OtlpSettings::headers`].
    pub headers: Option<HeaderMap>,
    /// The credentials of the client, for the `authorization` header.
    pub credentials: Option<Credentials>,
    /// The maximum duration of one request, response included. Zero means no limit.
    pub timeout: Option<Duration>,
    /// The compression of request bodies.
    pub compression: Option<Compression>,
    /// The TLS settings.
    pub tls: ClientTls,
}

impl OtlpSettings {
    /// Returns headers from names and values, which are marked as sensitive. `name` is the setting in
    /// messages.
    ///
    /// # Errors
    /// An invalid name or value, without the value.
    pub fn headers<'a>(
        name: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<HeaderMap, SinkError> {
        headers::from_pairs(name, pairs)
    }
}
