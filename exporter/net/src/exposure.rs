//! The exposure of a listener: who can reach it, and how clients authenticate.

use std::net::SocketAddr;

use crate::{AuthConfig, NetError, ServerTls};

/// The settings of a listener's exposure. By default, a listener is unencrypted and reachable from this machine only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Allows an address that other machines can reach without TLS or without authentication.
    pub allow_remote: bool,
    /// TLS of TCP connections. A Unix socket needs none: its permissions decide who can connect.
    pub tls: Option<ServerTls>,
    /// Authentication of every request, on every address.
    pub auth: Option<AuthConfig>,
}

impl Exposure {
    /// Checks that a TCP address is protected from the machines that can reach it.
    ///
    /// # Errors
    /// An address that other machines can reach without both TLS and authentication, unless `allow_remote` is set.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), NetError> {
        let is_protected = self.tls.is_some() && self.authenticates();
        if address.ip().is_loopback() || self.allow_remote || is_protected {
            return Ok(());
        }
        Err(NetError::Remote {
            address,
            missing: match (&self.tls, self.authenticates()) {
                (None, false) => "TLS and authentication",
                (None, true) => "TLS",
                (Some(_), _) => "authentication",
            },
        })
    }

    /// Returns a warning if clients on other machines send their credentials unencrypted to a TCP address.
    pub fn cleartext_warning(&self, address: SocketAddr) -> Option<String> {
        let is_clear = self.auth.is_some() && self.tls.is_none() && !address.ip().is_loopback();
        is_clear.then(|| {
            format!("credentials of clients on other machines travel unencrypted to {address}; set tls")
        })
    }

    /// Checks that the files can be used.
    ///
    /// # Errors
    /// Returns the error of the first file that cannot be used.
    pub fn check_files(&self) -> Result<(), NetError> {
        if let Some(tls) = &self.tls {
            tls.read(&[])?;
        }
        if let Some(auth) = &self.auth {
            auth.read()?;
        }
        Ok(())
    }

    /// Returns whether clients authenticate, by a certificate or by the credentials of their requests.
    pub fn authenticates(&self) -> bool {
        self.auth.is_some() || self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exposed_address_requires_tls_and_authentication_or_explicit_permission() {
        let plain = Exposure::default();
        let [local, remote] = ["127.0.0.1:1", "0.0.0.0:1"].map(|text| text.parse().unwrap());
        assert!(plain.check_address(local).is_ok());
        let tls = ServerTls {
            certificate: "c".into(),
            key: "k".into(),
            client_ca: None,
        };
        let auth = AuthConfig::Bearer {
            token_file: "t".into(),
        };
        let with = |tls: Option<ServerTls>, auth: Option<AuthConfig>| Exposure {
            tls,
            auth,
            ..plain.clone()
        };
        let mutual = ServerTls {
            client_ca: Some("ca".into()),
            ..tls.clone()
        };
        for (refused, missing) in [
            (plain.clone(), "TLS and authentication"),
            (with(Some(tls.clone()), None), "authentication"),
            (with(None, Some(auth.clone())), "TLS"),
        ] {
            let error = refused.check_address(remote).unwrap_err();
            let message = format!("{error}; {}", error.remedy());
            assert!(
                message.contains(&format!("without {missing};")) && message.contains("allow_remote: true"),
                "{message}"
            );
            let allowed = Exposure {
                allow_remote: true,
                ..refused
            };
            assert!(allowed.check_address(remote).is_ok(), "{allowed:?}");
        }
        for protected in [
            with(Some(tls.clone()), Some(auth.clone())),
            with(Some(mutual.clone()), None),
        ] {
            assert!(protected.check_address(remote).is_ok(), "{protected:?}");
            assert_eq!(protected.cleartext_warning(remote), None);
        }
        let clear = with(None, Some(auth.clone()));
        assert!(clear.cleartext_warning(remote).unwrap().contains("set tls"));
        assert_eq!(clear.cleartext_warning(local), None);
        assert!(!with(Some(tls), None).authenticates());
        assert!(with(Some(mutual), None).authenticates());
        assert!(with(None, Some(auth)).authenticates());
    }
}
