//! The network of Pulsetrain: the server side of every listener (addresses, TLS, authentication, and limits on connections), and
//! [`client`], the client of every endpoint. [`server`] is the HTTP server on which the parts of the program mount their routes,
//! [`grpc`] has the codec of both sides.
//!
//! A server declares an [`Exposure`] (who may connect, and how clients authenticate) and opens a [`Guard`] from it.
//! [`accept()`] accepts the connections of a [`Listener`], performs the TLS handshake, and passes each [`ServerStream`]
//! to the server with its [`Admission`]. The server calls [`Guard::authorize`] and [`Guard::check_host`] for every
//! request.
//!
//! ```text
//! Listener ──> ConnectionSlots (served, refused, closed) ──> TLS handshake ──> server ──> Guard::authorize ──> answer
//! ```
//!
//! Certificates, keys, tokens and passwords are files. [`Guard::watch`] checks them every second and reloads the files
//! that changed. If a new file cannot be used, the old content remains in use and the error is reported once.

mod accept;
mod address;
mod auth;
#[cfg(feature = "client")]
pub mod client;
mod connection_slots;
mod error;
mod exposure;
#[cfg(feature = "grpc")]
pub mod grpc;
mod guard;
mod host;
mod listener;
mod pem;
#[cfg(feature = "server")]
pub mod server;
mod stream;
mod tls;
mod unix_socket;
mod watched_files;

pub use accept::{Admission, accept};
pub use address::{ListenAddress, ListenAddressError};
pub use auth::{AuthConfig, Unauthenticated};
pub use connection_slots::ConnectionSlots;
pub use error::NetError;
pub use exposure::Exposure;
pub use guard::{Alpn, Guard, Report};
pub use host::ForeignHost;
pub use listener::Listener;
pub use stream::ServerStream;
pub use tls::ServerTls;
