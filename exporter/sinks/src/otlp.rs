//! The OTLP sink: sends batches to a receiver over gRPC, HTTP/protobuf or HTTP/JSON.
//!
//! `config` resolves the endpoint and settings of each signal, and `client` opens its `net::client`. `http` and `grpc` make one
//! attempt, and `verdict` classifies its outcome. `answer` and `delay` decode the response, `peer` and `advice` word
//! errors.

pub(crate) mod advice;
mod answer;
mod client;
mod config;
mod delay;
mod grpc;
mod host;
mod http;
mod peer;
mod verdict;

use pulsetrain_net::client::Client;
use pulsetrain_otlp::{Signal, Signals};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink};

pub use self::config::{OtlpConfig, OtlpSettings, Protocol, SignalConfig};
pub use self::host::{HostAnswer, ask_host};
pub(crate) use self::{
    answer::{is_web_page, plain},
    client::origin,
    peer::Peer,
    verdict::Verdict,
};
use self::{grpc::GrpcExporter, http::HttpExporter};
use crate::SinkError;

/// The user agent: this exporter in the form of the OTLP specification, then the program.
const USER_AGENT: &str = concat!(
    "OTel-OTLP-Exporter-Rust/",
    env!("CARGO_PKG_VERSION"),
    " pulsetrain/",
    env!("CARGO_PKG_VERSION")
);

/// Sends batches to an OTLP receiver.
///
/// One delivery is one request. Forks share their connections. Redirects are not followed.
#[derive(Clone)]
pub struct OtlpSink {
    name: String,
    signals: Signals,
    /// The signals that the user has selected by name.
    requested: Signals,
    exporters: Vec<(Signal, Exporter)>,
    max_request_bytes: [usize; Signal::ALL.len()],
}

#[derive(Clone)]
enum Exporter {
    Grpc(GrpcExporter),
    Http(HttpExporter),
}

impl OtlpSink {
    /// Reads the certificates of `config` and creates the clients. The first delivery opens the first
    /// connection.
    pub fn new(config: &OtlpConfig) -> Result<Self, SinkError> {
        let exporter = |signal| Ok((signal, Exporter::new(signal, config.signal(signal))?));
        Ok(Self {
            name: config.name(),
            signals: config.signals(),
            requested: config.requested(),
            exporters: config
                .signals()
                .iter()
                .map(exporter)
                .collect::<Result<_, SinkError>>()?,
            max_request_bytes: Signal::ALL.map(|signal| config.signal(signal).max_request_bytes),
        })
    }

    async fn export(&mut self, batch: &Batch) -> Delivery {
        let signal = batch.signal();
        let Some((_, exporter)) = self.exporters.iter_mut().find(|(known, _)| *known == signal) else {
            return Delivery::Refused(Problem::new(format!("{} sends no {signal}", self.name)));
        };
        match exporter.export(batch).await {
            Delivery::Delivered => match exporter.client().take_file_notice() {
                Some(notice) => Delivery::Partial {
                    rejected: 0,
                    problem: Problem::new(notice),
                },
                None => Delivery::Delivered,
            },
            Delivery::Unsupported(problem) if self.requested.contains(signal) => Delivery::Denied(problem),
            delivery => delivery,
        }
    }
}

impl Sink for OtlpSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn signals(&self) -> Signals {
        self.signals
    }

    fn fork(&self) -> Option<Box<dyn Sink>> {
        Some(Box::new(self.clone()))
    }

    fn max_request_bytes(&self, signal: Signal) -> usize {
        self.max_request_bytes[signal as usize]
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(self.export(batch))
    }
}

impl Exporter {
    fn new(signal: Signal, config: &SignalConfig) -> Result<Self, SinkError> {
        let client = config.client()?;
        Ok(match config.protocol {
            Protocol::Grpc => Self::Grpc(GrpcExporter::new(client, signal, config)),
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                Self::Http(HttpExporter::new(client, signal, config))
            }
        })
    }

    fn client(&self) -> &Client {
        match self {
            Self::Grpc(exporter) => exporter.client(),
            Self::Http(exporter) => exporter.client(),
        }
    }

    async fn export(&mut self, batch: &Batch) -> Delivery {
        match self {
            Self::Grpc(exporter) => exporter.export(batch).await,
            Self::Http(exporter) => exporter.export(batch).await,
        }
    }
}
