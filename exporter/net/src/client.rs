//! The client of every endpoint: HTTP/1.1 and HTTP/2 with a connection pool, proxies, TLS, credentials, a deadline and a limit on responses.
//!
//! [`Client::exchange`] sends a request and reads the complete response; [`GrpcClient`] does the same for unary gRPC
//! methods. Redirects are not followed. A [`RequestError`] shows whether the host answered.
//!
//! ```text
//! Client ──> credentials ──> pool ──> Connector (direct, proxy) ──> TLS ──> host ──> response within the limits
//! ```
//!
//! Certificates, tokens and passwords are files. They are read again during use, so that renewed ones need no restart.

mod compression;
mod connector;
mod credentials;
mod error;
#[cfg(feature = "grpc")]
mod grpc;
mod proxy;
mod response;
mod tls;

use std::{
    future::Future,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, Uri,
    header::{AUTHORIZATION, PROXY_AUTHORIZATION, USER_AGENT},
};
use http_body_util::{BodyExt, Full, combinators::MapErr};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client as Pool,
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::{Instant, timeout};

use self::connector::Connector;
#[cfg(feature = "grpc")]
pub use self::grpc::GrpcClient;
pub use self::{
    compression::Compression,
    connector::ThroughProxyError,
    credentials::{Credentials, NamedFile, Password, RefusedFile},
    error::{ClientError, RequestError, causes},
    proxy::{Proxy, ProxyRoute, ProxyVariableError},
    response::{date, retry_after},
    tls::{ClientTls, ClientTlsFile, Identity},
};
pub use crate::host::is_loopback;
use crate::watched_files::{Described, WatchedFiles};

/// The silence on an HTTP/2 connection with an open request after which a ping is sent. Otherwise each retry
/// would use the same dead connection.
const SILENCE_BEFORE_PING: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The minimum interval between checks of files, while requests are sent. After rejected credentials they are checked at once.
const LOOK_AT_FILES_AFTER: Duration = Duration::from_secs(1);

/// The connections with the certificates of the last read.
type HttpPool = Pool<HttpsConnector<Connector>, Full<Bytes>>;

/// The body of a response, with our error type.
pub(crate) type ResponseBody = MapErr<Incoming, fn(hyper::Error) -> RequestError>;

/// The settings of a client of one host.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The version of HTTP.
    pub version: HttpVersion,
    /// The TLS settings. The files are read only for `https`.
    pub tls: ClientTls,
    /// The credentials in the `authorization` header of every request.
    pub credentials: Option<Credentials>,
    /// The proxy, or `None` for direct connections.
    pub proxy: Option<Proxy>,
    /// The maximum duration of one request, response included. `None` means no limit.
    pub timeout: Option<Duration>,
    /// The maximum size of a response in bytes, compressed and decompressed.
    pub max_response_bytes: usize,
    /// The `user-agent` of requests that set none, and of requests to a proxy for a tunnel.
    pub user_agent: &'static str,
}

/// The version of HTTP that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, also without TLS, for gRPC.
    Http2,
}

/// A client of one host. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    config: ClientConfig,
    authorization: Option<WatchedFiles<HeaderValue, io::Error>>,
    pool: WatchedFiles<HttpPool, ClientError>,
    /// The time of the last check of the files, or `None` after rejected credentials.
    looked_at: Mutex<Option<Instant>>,
    /// The report of a changed file that cannot be used.
    file_notice: Mutex<Option<String>>,
}

impl Client {
    /// Reads the certificates and the credentials of `config`. The first request opens the first connection.
    ///
    /// # Errors
    /// A file, a server name or credentials that cannot be used, or a system without certificate authorities.
    pub fn new(endpoint: &Uri, config: ClientConfig) -> Result<Self, ClientError> {
        let is_tls = endpoint.scheme_str() == Some("https");
        let files = if is_tls { config.tls.files() } else { Vec::new() };
        let authorization = config.credentials.as_ref().map(Credentials::open).transpose()?;
        let read = {
            let config = config.clone();
            move || pool(&config, is_tls)
        };
        Ok(Self {
            shared: Arc::new(Shared {
                pool: WatchedFiles::open(files, read)?,
                config,
                authorization,
                looked_at: Mutex::new(Some(Instant::now())),
                file_notice: Mutex::default(),
            }),
        })
    }

    /// Sends a request and reads the complete response, within the deadline and the size limit. A response with the
    /// content coding `gzip` is decompressed.
    ///
    /// # Errors
    /// No connection, or a response that is late, incomplete or too large. An HTTP status is not an error.
    pub async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, RequestError> {
        self.within_timeout(async {
            let (head, body) = self.send(request).await?.into_parts();
            let limit = self.shared.config.max_response_bytes;
            let body = response::read(&head.headers, body, limit).await?;
            Ok(Response::from_parts(head, body))
        })
        .await
    }

