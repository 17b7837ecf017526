//! Authentication of requests by their `Authorization` header: bearer tokens (RFC 6750) and basic (RFC 7617).
//!
//! Every line of the file is accepted, so that a credential can be replaced without a moment in which neither the old nor
//! the new credential works.

use std::{fs, io::Read, path::Path, path::PathBuf};

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use subtle::{Choice, ConstantTimeEq};

use crate::NetError;

/// The largest file of credentials.
const MAX_BYTES: u64 = 64 << 10;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How clients authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthConfig {
    /// `Authorization: Bearer TOKEN`.
    Bearer {
        /// The tokens that are accepted, one a line.
        token_file: PathBuf,
    },
    /// `Authorization: Basic`, with a user and a password.
    Basic {
        /// The user.
        user: String,
        /// The passwords that are accepted, one a line.
        password_file: PathBuf,
    },
}

/// Why a request is not authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: send Authorization: {scheme}")]
pub struct Unauthenticated {
    problem: &'static str,
    scheme: &'static str,
    challenge: &'static str,
}

impl Unauthenticated {
    /// Returns the value of the `WWW-Authenticate` header.
    pub fn challenge(&self) -> HeaderValue {
        HeaderValue::from_static(self.challenge)
    }
}

/// The credentials that are accepted.
pub(crate) struct Credentials {
    is_bearer: bool,
    accepted: Vec<Vec<u8>>,
}

impl AuthConfig {
    /// The file of the secrets.
    pub(crate) fn file(&self) -> &Path {
        match self {
            Self::Bearer { token_file } => token_file,
            Self::Basic { password_file, .. } => password_file,
        }
    }

    /// Reads the credentials.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is empty, or holds a credential that no client can send.
    pub(crate) fn read(&self) -> Result<Credentials, NetError> {
        match self {
            Self::Bearer { token_file } => Ok(Credentials {
                is_bearer: true,
                accepted: lines(token_file, "token", |line| {
                    let token = line.trim();
                    token
                        .bytes()
                        .all(|byte| byte.is_ascii_graphic())
                        .then(|| token.as_bytes().to_vec())
                })?,
            }),
            Self::Basic { user, password_file } => {
                if user.is_empty() || user.contains(':') {
                    return Err(NetError::User { user: user.clone() });
                }
                Ok(Credentials {
                    is_bearer: false,
                    accepted: lines(password_file, "password", |line| {
                        Some(format!("{user}:{line}").into_bytes())
                    })?,
                })
            }
        }
    }
}

fn lines(
    path: &Path,
    content: &'static str,
    credential: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, NetError> {
    let wrong = |problem: String| NetError::Credentials {
        path: path.to_owned(),
        content,
        problem,
    };
    let mut text = String::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(wrong(format!("it is longer than {MAX_BYTES} bytes")));
    }
    let mut accepted = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let credential = credential(line).ok_or_else(|| {
            wrong(format!(
                "line {number} has characters that a header cannot contain"
            ))
        })?;
        accepted.push(credential);
    }
    if accepted.is_empty() {
        return Err(wrong(format!("it contains no {content}")));
    }
    Ok(accepted)
}

impl Credentials {
    /// Checks the credentials of a request. The duration does not depend on the correct part of a wrong credential.
    ///
    /// # Errors
    /// Credentials that are missing, of another scheme, or wrong.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), Unauthenticated> {
        let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let header = header.ok_or_else(|| self.refusal("the request has no credentials"))?;
        let (scheme, given) = match header.iter().position(|byte| *byte == b' ') {
            Some(space) => (&header[..space], header[space..].trim_ascii()),
            None => (header, &[][..]),
        };
        let scheme_name: &[u8] = if self.is_bearer { b"Bearer" } else { b"Basic" };
        if !scheme.eq_ignore_ascii_case(scheme_name) {
            return Err(self.refusal("the credentials are of another scheme"));
        }
        let decoded;
        let given = if self.is_bearer {
            given
        } else {
            decoded = BASE64.decode(given).unwrap_or_default();
            &decoded
        };
        let is_accepted = self
            .accepted
            .iter()
            .fold(Choice::from(0), |found, accepted| found | accepted.ct_eq(given));
        if is_accepted.into() {
            return Ok(());
        }
        Err(self.refusal("the credentials are wrong"))
    }

    fn refusal(&self, problem: &'static str) -> Unauthenticated {
        let (scheme, challenge) = if self.is_bearer {
            ("Bearer and a valid token", r#"Bearer realm="pulsetrain""#)
        } else {
            (
                "Basic and a valid user and password",
                r#"Basic realm="pulsetrain", charset="UTF-8""#,
            )
        };
        Unauthenticated {
            problem,
            scheme,
            challenge,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(text: &str, user: Option<&str>) -> Result<Credentials, NetError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        fs::write(&file, text).unwrap();
        let config = match user {
            None => AuthConfig::Bearer { token_file: file },
            Some(user) => AuthConfig::Basic {
                user: user.to_owned(),
                password_file: file,
            },
        };
        config.read()
    }

    fn answer(credentials: &Credentials, header: Option<&str>) -> String {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(header).unwrap());
        }
        match credentials.check(&headers) {
            Ok(()) => "accepted".to_owned(),
            Err(refusal) => refusal.to_string(),
        }
    }

    #[test]
    fn only_the_tokens_of_the_file_are_accepted() {
        let tokens = credentials("old-token\n\n  new-token \n", None).unwrap();
        for (header, expected) in [
            (Some("Bearer old-token"), "accepted"),
            (Some("bearer  new-token"), "accepted"),
            (Some("Bearer old-toke"), "wrong"),
            (Some("Bearer old-tokenx"), "wrong"),
            (Some("Bearer "), "wrong"),
            (Some("Bearer"), "wrong"),
            (Some("Basic old-token"), "another scheme"),
            (Some("old-token"), "another scheme"),
            (None, "no credentials"),
        ] {
            assert!(answer(&tokens, header).contains(expected), "{header:?}");
        }
    }

    #[test]
    fn basic_auth_accepts_the_user_with_any_password_of_the_file() {
        let passwords = credentials("correct horse\nbattery: staple\n", Some("prometheus")).unwrap();
        let basic = |text: &str| format!("Basic {}", BASE64.encode(text));
        for (given, expected) in [
            ("prometheus:correct horse", "accepted"),
            ("prometheus:battery: staple", "accepted"),
            ("prometheus:correct", "wrong"),
            ("Prometheus:correct horse", "wrong"),
            ("prometheus", "wrong"),
        ] {
            assert!(
                answer(&passwords, Some(&basic(given))).contains(expected),
                "{given}"
            );
        }
        let unpadded = basic("prometheus:correct horse").replace('=', "");
        assert_eq!(answer(&passwords, Some(&unpadded)), "accepted");
        assert!(answer(&passwords, Some("Basic !")).contains("wrong"));
        assert!(answer(&passwords, Some("Bearer x")).contains("Basic and a valid user"));
    }

    #[test]
    fn unusable_secret_files_are_rejected_without_revealing_their_text() {
        for (text, user, expected) in [
            ("\n \n", None, "it contains no token"),
            ("secret token", None, "line 1"),
            ("secret", Some("a:b"), "has no colon"),
            ("", Some("a"), "it contains no password"),
        ] {
            let Err(error) = credentials(text, user) else {
                panic!("{text:?} is accepted");
            };
            let error = format!("{error}; {}", error.remedy());
            assert!(error.contains(expected) && !error.contains("secret t"), "{error}");
        }
    }
}
