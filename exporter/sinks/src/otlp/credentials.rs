//! The `authorization` header of a client. A token or password in a file is reread during use.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;
use parking_lot::Mutex;
use pulsetrain_pipeline::clock::{self, Instant};

use super::config::{Credentials, Password};
use crate::{SinkError, error::HeaderFault};

/// The minimum interval between reads of a file. After rejected credentials it is read at once.
const REREAD_AFTER: Duration = Duration::from_secs(1);
/// The maximum length of a token or password in bytes. Servers reject longer headers.
const MAX_BYTES: u64 = 16 << 10;

/// The current value of `authorization`.
pub(super) struct Authorization {
    credentials: Credentials,
    state: Mutex<State>,
}

struct State {
    header: HeaderValue,
    /// The time of the last read, or `None` after rejected credentials.
    read_at: Option<Instant>,
    /// The error of the last read. The header is then that of the read before.
    read_error: Option<String>,
}

impl Authorization {
    /// Reads the file of the credentials, if there is one.
    ///
    /// # Errors
    /// A file that cannot be read, or whose content is invalid in a header.
    pub(super) fn open(credentials: &Credentials) -> Result<Self, SinkError> {
        let header = header(credentials).map_err(|source| match credentials.file() {
            Some((name, path)) => SinkError::Secret {
                name: name.to_owned(),
                path: path.to_owned(),
                source,
            },
            None => SinkError::Header {
                variable: "basic_auth".to_owned(),
                position: 1,
                fault: HeaderFault::Credentials,
            },
        })?;
        Ok(Self {
            credentials: credentials.clone(),
            state: Mutex::new(State {
                header,
                read_at: Some(clock::now()),
                read_error: None,
            }),
        })
    }

    /// Returns the header. A file that was not read for a second is read first, on the blocking pool.
    pub(super) async fn header(&self) -> HeaderValue {
        let now = clock::now();
        {
            let mut state = self.state.lock();
            let age = state
                .read_at
                .map(|read_at| now.saturating_duration_since(read_at));
            let is_fresh = age.is_some_and(|age| age < REREAD_AFTER);
            if self.credentials.file().is_none() || is_fresh {
                return state.header.clone();
            }
            // Other requests in flight need not read it too.
            state.read_at = Some(now);
        }
        let credentials = self.credentials.clone();
        let read = tokio::task::spawn_blocking(move || header(&credentials)).await;
        let mut state = self.state.lock();
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(header) => {
                state.header = header;
                state.read_error = None;
            }
            Err(error) => state.read_error = Some(error.to_string()),
        }
        state.header.clone()
    }

    /// Handles rejected credentials: the next request rereads the file. Returns advice for the user, or
    /// `None` without a file.
    pub(super) fn refused(&self) -> Option<String> {
        let (_, path) = self.credentials.file()?;
        let mut state = self.state.lock();
        state.read_at = None;
        let path = path.display();
        Some(match &state.read_error {
            None => format!(
                "the credentials in {path} were refused: write valid ones there; the file is read again before the next \
                 attempt, and nothing is lost until then"
            ),
            Some(read_error) => format!(
                "{path} cannot be read ({read_error}) and the credentials that it held before were refused: write valid ones there"
            ),
        })
    }
}

impl Credentials {
    /// Returns the file with the key that names it.
    fn file(&self) -> Option<(&str, &Path)> {
        match self {
            Self::Bearer(file)
            | Self::Basic {
                password: Password::File(file),
                ..
            } => Some((&file.variable, &file.path)),
            Self::Basic { .. } => None,
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
fn secret(path: &PathBuf) -> io::Result<String> {
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
