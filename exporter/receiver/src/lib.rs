//! The OTLP receiver: passes messages of SDKs and Collectors over gRPC or HTTP to the pipeline, unchanged.
//!
//! `server` accepts connections and `activity` closes idle ones. `bodies` reads bodies, `grpc` and `http` speak the two protocols,
//! and `ingest` checks a message and sends it to the pipeline. While a required sink has no room, clients are asked to retry: a
//! burst waits at its sender.

mod activity;
mod bodies;
mod decompress;
mod grpc;
mod http;
mod ingest;
mod rejection;
mod server;

use std::{
    fmt::Display,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use pulsetrain_net::{Alpn, ConnectionSlots, Exposure, Guard, ListenAddress, Listener, NetError};
use pulsetrain_otlp::limits::Limits;
use pulsetrain_pipeline::{BoxFuture, CancellationToken, Ingress, Problem, Source, Stage, ThrottledLog};

use self::ingest::IngestHandler;

/// The configuration of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// The listening addresses. Each accepts both gRPC and HTTP. Port 0 is a free port.
    pub listen: Vec<ListenAddress>,
    /// TLS, authentication and the addresses that may be reachable from other machines.
    pub exposure: Exposure,
    /// The permissions of Unix sockets. A client needs write permission.
    pub socket_mode: u32,
    /// The most concurrent connections. Requests of further ones are rejected.
    pub max_connections: usize,
    /// The longest message in bytes, before and after decompression. At most eight such messages are in memory at a time.
    pub max_message: usize,
}

impl Default for ReceiverConfig {
    /// The two default ports of OTLP on the loopback address, 16 MiB a message.
    fn default() -> Self {
        Self {
            listen: [4317, 4318]
                .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())
                .to_vec(),
            exposure: Exposure::default(),
            socket_mode: 0o660,
            max_connections: 256,
            max_message: 16 << 20,
        }
    }
}

/// Receives OTLP until it is stopped.
pub struct ReceiverSource {
    config: ReceiverConfig,
    listeners: Vec<Listener>,
    guard: Guard,
    log: ThrottledLog,
    stage: Option<Box<dyn Stage>>,
}

impl ReceiverConfig {
    /// Checks the configuration without opening anything.
    ///
    /// # Errors
    /// An address that other machines can reach without permission.
    pub fn check(&self) -> Result<(), NetError> {
        for address in self.listen.iter().filter_map(ListenAddress::tcp) {
            self.exposure.check_address(address)?;
        }
        Ok(())
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
    /// Binds the addresses. Clients can connect from then on and get answers once the source runs. `notify` receives messages for the
    /// user from any thread.
    ///
    /// # Errors
    /// The errors of [`ReceiverConfig::check`], an address that cannot be bound, a file that cannot be used.
    pub fn bind(
        config: ReceiverConfig,
        notify: impl Fn(&dyn Display) + Send + Sync + 'static,
    ) -> Result<Self, NetError> {
        config.check()?;
        let log = ThrottledLog::new(notify);
        let report = log.clone();
        let report = Arc::new(move |kind: &str, event: &dyn Display| report.report(kind, event));
        let guard = Guard::open(&config.exposure, Alpn::Http2, report)?;
        let bind = |address: &ListenAddress| Listener::bind(address, config.socket_mode);
        let listeners = config.listen.iter().map(bind);
        let listeners = listeners.collect::<Result<_, NetError>>()?;
        for address in config.listen.iter().filter_map(ListenAddress::tcp) {
            if let Some(warning) = config.exposure.cleartext_warning(address) {
                log.report(&warning, &warning);
            }
        }
        Ok(Self {
            listeners,
            config,
            guard,
            log,
            stage: None,
        })
    }

    /// Passes each message through a stage of this receiver before the pipeline. The stage must not hold items back.
    #[must_use]
    pub fn through(self, stage: Box<dyn Stage>) -> Self {
        Self {
            stage: Some(stage),
            ..self
        }
    }

    /// Returns the TCP addresses, in the order of the configuration.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(Listener::local_addr).collect()
    }
}

impl Source for ReceiverSource {
    fn name(&self) -> &str {
        "otlp receiver"
    }

    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        Box::pin(async move {
            let limits = self.config.limits();
            let handler = IngestHandler::new(ingress, limits, self.stage, self.guard.clone(), self.log);
            let places = ConnectionSlots::new(self.config.max_connections);
            server::run(self.listeners, handler, self.guard, places, stop)
                .await
                .map_err(|error| Problem::new(format!("cannot listen: {error}")))
        })
    }
}