    /// Handles rejected credentials. If they are in a file, the next request rereads it; returns that file.
    pub fn credentials_refused(&self) -> Option<RefusedFile> {
        let shared = &self.shared;
        let file = shared.config.credentials.as_ref()?.file()?;
        let authorization = shared.authorization.as_ref()?;
        authorization.invalidate();
        *shared.looked_at() = None;
        Some(RefusedFile {
            path: file.path.clone(),
            read_error: authorization.error(),
        })
    }

    /// Removes and returns the report of a changed file that cannot be used: its content before the change remains in use.
    pub fn take_file_notice(&self) -> Option<String> {
        self.shared.file_notice().take()
    }

    /// Sends one request and waits for the head of the response.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let shared = &self.shared;
        self.look_at_files().await;
        let headers = request.headers_mut();
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(shared.config.user_agent));
        if let Some(authorization) = &shared.authorization {
            headers.insert(AUTHORIZATION, HeaderValue::clone(&authorization.current()));
        }
        let proxy = shared.config.proxy.as_ref();
        if let Some(authorization) = proxy.and_then(Proxy::forwarded_authorization) {
            headers.insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        let answer = shared.pool.current().request(request).await;
        let answer = answer.map_err(RequestError::Unreachable)?;
        Ok(answer.map(|body| body.map_err(truncated as fn(_) -> _)))
    }

    /// Runs one exchange within the deadline.
    pub(crate) async fn within_timeout<T>(
        &self,
        exchange: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        match self.shared.config.timeout {
            None => exchange.await,
            Some(limit) => timeout(limit, exchange)
                .await
                .unwrap_or(Err(RequestError::Timeout { limit })),
        }
    }

    /// Opens a new pool if a PEM file has changed, and reads changed credentials. Invalid files leave the last content in use.
    async fn look_at_files(&self) {
        let shared = &self.shared;
        let authorization = shared.authorization.as_ref();
        if !shared.pool.has_files() && !authorization.is_some_and(WatchedFiles::has_files) {
            return;
        }
        {
            let now = Instant::now();
            let mut looked_at = shared.looked_at();
            let age = looked_at.map(|looked_at| now.saturating_duration_since(looked_at));
            if age.is_some_and(|age| age < LOOK_AT_FILES_AFTER) {
                return;
            }
            // Other requests in flight need not look at them too.
            *looked_at = Some(now);
        }
        let shared = Arc::clone(shared);
        let look = move || {
            let certificates = failed_refresh(&shared.pool);
            let credentials = shared.authorization.as_ref().and_then(failed_refresh);
            let authorization = shared.authorization.as_ref();
            let is_sound = shared
                .pool
                .error()
                .or(authorization.and_then(WatchedFiles::error))
                .is_none();
            let mut notice = shared.file_notice();
            if is_sound {
                *notice = None;
            } else if let Some(failed) = certificates.or(credentials) {
                *notice = Some(failed);
            }
        };
        // A panic leaves the last content in use.
        let _ = tokio::task::spawn_blocking(look).await;
    }
}

/// Reloads changed files. Returns the report of a content that cannot be used, with the files.
fn failed_refresh<T, E: Described>(files: &WatchedFiles<T, E>) -> Option<String> {
    let notice = files.refresh()?;
    files.error().map(|_| format!("{}: {notice}", files.names()))
}

impl Shared {
    fn file_notice(&self) -> MutexGuard<'_, Option<String>> {
        self.file_notice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn looked_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn truncated(error: hyper::Error) -> RequestError {
    RequestError::Truncated(error.into())
}

fn pool(config: &ClientConfig, is_tls: bool) -> Result<HttpPool, ClientError> {
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(config.tls.read(is_tls)?)
        .https_or_http();
    let builder = match config.tls.server_name()? {
        Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
        None => builder,
    };
    let connector = Connector::new(config.proxy.clone(), config.user_agent);
    let mut pool = Pool::builder(TokioExecutor::new());
    pool.pool_timer(TokioTimer::new()).timer(TokioTimer::new());
    pool.http2_keep_alive_interval(SILENCE_BEFORE_PING)
        .http2_keep_alive_timeout(PING_TIMEOUT);
    Ok(match config.version {
        HttpVersion::Http2 => pool
            .http2_only(true)
            .build(builder.enable_http2().wrap_connector(connector)),
        HttpVersion::Http1 => pool.build(builder.enable_http1().wrap_connector(connector)),
    })
}

#[cfg(test)]
mod tests;
