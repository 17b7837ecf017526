//! Errors of a listener before the first connection. No message repeats a token, a password or a key.

use std::{borrow::Cow, error::Error, io, net::SocketAddr, path::PathBuf};

use crate::ListenAddress;

/// Why a server cannot listen as it is configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// Other machines can reach the address, but the configuration does not allow that.
    #[error("{address} can be reached by other machines without {missing}")]
    Remote {
        /// The address.
        address: SocketAddr,
        /// The protection that the address lacks.
        missing: &'static str,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: ListenAddress,
        /// The system's error.
        source: io::Error,
    },
    /// A PEM file cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected content.
        content: &'static str,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The PEM files can be read, but they do not make a TLS server.
    #[error("cannot serve TLS with {}: {source}", certificate.display())]
    Tls {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The reason.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file of tokens or passwords cannot be used.
    #[error("cannot use {}: {problem}", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// `token` or `password`.
        content: &'static str,
        /// The reason.
        problem: String,
    },
    /// The user name of basic authentication cannot be sent.
    #[error("the user {user:?} cannot be used")]
    User {
        /// The name.
        user: String,
    },
}

impl NetError {
    /// Returns the remedy; the message itself is the cause only.
    pub fn remedy(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Remote { .. } => {
                "set tls and auth (or tls with client_ca), listen on 127.0.0.1, or allow it with allow_remote: true"
            }
            Self::Listen { address, .. } => match address {
                ListenAddress::Tcp(_) => "end the program that listens there, or choose another address",
                ListenAddress::Unix(_) => {
                    "name a socket in a directory that exists and is writable, and that no other program listens on"
                }
            },
            Self::Pem { content, .. } => return format!("give a PEM file with {content}").into(),
            Self::Tls { .. } => "give a certificate chain and the private key of its first certificate",
            Self::Credentials { content, .. } => {
                return format!("write one {content} on a line of its own").into();
            }
            Self::User { .. } => "a user name is not empty and has no colon",
        })
    }
}
