//! A plain GET request to the host of an endpoint, with its TLS settings and headers, for diagnostics.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri, uri::PathAndQuery};
use http_body_util::Full;
use pulsetrain_net::client::date;
use pulsetrain_pipeline::clock;

use super::config::{Protocol, SignalConfig};

/// The response of a host.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HostAnswer {
    /// The status.
    pub status: u16,
    /// The host's time of the response in seconds since 1970.
    pub clock: Option<Duration>,
    /// The duration of the request.
    pub took: Duration,
    /// The body.
    pub body: Bytes,
}

/// Fetches `path` from the host of an HTTP endpoint. Returns `None` for a gRPC endpoint, a timeout, or a
/// response over the size limit.
pub async fn ask_host(config: &SignalConfig, path: &'static str, within: Duration) -> Option<HostAnswer> {
    if config.protocol == Protocol::Grpc {
        return None;
    }
    tokio::time::timeout(within, ask(config, path)).await.ok()?
}

async fn ask(config: &SignalConfig, path: &'static str) -> Option<HostAnswer> {
    let mut url = config.endpoint.clone().into_parts();
    url.path_and_query = Some(PathAndQuery::from_static(path));
    let mut request = Request::new(Full::default());
    *request.uri_mut() = Uri::from_parts(url).ok()?;
    request.headers_mut().clone_from(&config.headers);
    let began = clock::now();
    let answer = config.client().ok()?.exchange(request).await.ok()?;
    Some(HostAnswer {
        status: answer.status().as_u16(),
        clock: date(answer.headers()),
        took: clock::now().saturating_duration_since(began),
        body: answer.into_body(),
    })
}
