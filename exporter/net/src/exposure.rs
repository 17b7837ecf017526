//! Who can reach a listener, and how they prove who they are.

use std::net::SocketAddr;

use crate::{AuthConfig, NetError, ServerTls};

/// The settings of a listener's exposure. The default is plain and for this machine alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Allows an address that other machines can reach, without TLS and without authentication.
    pub allow_remote: bool,
    /// TLS of TCP connections. A Unix socket has none: its permissions decide who connects.
    pub tls: Option<ServerTls>,
    /// Authentication of every request, on every address.
    pub auth: Option<AuthConfig>,
}

impl Exposure {
    /// Checks that a TCP address is meant to be reached by those who can reach it.
    ///
    /// # Errors
    /// An address that other machines can reach without TLS, authentication or `allow_remote`.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), NetError> {
        let is_exposed = !address.ip().is_loopback();
        if is_exposed && !self.allow_remote && self.tls.is_none() && self.auth.is_none() {
            return Err(NetError::Remote { address });
        }
        Ok(())
    }

    /// Checks that the files can be used.
    ///
    /// # Errors
    /// The first file that cannot.
    pub fn check_files(&self) -> Result<(), NetError> {
        if let Some(tls) = &self.tls {
            tls.read(&[])?;
        }
        if let Some(auth) = &self.auth {
            auth.read()?;
        }
        Ok(())
    }

    /// Returns whether clients prove who they are: by a certificate or by the credentials of their requests.
    pub fn authenticates(&self) -> bool {
        self.auth.is_some() || self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exposed_address_needs_tls_authentication_or_permission() {
        let plain = Exposure::default();
        let [local, remote] = ["127.0.0.1:1", "0.0.0.0:1"].map(|text| text.parse().unwrap());
        assert!(plain.check_address(local).is_ok());
        let refused = plain.check_address(remote).unwrap_err().to_string();
        assert!(refused.contains("allow_remote: true"), "{refused}");
        let tls = ServerTls {
            certificate: "c".into(),
            key: "k".into(),
            client_ca: None,
        };
        let auth = AuthConfig::Bearer {
            token_file: "t".into(),
        };
        for allowed in [
            Exposure {
                allow_remote: true,
                ..plain.clone()
            },
            Exposure {
                tls: Some(tls.clone()),
                ..plain.clone()
            },
            Exposure {
                auth: Some(auth.clone()),
                ..plain.clone()
            },
        ] {
            assert!(allowed.check_address(remote).is_ok(), "{allowed:?}");
        }
        let with = |tls: Option<ServerTls>, auth: Option<AuthConfig>| Exposure {
            tls,
            auth,
            ..plain.clone()
        };
        let mutual = ServerTls {
            client_ca: Some("ca".into()),
            ..tls.clone()
        };
        assert!(!with(Some(tls), None).authenticates());
        assert!(with(Some(mutual), None).authenticates());
        assert!(with(None, Some(auth)).authenticates());
    }
}
