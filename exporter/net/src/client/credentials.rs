//! The credentials of a client, and the value of its `authorization` header.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;

use super::ClientError;
use crate::watched_files::WatchedFiles;

/// The maximum length of a token or password in bytes. Servers reject longer headers.
const MAX_BYTES: u64 = 16 << 10;

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

/// A file with the setting that names it, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The variable, the key or the option.
    pub variable: String,
    /// The file.
    pub path: PathBuf,
}

/// A file whose credentials a host rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedFile {
    /// The file.
    pub path: PathBuf,
    /// The error of the last read, after which the credentials of the read before were sent.
    pub read_error: Option<String>,
}

impl Credentials {
    /// Reads the value of `authorization`.
    ///
    /// # Errors
    /// A file that cannot be read, or whose content is invalid in a header.
    pub(super) fn open(&self) -> Result<WatchedFiles<HeaderValue, io::Error>, ClientError> {
        let (credentials, file) = (self.clone(), self.file());
        let paths = file.iter().map(|file| file.path.clone()).collect();
        WatchedFiles::open(paths, move || header(&credentials)).map_err(|source| match file {
            Some(file) => ClientError::Secret {
                variable: file.variable.clone(),
                path: file.path.clone(),
                source,
            },
            None => ClientError::UserOrPassword,
        })
    }

    pub(super) fn file(&self) -> Option<&NamedFile> {
        match self {
            Self::Bearer(file)
            | Self::Basic {
                password: Password::File(file),
                ..
            } => Some(file),
            Self::Basic { .. } => None,
        }
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

fn header(credentials: &Credentials) -> io::Result<HeaderValue> {
    let text = match credentials {
        Credentials::Bearer(file) => format!("Bearer {}", secret(&file.path)?),
        Credentials::Basic { user, password } => {
            let password = match password {
                Password::Text(text) => text.clone(),
                Password::File(file) => secret(&file.path)?,
            };
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        }
    };
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| io::Error::other("it holds more than one line, or control characters"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Reads the text of a file, without a trailing line break.
fn secret(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(io::Error::other("it is empty"));
    }
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is longer than 16 KiB"));
    }
    Ok(text.to_owned())
}
