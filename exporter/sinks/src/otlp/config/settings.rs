//! The receiver settings of a configuration section.

use std::{fmt, time::Duration};

use http::HeaderMap;

use super::{Compression, NamedFile, TlsFiles, headers};
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
    pub tls: TlsFiles,
}

/// The credentials in the `authorization` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// `Bearer` with a token from a file.
    Bearer(NamedFile),
    /// `Basic` with a user and a password (RFC 7617).
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Password,
    },
}

/// A password, or the file that contains it.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// The password.
    Text(String),
    /// The file.
    File(NamedFile),
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

impl fmt::Debug for Password {
    /// Hides the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
        }
    }
}
