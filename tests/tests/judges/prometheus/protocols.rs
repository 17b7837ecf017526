//! Every scrape protocol of Prometheus, and a Unix socket: what arrives with each.

use pulsetrain_tests::{Folder, Judge, Prometheus, some_or_return, unix_nanos, wait_until};
use serde_json::json;

use crate::prometheus::{
    endpoint::Endpoint,
    otlp::{attributes, encode},
};

/// The protocols that a job requests, and the format of the answer.
const JOBS: [(&str, Format); 8] = [
    ("PrometheusText0.0.4", Format::Text),
    ("PrometheusText1.0.0", Format::Text),
    ("OpenMetricsText0.0.1", Format::OpenMetrics),
    ("OpenMetricsText1.0.0", Format::OpenMetrics),
    ("PrometheusProto", Format::Protobuf),
    (
        "PrometheusProto, OpenMetricsText1.0.0, PrometheusText0.0.4",
        Format::Protobuf,
    ),
    // The page has no OpenMetrics 2.0, and answers with the next format of the request or with text.
    ("OpenMetricsText2.0.0, OpenMetricsText1.0.0", Format::OpenMetrics),
    ("OpenMetricsText2.0.0", Format::Text),
];

/// The formats of the page; each can hold more than the one above.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    /// Neither exemplars nor native histograms.
    Text,
    /// Exemplars.
    OpenMetrics,
    /// Exemplars and native histograms.
    Protobuf,
}

/// Delivers a gauge, a counter with an exemplar and an exponential histogram.
fn deliver(endpoint: &mut Endpoint) {
    let nanos = unix_nanos();
    let (start, time) = ((nanos - 60_000_000_000).to_string(), nanos.to_string());
    let exemplar = json!({"timeUnixNano": time, "asDouble": 0.7, "filteredAttributes": attributes(&[("train.step", "400")])});
    endpoint.take(&encode(
        &[("service.name", "trainer"), ("service.instance.id", "run-1/0")],
        &[
            json!({"name": "train.loss", "unit": "{loss}", "gauge": {"dataPoints": [{"timeUnixNano": time, "asDouble": 2.5}]}}),
            json!({"name": "train.tokens", "unit": "{token}", "sum": {"aggregationTemporality": 2, "isMonotonic": true,
                "dataPoints": [{"startTimeUnixNano": start, "timeUnixNano": time, "asInt": "4096", "exemplars": [exemplar]}]}}),
            json!({"name": "rl.latency", "unit": "s", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [
                {"startTimeUnixNano": start, "timeUnixNano": time, "count": "100", "sum": 240.0, "scale": 1, "zeroCount": "0",
                 "positive": {"offset": 2, "bucketCounts": ["100"]}}]}}),
        ],
    ));
}

/// Waits until a job has scraped, and checks what it has stored.
fn expect_stored(prometheus: &Prometheus, via: &str, format: Format) {
    let value = |name: &str| prometheus.value(&format!("{name}{{via=\"{via}\"}}"));
    wait_until(&format!("{via} has scraped"), || value("train_loss").is_some());
    assert_eq!(value("train_loss"), Some(2.5), "{via}");
    assert_eq!(value("train_tokens_total"), Some(4096.0), "{via}");
    let exemplars = prometheus.exemplars(&format!("train_tokens_total{{via=\"{via}\"}}"));
    assert_eq!(
        !exemplars.is_empty(),
        format != Format::Text,
        "{via}: {exemplars:?}"
    );
    let is_native = format == Format::Protobuf;
    let count = prometheus.query(&format!("histogram_count(rl_latency_seconds{{via=\"{via}\"}})"));
    assert_eq!(!count.is_empty(), is_native, "{via}: {count:?}");
    if !is_native {
        assert_eq!(value("rl_latency_seconds_count"), Some(100.0), "{via}");
    }
}

#[test]
fn every_scrape_protocol_stores_what_its_format_can_hold() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut endpoint = Endpoint::start(&[]);
    deliver(&mut endpoint);
    let mut text =
        "global: {scrape_interval: 1s, scrape_native_histograms: true}\nscrape_configs:\n".to_owned();
    for (protocols, _) in JOBS {
        text.push_str(&format!(
            "- {{job_name: '{protocols}', honor_labels: true, scrape_protocols: [{protocols}], static_configs: [{{targets: ['{}'], \
             labels: {{via: '{protocols}'}}}}]}}\n",
            endpoint.address()
        ));
    }
    let prometheus = Prometheus::start_configured(&program, &text);
    for (protocols, format) in JOBS {
        expect_stored(&prometheus, protocols, format);
    }
    let errors = prometheus.scrape_errors();
    assert!(errors.iter().all(String::is_empty), "{errors:?}");
}

#[test]
fn page_on_a_unix_socket_is_scraped() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let socket = folder.path("metrics.sock");
    let mut endpoint = Endpoint::start_on(&socket);
    deliver(&mut endpoint);
    let text = format!(
        "global: {{scrape_interval: 1s, scrape_native_histograms: true}}\nscrape_configs: [{{job_name: ours, honor_labels: true, \
         static_configs: [{{targets: [localhost], labels: {{via: socket, __unix_socket__: '{}'}}}}]}}]\n",
        socket.display()
    );
    let prometheus = Prometheus::start_configured(&program, &text);
    expect_stored(&prometheus, "socket", Format::Protobuf);
    assert_eq!(
        prometheus.targets(),
        [("ours".to_owned(), "up".to_owned(), String::new())]
    );
}
