//! The OTLP receiver: what SDKs and Collectors send over gRPC or HTTP goes through the door as it came.
//!
//! `server` takes connections and `activity` finds the idle ones, `bodies` reads bodies, `grpc` and `http` are the two ways
//! to ask, `inlet` checks a message and puts it through, and `renames` gives our names to what Tunix sends under its own.
//! While a required sink has no room a client is asked to send again, so that a burst waits where it began.

mod activity;
mod bodies;
mod grpc;
mod http;
mod inflate;
mod inlet;
mod notices;
mod refusal;
mod renames;
mod rest;
mod server;

use std::{
    fmt::Display,
    net::{Ipv4Addr, SocketAddr, TcpListener},
};

use pulsetrain_otlp::limits::Limits;
use pulsetrain_pipeline::{BoxFuture, Door, Source, Stop};

use self::{inlet::Inlet, notices::Notices, renames::Renamer};
use crate::SourceError;

/// What the receiver allows itself and its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Where it listens; every address takes both gRPC and HTTP. Port 0 is a free one.
    pub listen: Vec<SocketAddr>,
    /// Whether an address may be one that other machines can reach.
    pub allow_remote: bool,
    /// The longest message, before and after decompression. The bytes of eight such messages
    /// at most are in memory at a time.
    pub max_message: usize,
    /// Whether the metrics that Tunix sends under its own names get ours.
    pub rename_tunix: bool,
}

impl Default for ReceiverConfig {
    /// The two ports that OTLP has, on this machine alone; 16 MiB a message; Tunix under our names.
    fn default() -> Self {
        Self {
            listen: [4317, 4318]
                .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
                .to_vec(),
            allow_remote: false,
            max_message: 16 << 20,
            rename_tunix: true,
        }
    }
}

/// Receives OTLP until it is stopped.
pub struct ReceiverSource {
    config: ReceiverConfig,
    listeners: Vec<TcpListener>,
    notices: Notices,
}

impl ReceiverConfig {
    /// Whether it makes sense, without touching the world.
    ///
    /// # Errors
    /// An address that other machines can reach, where that is not allowed.
    pub fn check(&self) -> Result<(), SourceError> {
        let is_remote = |address: &&SocketAddr| !self.allow_remote && !address.ip().is_loopback();
        match self.listen.iter().find(is_remote) {
            Some(&address) => Err(SourceError::Remote { address }),
            None => Ok(()),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            bytes: self.max_message,
            inflated_bytes: self.max_message,
            ..Limits::default()
        }
    }
}

impl ReceiverSource {
    /// Opens the ports; from then on clients can connect, and are answered when it runs. `tell` is told what its user may
    /// want to know, from any thread.
    ///
    /// # Errors
    /// As [`ReceiverConfig::check`], and an address that cannot be listened on.
    pub fn bind(
        config: ReceiverConfig,
        tell: impl Fn(&dyn Display) + Send + Sync + 'static,
    ) -> Result<Self, SourceError> {
        config.check()?;
        let open = |&address: &SocketAddr| {
            let listen = |source| SourceError::Listen { address, source };
            let listener = TcpListener::bind(address).map_err(listen)?;
            listener.set_nonblocking(true).map_err(listen)?;
            Ok(listener)
        };
        Ok(Self {
            listeners: config.listen.iter().map(open).collect::<Result<_, _>>()?,
            config,
            notices: Notices::new(tell),
        })
    }

    /// Where it listens, in the order of the configuration.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let addresses = self.listeners.iter().map(TcpListener::local_addr);
        addresses.filter_map(Result::ok).collect()
    }
}

impl Source for ReceiverSource {
    fn name(&self) -> &str {
        "otlp receiver"
    }

    fn run(self: Box<Self>, door: Door, stop: Stop) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move {
            let renamer = (self.config.rename_tunix)
                .then(|| Renamer::start(self.notices.clone()))
                .transpose()
                .map_err(|error| format!("cannot start a thread: {error}"))?;
            let inlet = Inlet::new(door, self.config.limits(), renamer, self.notices);
            server::run(self.listeners, inlet, stop)
                .await
                .map_err(|error| format!("cannot listen: {error}"))
        })
    }
}
