//! The remote-write sink: posts the bodies of `RemoteWriteEncoder`, for stores that accept Prometheus' protocol and not
//! OTLP (<https://prometheus.io/docs/specs/prw/remote_write_spec/>, version 1.0).

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Uri,
    header::{CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT},
    response,
};
use http_body_util::Full;
use pulsetrain_net::client::{Client, retry_after};
use pulsetrain_otlp::{Signal, Signals};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink};
use pulsetrain_prometheus::{PrometheusConfig, RemoteWriteEncoder};

use crate::{
    OtlpConfig, SignalConfig, SinkError,
    otlp::{Peer, Protocol, Verdict, advice, is_web_page, origin, plain},
};

const TOO_OLD: &str = "the receiver accepts no samples that old: set storage.tsdb.out_of_order_time_window in Prometheus, or \
                       limits.out_of_order_time_window in Mimir, above their age";
const NO_RECEIVER: &str =
    "check the path (/api/v1/write) and start Prometheus with --web.enable-remote-write-receiver";

/// Sends every point of its batches to a remote-write 1.0 endpoint.
pub struct RemoteWriteSink {
    name: String,
    encoder: RemoteWriteEncoder,
    client: Client,
    peer: Peer,
    url: Uri,
    headers: HeaderMap,
}

impl RemoteWriteSink {
    /// Returns a sink that posts to `url`, the complete address of the endpoint. Headers, timeout and
    /// certificates come from the OTLP variables, as for an OTLP target at that address.
    ///
    /// # Errors
    /// An invalid address or variable, or certificates that cannot be used.
    pub fn new(
        url: &str,
        config: &PrometheusConfig,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SinkError> {
        let address: Uri = url.parse().map_err(|_| not_an_address(url))?;
        if address.path().len() < 2 {
            return Err(not_an_address(url));
        }
        let otlp = OtlpConfig::from_url(url, variable)?;
        let settings = SignalConfig {
            protocol: Protocol::HttpProtobuf,
            endpoint: address.clone(),
            ..otlp.signal(Signal::Metrics).clone()
        };
        let shown = format!("{}{}", origin(&address), address.path());
        Ok(Self {
            name: format!("remote-write {shown}"),
            encoder: RemoteWriteEncoder::new(config),
            client: settings.client()?,
            peer: Peer::new(shown, &settings),
            url: address,
            headers: headers(settings.headers),
        })
    }

    async fn write(&mut self, batch: &Batch) -> Delivery {
        let (accepted, requests) = match self.encoder.encode(batch.bytes()) {
            Ok(encoded) => encoded,
            Err(error) => {
                return self
                    .peer
                    .refused(format_args!("the batch is not OTLP: {error}"), None);
            }
        };
        let (count, mut refused, mut points) = (requests.len(), Vec::new(), 0);
        for request in requests {
            match self.attempt(request.bytes).await {
                Delivery::Delivered => {}
                // A request is rejected because of its samples. The others may be accepted.
                Delivery::Refused(problem) => {
                    refused.push(problem);
                    points += request.points;
                }
                // The batch is sent again with all its requests. The receiver accepts equal samples twice.
                other => return other,
            }
        }
        let refusals = refused.len();
        let Some(first) = refused.into_iter().next() else {
            self.encoder.record_delivered();
            return accepted;
        };
        if refusals == count {
            return Delivery::Refused(first);
        }
        let (subject, what) = (first.subject.unwrap_or_default(), first.what);
        let what = format!("{refusals} of {count} requests were refused: {subject}: {what}");
        let (rejected, what) = match accepted {
            Delivery::Partial { rejected, problem } => (rejected + points, format!("{problem}; {what}")),
            _ => (points, what),
        };
        let (subject, remedy) = (None, first.remedy);
        Delivery::Partial {
            rejected,
            problem: Problem {
                subject,
                what,
                remedy,
            },
        }
    }

    async fn attempt(&self, body: Bytes) -> Delivery {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.url);
        request.headers_mut().clone_from(&self.headers);
        match self.client.exchange(request).await {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                self.outcome(&head, &body)
            }
            Err(error) => self.peer.failed(&error),
        }
    }

    /// Classifies a response. Every 5xx may be retried (specification, "Retries & Backoff"). A web page instead of an answer is the
    /// login page of a proxy: nothing was stored.
    fn outcome(&self, head: &response::Parts, body: &[u8]) -> Delivery {
        let (status, answer) = (head.status, plain(&String::from_utf8_lossy(body)));
        if status.is_success() && is_web_page(body) {
            let what = format_args!("HTTP status {status} with a web page: nothing was stored");
            return self
                .peer
                .delivery(Verdict::Service, what, Some(NO_RECEIVER), None, &self.client);
        }
        if status.is_success() {
            return Delivery::Delivered;
        }
        let colon = if answer.is_empty() { "" } else { ": " };
        let what = format_args!("HTTP status {status}{colon}{answer}");
        let (verdict, advice) = match status {
            status if status.is_server_error() => (Verdict::Later, None),
            StatusCode::BAD_REQUEST if advice::is_too_old(&answer) => (Verdict::Contents, Some(TOO_OLD)),
            StatusCode::NOT_FOUND => (Verdict::Service, Some(NO_RECEIVER)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                (Verdict::from_http(status, &answer), Some(advice::CREDENTIALS))
            }
            _ => (Verdict::from_http(status, &answer), None),
        };
        self.peer
            .delivery(verdict, what, advice, retry_after(&head.headers), &self.client)
    }
}

impl Sink for RemoteWriteSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn signals(&self) -> Signals {
        Signals::from_iter([Signal::Metrics])
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(self.write(batch))
    }
}

fn headers(mut headers: HeaderMap) -> HeaderMap {
    let agent = concat!("pulsetrain/", env!("CARGO_PKG_VERSION"));
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(agent));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("snappy"));
    headers.insert(
        "X-Prometheus-Remote-Write-Version",
        HeaderValue::from_static("0.1.0"),
    );
    headers
}

fn not_an_address(url: &str) -> SinkError {
    SinkError::Setting {
        name: "target".to_owned(),
        value: format!("remote-write:{url}"),
        expected: "write the complete address, like remote-write:http://localhost:9090/api/v1/write",
    }
}

#[cfg(test)]
mod tests;
