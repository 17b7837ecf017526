//! A listening socket.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixListener,
};

use tokio::net::{TcpStream, UnixStream};

use crate::{
    ListenAddress, NetError,
    unix_socket::{self, SocketFile},
};

/// A TCP or Unix socket in the listening state; clients can connect as soon as it is bound.
#[derive(Debug)]
pub struct Listener(Socket);

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// A connection before any handshake.
pub(crate) enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// A listener that is registered with a runtime.
pub(crate) enum AsyncListener {
    Tcp(tokio::net::TcpListener),
    Unix {
        listener: tokio::net::UnixListener,
        _file: SocketFile,
    },
}

impl Listener {
    /// Listens at an address. The file of a Unix socket gets the permissions `unix_mode`.
    ///
    /// # Errors
    /// Returns an error if the address is in use or is not an address of this machine, or if the path cannot be used.
    pub fn bind(address: &ListenAddress, unix_mode: u32) -> Result<Self, NetError> {
        let bound = match address {
            ListenAddress::Tcp(address) => TcpListener::bind(address).map(Socket::Tcp),
            ListenAddress::Unix(path) => {
                unix_socket::bind(path, unix_mode).map(|(listener, file)| Socket::Unix(listener, file))
            }
        };
        let non_blocking = |socket: Socket| {
            match &socket {
                Socket::Tcp(listener) => listener.set_nonblocking(true)?,
                Socket::Unix(listener, _) => listener.set_nonblocking(true)?,
            }
            Ok(Self(socket))
        };
        bound.and_then(non_blocking).map_err(|source| NetError::Listen {
            address: address.clone(),
            source,
        })
    }

    /// Returns the TCP address with its actual port, or `None` for a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match &self.0 {
            Socket::Tcp(listener) => listener.local_addr().ok(),
            Socket::Unix(..) => None,
        }
    }

    pub(crate) fn into_async(self) -> io::Result<AsyncListener> {
        Ok(match self.0 {
            Socket::Tcp(listener) => AsyncListener::Tcp(tokio::net::TcpListener::from_std(listener)?),
            Socket::Unix(listener, file) => AsyncListener::Unix {
                listener: tokio::net::UnixListener::from_std(listener)?,
                _file: file,
            },
        })
    }
}

impl AsyncListener {
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted::Tcp(stream, peer))
            }
            Self::Unix { listener, .. } => Ok(Accepted::Unix(listener.accept().await?.0)),
        }
    }
}
