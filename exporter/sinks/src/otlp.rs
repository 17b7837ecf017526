//! The OTLP sink: posts batches to a receiver as they are, over gRPC, HTTP/protobuf or HTTP/JSON.
//!
//! `config` settles where each signal goes; `transport` is the one HTTP client; `http` and `grpc` each make one attempt and
//! classify its outcome as the OTLP specification says; `answer` and `delay` read what the receiver sent back; `peer` and
//! `advice` word what went wrong.

mod advice;
mod answer;
mod body;
mod config;
mod delay;
mod grpc;
mod host;
mod http;
mod peer;
mod tls;
mod transport;

use pulsetrain_otlp::{Signal, Signals};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Sink};

pub use self::config::{Compression, Identity, NamedFile, OtlpConfig, Protocol, SignalConfig, TlsFiles};
pub use self::host::{HostAnswer, ask_host};
use self::{grpc::GrpcExporter, http::HttpExporter, transport::Transport};
use crate::SinkError;

/// The name of this exporter, in the form that the OTLP specification asks for, and the program's own.
const USER_AGENT: &str = concat!(
    "OTel-OTLP-Exporter-Rust/",
    env!("CARGO_PKG_VERSION"),
    " pulsetrain/",
    env!("CARGO_PKG_VERSION")
);

/// Sends batches to an OTLP receiver.
///
/// One delivery is one request. Redirects are not followed and proxies are not used.
pub struct OtlpSink {
    name: String,
    signals: Signals,
    /// Signals that the user has asked for by name.
    requested: Signals,
    exporters: Vec<(Signal, Exporter)>,
}

enum Exporter {
    Grpc(GrpcExporter),
    Http(HttpExporter),
}

impl OtlpSink {
    /// Reads the certificates that `config` names and makes the clients; the first connection is made by the first delivery.
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
        })
    }

    async fn export(&mut self, batch: &Batch) -> Delivery {
        let signal = batch.signal();
        let Some((_, exporter)) = self.exporters.iter_mut().find(|(known, _)| *known == signal) else {
            return Delivery::Refused {
                message: format!("{} sends no {signal}", self.name),
            };
        };
        match exporter.export(batch).await {
            Delivery::Unsupported { message } if self.requested.contains(signal) => {
                Delivery::Refused { message }
            }
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

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(self.export(batch))
    }
}

impl Exporter {
    fn new(signal: Signal, config: &SignalConfig) -> Result<Self, SinkError> {
        let transport = Transport::new(config)?;
        Ok(match config.protocol {
            Protocol::Grpc => Self::Grpc(GrpcExporter::new(transport, signal, config)),
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                Self::Http(HttpExporter::new(transport, signal, config))
            }
        })
    }

    async fn export(&mut self, batch: &Batch) -> Delivery {
        match self {
            Self::Grpc(exporter) => exporter.export(batch).await,
            Self::Http(exporter) => exporter.export(batch).await,
        }
    }
}
