//! Our endpoint, running in this process on a free port.

use std::{net::SocketAddr, path::Path};

use pulsetrain_net::ListenAddress;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, CancellationToken, Delivery, Sink};
use pulsetrain_prometheus::{PrometheusConfig, PrometheusSink};
use pulsetrain_tests::http::request;
use tokio::runtime::Runtime;

/// A running endpoint, which stops when it is dropped.
pub(crate) struct Endpoint {
    runtime: Runtime,
    sink: PrometheusSink,
    address: Option<SocketAddr>,
    stop: CancellationToken,
}

impl Endpoint {
    pub(crate) fn start(resource_labels: &[&str]) -> Self {
        Self::start_with(PrometheusConfig {
            resource_labels: resource_labels.iter().map(|key| (*key).to_owned()).collect(),
            ..PrometheusConfig::default()
        })
    }

    /// Starts an endpoint with these settings, except for the port.
    pub(crate) fn start_with(config: PrometheusConfig) -> Self {
        Self::serve(&PrometheusConfig {
            listen: "127.0.0.1:0".parse().expect("an address"),
            ..config
        })
    }

    /// Starts an endpoint on a Unix socket.
    pub(crate) fn start_on(socket: &Path) -> Self {
        Self::serve(&PrometheusConfig {
            listen: ListenAddress::Unix(socket.to_owned()),
            ..PrometheusConfig::default()
        })
    }

    fn serve(config: &PrometheusConfig) -> Self {
        let runtime = Runtime::new().expect("a runtime can be made");
        let (sink, stop) = (PrometheusSink::new(config), CancellationToken::new());
        let server = config
            .bind(sink.store(), Vec::new())
            .expect("a free port can be bound");
        let address = server.local_addr();
        runtime.spawn(server.run(stop.clone()));
        Self {
            runtime,
            sink,
            address,
            stop,
        }
    }

    pub(crate) fn address(&self) -> String {
        self.tcp().to_string()
    }

    pub(crate) fn port(&self) -> u16 {
        self.tcp().port()
    }

    fn tcp(&self) -> SocketAddr {
        self.address.expect("the endpoint is on TCP")
    }

    /// Returns the sink of the endpoint.
    pub(crate) fn sink(&mut self) -> &mut PrometheusSink {
        &mut self.sink
    }

    /// Delivers OTLP metrics; panics unless every point is accepted.
    pub(crate) fn take(&mut self, otlp: &[u8]) {
        let batch = Batch::new(Signal::Metrics, 1, otlp.to_vec());
        let delivery = self.runtime.block_on(self.sink.deliver(&batch));
        assert_eq!(delivery, Delivery::Delivered);
    }

    /// Delivers OTLP metrics, and returns the message about the rejected ones.
    pub(crate) fn refused(&mut self, otlp: &[u8]) -> String {
        let batch = Batch::new(Signal::Metrics, 1, otlp.to_vec());
        match self.runtime.block_on(self.sink.deliver(&batch)) {
            Delivery::Partial { problem, .. } => problem.to_string(),
            other => panic!("nothing is refused: {other:?}"),
        }
    }

    /// Returns the page for a client with this `Accept`.
    pub(crate) fn page(&self, accept: &str) -> Vec<u8> {
        let accept = format!("Accept: {accept}\r\n");
        let answer = request(self.port(), "GET", "/metrics", &accept, &[]);
        answer.expect("the endpoint answers").1
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
