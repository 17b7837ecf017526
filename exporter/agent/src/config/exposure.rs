//! The keys `tls`, `auth` and `allow_remote` of every section that listens.

use std::path::PathBuf;

use pulsetrain_net::{AuthConfig, Exposure, NetError, ServerTls};

use pulsetrain_pipeline::Problem;

use super::{Location, Spanned, section::section};
use crate::failure::net_problem;

section! {
    /// TLS of a server, from PEM files that are read again when they change.
    pub(crate) struct ServerTlsSection {
        /// The certificate chain of the server.
        certificate: Spanned<String> = Spanned::without_location(String::new()),
        /// Its private key, not encrypted.
        key: Spanned<String> = Spanned::without_location(String::new()),
        /// The authorities of client certificates. With this key, only clients with such a certificate can connect (mTLS).
        client_ca: Option<Spanned<String>> = None,
    }
}

section! {
    /// Authentication of every request: a bearer token, or basic with user and password. Every line of the file is accepted, and
    /// the file is read again when it changes.
    pub(crate) struct AuthSection {
        /// The file of the tokens, one a line.
        bearer_token_file: Option<Spanned<String>> = None,
        /// User and password, as in {user: prometheus, password_file: /etc/pulsetrain/password}.
        basic: Option<Spanned<BasicSection>> = None,
    }
}

section! {
    /// Basic authentication.
    pub(crate) struct BasicSection {
        /// The user.
        user: String = String::new(),
        /// The file of the passwords, one a line.
        password_file: Spanned<String> = Spanned::without_location(String::new()),
    }
}

/// The keys of one section.
#[derive(Clone, Copy)]
pub(crate) struct ExposureKeys<'a> {
    pub(crate) allow_remote: bool,
    pub(crate) tls: Option<&'a Spanned<ServerTlsSection>>,
    pub(crate) auth: Option<&'a Spanned<AuthSection>>,
}

impl ExposureKeys<'_> {
    /// Returns the settings. Invalid keys are left out: [`check`](Self::check) finds them.
    pub(crate) fn settings(&self) -> Exposure {
        let path = |path: &Spanned<String>| PathBuf::from(&path.value);
        Exposure {
            allow_remote: self.allow_remote,
            tls: self.tls.map(|tls| ServerTls {
                certificate: path(&tls.certificate),
                key: path(&tls.key),
                client_ca: tls.client_ca.as_ref().map(path),
            }),
            auth: self
                .auth
                .and_then(|auth| match (&auth.bearer_token_file, &auth.basic) {
                    (Some(file), _) => Some(AuthConfig::Bearer {
                        token_file: path(file),
                    }),
                    (None, Some(basic)) => Some(AuthConfig::Basic {
                        user: basic.user.clone(),
                        password_file: path(&basic.password_file),
                    }),
                    (None, None) => None,
                }),
        }
    }

    /// Returns the first problem of the keys and of the files that they name.
    ///
    /// # Errors
    /// The place and the problem.
    pub(crate) fn check(&self) -> Result<(), (Location, Problem)> {
        if let Some(tls) = self.tls {
            for (key, path) in [("certificate", &tls.certificate), ("key", &tls.key)] {
                if path.is_empty() {
                    return Err((
                        tls.location,
                        Problem::new(format!("tls has no {key}")).with_remedy("name a PEM file"),
                    ));
                }
            }
        }
        if let Some(auth) = self.auth {
            let problem = match (&auth.bearer_token_file, &auth.basic) {
                (Some(_), Some(_)) => {
                    Some(Problem::new("auth has bearer_token_file and basic").with_remedy("keep one"))
                }
                (None, None) => Some(
                    Problem::new("auth has no credentials")
                        .with_remedy("give bearer_token_file, or basic with user and password_file"),
                ),
                _ => None,
            };
            if let Some(problem) = problem {
                return Err((auth.location, problem));
            }
        }
        self.settings().check_files().map_err(|error| {
            let auth = self.auth.map(|auth| auth.location);
            let tls = self.tls.map(|tls| tls.location);
            let location = match &error {
                NetError::Credentials { .. } | NetError::User { .. } => auth,
                _ => tls,
            };
            (location.unwrap_or_default(), net_problem(&error))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn invalid_exposure_keys_are_reported_with_their_location() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        fs::write(&token, "secret").unwrap();
        let token = token.display().to_string();
        let location = Location {
            line: 3,
            column: 5,
            ..Location::default()
        };
        let auth = |bearer: Option<&str>, user: Option<&str>| Spanned {
            value: AuthSection {
                bearer_token_file: bearer.map(|file| Spanned::without_location(file.to_owned())),
                basic: user.map(|user| {
                    Spanned::without_location(BasicSection {
                        user: user.to_owned(),
                        password_file: Spanned::without_location(token.clone()),
                    })
                }),
            },
            location,
        };
        let check = |auth: &Spanned<AuthSection>| {
            ExposureKeys {
                allow_remote: false,
                tls: None,
                auth: Some(auth),
            }
            .check()
        };
        assert_eq!(check(&auth(Some(&token), None)), Ok(()));
        assert_eq!(check(&auth(None, Some("prometheus"))), Ok(()));
        for (auth, problem) in [
            (auth(None, None), "no credentials"),
            (auth(Some(&token), Some("a")), "keep one"),
            (auth(Some("/nowhere"), None), "cannot use /nowhere"),
            (auth(None, Some("")), "a user name is not empty"),
        ] {
            let (place, found) = check(&auth).unwrap_err();
            assert!(
                place == location && found.to_string().contains(problem),
                "{found}"
            );
        }
        let tls = Spanned {
            value: ServerTlsSection::default(),
            location,
        };
        let keys = ExposureKeys {
            allow_remote: false,
            tls: Some(&tls),
            auth: None,
        };
        assert_eq!(
            keys.check(),
            Err((
                location,
                Problem::new("tls has no certificate").with_remedy("name a PEM file")
            ))
        );
    }
}
