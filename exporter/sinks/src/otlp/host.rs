//! A plain GET request to the host of an endpoint, with its TLS settings and headers, for diagnostics.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header::DATE, uri::PathAndQuery};
use http_body_util::{BodyExt, Limited};
use pulsetrain_pipeline::clock;
use tonic::body::Body;

use super::{
    config::{Protocol, SignalConfig},
    peer::MAX_ANSWER_BYTES,
    transport::Transport,
};

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
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = Uri::from_parts(url).ok()?;
    request.headers_mut().clone_from(&config.headers);
    let began = clock::now();
    let (head, body) = Transport::new(config)
        .ok()?
        .send(request)
        .await
        .ok()?
        .into_parts();
    let took = clock::now().saturating_duration_since(began);
    let date = head.headers.get(DATE).map(HeaderValue::to_str)?.ok();
    let since_1970 = |text| {
        httpdate::parse_http_date(text)
            .ok()?
            .duration_since(UNIX_EPOCH)
            .ok()
    };
    let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await.ok()?;
    Some(HostAnswer {
        status: head.status.as_u16(),
        clock: date.and_then(since_1970),
        took,
        body: body.to_bytes(),
    })
}
