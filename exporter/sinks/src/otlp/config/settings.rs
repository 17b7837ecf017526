//! The settings that a section of a configuration gives for its receiver.

use std::{fmt, time::Duration};

use http::HeaderMap;

use super::{Compression, NamedFile, TlsFiles, headers};
use crate::SinkError;

/// The settings of one section, for all signals. What is `None` comes from the environment if the endpoint has the origin of
/// the environment's endpoint, otherwise from the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtlpSettings {
    /// Whether bodies over HTTP are JSON instead of protobuf.
    pub json: Option<bool>,
    /// The headers of every request; [`OtlpSettings::headers`] makes them.
    pub headers: Option<HeaderMap>,
    /// Who the client is, by the header `authorization`.
    pub credentials: Option<Credentials>,
    /// The longest that one request may take, answer included; zero is no limit.
    pub timeout: Option<Duration>,
    /// How request bodies are compressed.
    pub compression: Option<Compression>,
    /// Whom to trust over TLS, and what to show.
    pub tls: TlsFiles,
}

/// What proves to a receiver who the client is, by the header `authorization`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// `Bearer` with the token that a file holds.
    Bearer(NamedFile),
    /// `Basic` with a user and a password (RFC 7617).
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Password,
    },
}

/// A password, or the file that holds it.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password.
    Text(String),
    /// The file.
    File(NamedFile),
}

impl OtlpSettings {
    /// Returns headers from names and values, which are marked as sensitive. `name` is that of the setting in messages.
    ///
    /// # Errors
    /// A name or a value that no header can have, without the value.
    pub fn headers<'a>(
        name: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<HeaderMap, SinkError> {
        headers::from_pairs(name, pairs)
    }
}

impl fmt::Debug for Password {
    /// Shows no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
        }
    }
}
