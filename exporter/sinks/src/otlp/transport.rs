//! The one HTTP client under gRPC and HTTP: hyper with rustls, a pool of kept connections, no redirects, no proxies.
//!
//! Whatever breaks on the way becomes a [`TransportError`]: the receiver did not answer, so the batch may be tried again.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Either, Empty, combinators::MapErr};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tonic::{body::Body, client::GrpcService};

use super::{
    config::{Protocol, SignalConfig},
    tls,
};
use crate::SinkError;

/// An HTTP/2 connection that has been silent for this long under an open request is asked for a sign of life: otherwise each
/// new attempt would go into the same dead connection.
const SILENCE_BEFORE_PING: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for one signal; a clone shares its connections.
#[derive(Clone)]
pub(super) struct Transport {
    client: Client<HttpsConnector<HttpConnector>, Body>,
}

/// The receiver could not be reached, or the connection broke before the whole answer was there.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    /// No connection, or none that speaks the protocol.
    #[error("cannot reach it")]
    Request(#[source] hyper_util::client::legacy::Error),
    /// The answer broke off.
    #[error("the answer broke off")]
    Answer(#[source] hyper::Error),
}

/// An answer's body; its errors are ours.
pub(super) type AnswerBody = MapErr<Incoming, fn(hyper::Error) -> TransportError>;

type Answer = Result<Response<AnswerBody>, TransportError>;

impl Transport {
    pub(super) fn new(config: &SignalConfig) -> Result<Self, SinkError> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::client_config(config)?)
            .https_or_http();
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new()).timer(TokioTimer::new());
        client
            .http2_keep_alive_interval(SILENCE_BEFORE_PING)
            .http2_keep_alive_timeout(PING_TIMEOUT);
        let client = match config.protocol {
            Protocol::Grpc => client.http2_only(true).build(connector.enable_http2().build()),
            Protocol::HttpProtobuf | Protocol::HttpJson => client.build(connector.enable_http1().build()),
        };
        Ok(Self { client })
    }

    /// Sends one request and waits for the head of the answer.
    pub(super) async fn send(&self, request: Request<Body>) -> Answer {
        let answer = self
            .client
            .request(request)
            .await
            .map_err(TransportError::Request)?;
        Ok(answer.map(|body| body.map_err(TransportError::Answer as fn(_) -> _)))
    }
}

/// What tonic sends its requests through.
impl GrpcService<Body> for Transport {
    type ResponseBody = Either<AnswerBody, Empty<Bytes>>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Self::ResponseBody>, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    /// An answer that is no `200 OK` comes from a proxy: its body is a page, not gRPC, and would hide the status from tonic.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let transport = self.clone();
        Box::pin(async move {
            let answer = transport.send(request).await?;
            Ok(match answer.status() {
                StatusCode::OK => answer.map(Either::Left),
                _ => answer.map(|_| Either::Right(Empty::new())),
            })
        })
    }
}

/// Scheme and authority: what messages show of an endpoint.
pub(super) fn origin(endpoint: &Uri) -> String {
    let authority = endpoint.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}", endpoint.scheme_str().unwrap_or("http"))
}
