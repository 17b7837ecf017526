//! The HTTP client of gRPC and HTTP: hyper with rustls, a connection pool, no redirects.
//!
//! Every failure without a response is a [`TransportError`], so the batch may be retried.

use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{
    Request, Response, StatusCode, Uri,
    header::{AUTHORIZATION, PROXY_AUTHORIZATION},
};
use http_body_util::{BodyExt, Either, Empty, combinators::MapErr};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use parking_lot::Mutex;
use pulsetrain_pipeline::clock::{self, Instant};
use tonic::{body::Body, client::GrpcService};

use super::{
    body::BodyError,
    config::{Protocol, Proxy, SignalConfig},
    credentials::Authorization,
    proxy::Connector,
    tls,
};
use crate::SinkError;

/// The silence on an HTTP/2 connection with an open request after which a ping is sent. Otherwise each retry
/// would use the same dead connection.
const SILENCE_BEFORE_PING: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The minimum interval between checks of PEM files, while requests are sent.
const LOOK_AT_FILES_AFTER: Duration = Duration::from_secs(1);

type HttpClient = Client<HttpsConnector<Connector>, Body>;

/// The client of one signal. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Transport {
    shared: Arc<Shared>,
}

struct Shared {
    config: SignalConfig,
    authorization: Option<Authorization>,
    pem_files: Vec<PathBuf>,
    current: Mutex<Current>,
}

/// The client with the certificates of the last read.
struct Current {
    client: HttpClient,
    stamps: Stamps,
    looked_at: Instant,
}

/// The modification time and length of each PEM file, or `None` for a missing one.
type Stamps = Vec<Option<(SystemTime, u64)>>;

/// A failure to connect, or a connection that broke before the response was complete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    /// No connection, or no common protocol.
    #[error("cannot reach it")]
    Request(#[source] hyper_util::client::legacy::Error),
    /// The response is incomplete.
    #[error("the response is truncated")]
    Answer(#[source] hyper::Error),
    /// The request cannot be created.
    #[error(transparent)]
    Body(#[from] BodyError),
}

/// The body of a response, with our error type.
pub(crate) type AnswerBody = MapErr<Incoming, fn(hyper::Error) -> TransportError>;

type Answer = Result<Response<AnswerBody>, TransportError>;

impl Transport {
    /// Reads the certificates and the credentials of `config`.
    pub(crate) fn new(config: &SignalConfig) -> Result<Self, SinkError> {
        let pem_files = tls::files(config);
        let current = Current {
            stamps: stamps(&pem_files),
            client: client(config)?,
            looked_at: clock::now(),
        };
        let authorization = config.credentials.as_ref().map(Authorization::open).transpose()?;
        Ok(Self {
            shared: Arc::new(Shared {
                config: config.clone(),
                authorization,
                pem_files,
                current: Mutex::new(current),
            }),
        })
    }

    /// Sends one request and waits for the head of the response.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Answer {
        let shared = &self.shared;
        shared.look_at_files().await;
        if let Some(authorization) = &shared.authorization {
            let header = authorization.header().await;
            request.headers_mut().insert(AUTHORIZATION, header);
        }
        let proxy = shared.config.proxy.as_ref();
        if let Some(authorization) = proxy.and_then(Proxy::forwarded_authorization) {
            request
                .headers_mut()
                .insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let client = shared.current.lock().client.clone();
        let answer = client.request(request).await.map_err(TransportError::Request)?;
        Ok(answer.map(|body| body.map_err(TransportError::Answer as fn(_) -> _)))
    }

    /// Handles rejected credentials. Returns advice if they are in a file, which is reread before the next
    /// attempt.
    pub(super) fn credentials_refused(&self) -> Option<String> {
        self.shared.authorization.as_ref()?.refused()
    }
}

impl Shared {
    /// Creates a new client if a PEM file has changed, so that renewed certificates need no restart. Invalid
    /// files leave the client unchanged until they change again.
    async fn look_at_files(self: &Arc<Self>) {
        if self.pem_files.is_empty() {
            return;
        }
        {
            let now = clock::now();
            let mut current = self.current.lock();
            if now.saturating_duration_since(current.looked_at) < LOOK_AT_FILES_AFTER {
                return;
            }
            current.looked_at = now;
        }
        let shared = Arc::clone(self);
        // A panic leaves the client unchanged.
        let _ = tokio::task::spawn_blocking(move || shared.read_changed_files()).await;
    }

    fn read_changed_files(&self) {
        let stamps = stamps(&self.pem_files);
        if self.current.lock().stamps == stamps {
            return;
        }
        let made = client(&self.config);
        let mut current = self.current.lock();
        current.stamps = stamps;
        if let Ok(client) = made {
            current.client = client;
        }
    }
}

fn stamps(files: &[PathBuf]) -> Stamps {
    let stamp = |path: &PathBuf| {
        let metadata = path.metadata().ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.iter().map(stamp).collect()
}

fn client(config: &SignalConfig) -> Result<HttpClient, SinkError> {
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls::client_config(config)?)
        .https_or_http();
    let builder = match tls::server_name(config)? {
        Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
        None => builder,
    };
    let connector = Connector::new(config.proxy.clone());
    let mut client = Client::builder(TokioExecutor::new());
    client.pool_timer(TokioTimer::new()).timer(TokioTimer::new());
    client
        .http2_keep_alive_interval(SILENCE_BEFORE_PING)
        .http2_keep_alive_timeout(PING_TIMEOUT);
    Ok(match config.protocol {
        Protocol::Grpc => client
            .http2_only(true)
            .build(builder.enable_http2().wrap_connector(connector)),
        Protocol::HttpProtobuf | Protocol::HttpJson => {
            client.build(builder.enable_http1().wrap_connector(connector))
        }
    })
}

/// The service through which tonic sends requests.
impl GrpcService<Body> for Transport {
    type ResponseBody = Either<AnswerBody, Empty<Bytes>>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Self::ResponseBody>, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    /// A response other than `200 OK` comes from a proxy. Its body is not gRPC and would hide the status from
    /// tonic.
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

/// Returns scheme and authority, which messages show.
pub(crate) fn origin(endpoint: &Uri) -> String {
    let authority = endpoint.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}", endpoint.scheme_str().unwrap_or("http"))
}
