//! A server under test, and a client that reads raw responses.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{
        Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
        number_data_point,
    },
};
use prost::Message;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, CancellationToken, Delivery, Sink};
use pulsetrain_prometheus::{ExtraFamilies, PrometheusConfig, PrometheusSink};
use tokio::task::JoinHandle;

/// A server on a free port, with its sink.
pub(crate) struct Site {
    pub(crate) sink: PrometheusSink,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    server: JoinHandle<()>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Site {
    pub(crate) async fn open(extra: Vec<Box<dyn ExtraFamilies>>) -> Self {
        let config = free_port();
        let sink = PrometheusSink::new(&config);
        let server = config.bind(sink.store(), extra).expect("a free port");
        let stop = CancellationToken::new();
        Self {
            sink,
            address: server.local_addr().expect("a TCP address"),
            server: tokio::spawn(server.run(stop.clone())),
            stop,
        }
    }

    /// Adds `series` series of one gauge, each with `value`.
    pub(crate) async fn fill(&mut self, name: &str, series: usize, value: f64) {
        assert_eq!(
            self.sink.deliver(&gauge(name, series, value)).await,
            Delivery::Delivered
        );
    }

    /// Returns the response to `GET path` with these header lines.
    pub(crate) async fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask("GET", path, headers).await
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        let address = self.address;
        let request = format!("{method} {path} HTTP/1.0\r\n{headers}\r\n");
        tokio::task::spawn_blocking(move || ask(address, &request))
            .await
            .expect("a client that does not panic")
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.server.await.expect("a server that does not panic");
    }
}

impl Answer {
    /// Returns the value of a header, if there is one.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }
}

/// Returns the default settings with an unused port.
pub(crate) fn free_port() -> PrometheusConfig {
    PrometheusConfig {
        listen: "127.0.0.1:0".parse().expect("an address"),
        ..PrometheusConfig::default()
    }
}

fn ask(address: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a timeout can be set");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server answers");
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("an answer has a head");
    let head = String::from_utf8(answer[..end].to_vec()).expect("a head is text");
    Answer {
        status: head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a head has a status"),
        head,
        body: answer[end + 4..].to_vec(),
    }
}

fn gauge(name: &str, series: usize, value: f64) -> Batch {
    let point = |number: usize| NumberDataPoint {
        attributes: vec![KeyValue {
            key: "number".to_owned(),
            value: Some(AnyValue {
                value: Some(any_value::Value::StringValue(number.to_string())),
            }),
            ..KeyValue::default()
        }],
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    };
    let metric = Metric {
        name: name.to_owned(),
        data: Some(Data::Gauge(Gauge {
            data_points: (0..series).map(point).collect(),
        })),
        ..Metric::default()
    };
    let scope = ScopeMetrics {
        metrics: vec![metric],
        ..ScopeMetrics::default()
    };
    let data = MetricsData {
        resource_metrics: vec![ResourceMetrics {
            scope_metrics: vec![scope],
            ..ResourceMetrics::default()
        }],
    };
    Batch::new(Signal::Metrics, series as u32, data.encode_to_vec())
}
