//! The HTTP server in front of the page.

use std::net::SocketAddr;

use pulsetrain_pipeline::Stop;
use tokio::net::TcpListener;

use super::{ExtraFamilies, PrometheusConfig, PrometheusStore};
use crate::SinkError;

/// Serves the page over HTTP/1.1.
pub struct PrometheusServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl PrometheusServer {
    /// Opens the port. Port 0 is a free one; [`local_addr`](Self::local_addr) says which.
    pub async fn bind(
        config: &PrometheusConfig,
        _store: PrometheusStore,
        _extra: Vec<Box<dyn ExtraFamilies>>,
    ) -> Result<Self, SinkError> {
        config.check()?;
        let listen = |source| SinkError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self { listener, address })
    }

    /// Where the server listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is raised; pages that are being read then get a short while to end.
    pub async fn run(self, stop: Stop) {
        let _ = &self.listener;
        stop.wait().await;
    }
}
