//! The OTLP receiver: what SDKs and Collectors send over gRPC or HTTP goes through the door as it came.
//!
//! `server` takes connections and `activity` finds the idle ones, `bodies` reads bodies, `grpc` and `http` are the two ways
//! to ask, and `inlet` checks a message and puts it through.
//! While a required sink has no room a client is asked to send again, so that a burst waits where it began.

mod activity;
mod bodies;
mod grpc;
mod http;
mod inflate;
mod inlet;
mod refusal;
mod server;

use std::{
    fmt::Display,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use pulsetrain_net::{Alpn, Exposure, Guard, ListenAddress, Listener, NetError, Places};
use pulsetrain_otlp::limits::Limits;
use pulsetrain_pipeline::{BoxFuture, Door, Source, Stage, Stop, ThrottledLog};

use self::inlet::Inlet;

/// What the receiver allows itself and its clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Where it listens; every address takes both gRPC and HTTP. Port 0 is a free one.
    pub listen: Vec<ListenAddress>,
    /// Who may reach the addresses, by TLS, with which credentials.
    pub exposure: Exposure,
    /// The permissions of Unix sockets. A client needs the right to write.
    pub socket_mode: u32,
    /// The most connections at one time; the requests of further ones are refused.
    pub max_connections: usize,
    /// The longest message, before and after decompression. The bytes of eight such messages
    /// at most are in memory at a time.
    pub max_message: usize,
}

impl Default for ReceiverConfig {
    /// The two ports that OTLP has, on this machine alone; 16 MiB a message.
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
    /// Whether it makes sense, without touching the world.
    ///
    /// # Errors
    /// An address that other machines can reach, where that is not allowed.
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
    /// Opens the ports; from then on clients can connect, and are answered when it runs. `tell` is told what its user may
    /// want to know, from any thread.
    ///
    /// # Errors
    /// As [`ReceiverConfig::check`], an address that cannot be listened on, a file that cannot be used.
    pub fn bind(
        config: ReceiverConfig,
        tell: impl Fn(&dyn Display) + Send + Sync + 'static,
    ) -> Result<Self, NetError> {
        config.check()?;
        let log = ThrottledLog::new(tell);
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

    /// Passes each message through a stage of its own before the pipeline sees it. The stage holds no items.
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

    fn run(self: Box<Self>, door: Door, stop: Stop) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move {
            let limits = self.config.limits();
            let inlet = Inlet::new(door, limits, self.stage, self.guard.clone(), self.log);
            let places = Places::new(self.config.max_connections);
            server::run(self.listeners, inlet, self.guard, places, stop)
                .await
                .map_err(|error| format!("cannot listen: {error}"))
        })
    }
}
