//! The address of a listener: a TCP address or the path of a Unix socket.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

/// A TCP address such as `127.0.0.1:4317`, or `unix:/run/pulsetrain/otlp.sock`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListenAddress {
    /// A TCP address; port 0 picks a free port.
    Tcp(SocketAddr),
    /// The absolute path of a Unix socket.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Returns the TCP address, or `None` for a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// The error of a text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenAddressError {
    /// The text is neither a TCP address nor a socket.
    #[error("{0:?} is not an address")]
    Address(String),
    /// The path of the socket is not absolute.
    #[error("{0:?} does not name a socket")]
    Socket(String),
}

impl ListenAddressError {
    /// Returns the remedy; the message itself is the cause only.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Address(_) => "write one with its port, like 127.0.0.1:4317, or unix:/path/to/socket",
            Self::Socket(_) => "write an absolute path, like unix:/run/pulsetrain/otlp.sock",
        }
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    /// Parses `HOST:PORT` with a numeric host, `unix:/PATH` or, as gRPC writes it, `unix:///PATH`.
    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        let Some(path) = text.strip_prefix("unix:") else {
            let address = text.parse().map(Self::Tcp);
            return address.map_err(|_| ListenAddressError::Address(text.to_owned()));
        };
        let path = path.strip_prefix("//").unwrap_or(path);
        if Path::new(path).is_absolute() && Path::new(path).file_name().is_some() {
            return Ok(Self::Unix(path.into()));
        }
        Err(ListenAddressError::Socket(text.to_owned()))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_round_trip_and_invalid_ones_are_rejected_with_advice() {
        for text in ["127.0.0.1:4317", "[::1]:0", "unix:/run/otlp.sock"] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        let grpc: ListenAddress = "unix:///run/otlp.sock".parse().unwrap();
        assert_eq!(grpc, ListenAddress::Unix("/run/otlp.sock".into()));
        for (text, advice) in [
            ("4317", "with its port"),
            ("localhost", "with its port"),
            ("unix:otlp.sock", "an absolute path"),
            ("unix:", "an absolute path"),
            ("unix:/", "an absolute path"),
        ] {
            assert!(
                text.parse::<ListenAddress>()
                    .unwrap_err()
                    .remedy()
                    .contains(advice),
                "{text}"
            );
        }
    }
}
