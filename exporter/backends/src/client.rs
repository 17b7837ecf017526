//! The HTTP client of all stores: GET with the user's headers, a deadline, retries if a store is busy, and a limit on the
//! size of an answer.

use std::{error::Error, fmt::Display, path::PathBuf, time::Duration};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time;

use super::{error::BackendError, tls};

/// The limit on attempts if a store is busy, and the first backoff, which doubles with each retry.
const MAX_ATTEMPTS: u32 = 5;
const FIRST_BACKOFF: Duration = Duration::from_millis(250);

/// The longest backoff, which also limits the `Retry-After` of a store.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// The limit on the bytes of an answer, compressed and decompressed.
const MAX_ANSWER_BYTES: usize = 1 << 30;

/// The limit on the bytes of a body that an error message quotes.
const MAX_EXCERPT_BYTES: usize = 300;

/// The options of the requests to a store.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// Headers of every request: name and value.
    pub headers: Vec<(String, String)>,
    /// The deadline of one answer, from the request to its last byte.
    pub timeout: Duration,
    /// The limit on the traces of one query.
    pub max_traces: usize,
    /// A PEM file of the certificate authorities to trust. Without one, those of the system are trusted.
    pub authority: Option<PathBuf>,
    /// PEM files of a client's certificate chain and of its key, for a store that authenticates its clients.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A client for one store; clones share its connections.
#[derive(Clone)]
pub(super) struct StoreClient {
    base: String,
    headers: HeaderMap,
    timeout: Duration,
    http: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
}

/// The body of an answer with a success status.
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// The URL of the request.
    pub(super) url: String,
}

impl Body {
    /// Returns the error of a body that such a store does not send.
    pub(super) fn unreadable(self, store: &'static str, error: &impl Display) -> BackendError {
        BackendError::Answer {
            problem: format!("{error} in {:?}", excerpt(&self.bytes)),
            url: self.url,
            store,
        }
    }
}

/// A failed attempt, and whether a retry can succeed.
struct Failed {
    error: BackendError,
    retry_backoff: Option<Duration>,
}

impl From<BackendError> for Failed {
    fn from(error: BackendError) -> Self {
        Self {
            error,
            retry_backoff: None,
        }
    }
}

impl Failed {
    /// Returns the failure of a body that ends early or cannot be decompressed.
    fn broken(url: &str, source: Box<dyn Error + Send + Sync>) -> Self {
        Self {
            error: BackendError::BrokenAnswer {
                url: shown(url),
                source,
            },
            retry_backoff: Some(Duration::ZERO),
        }
    }
}

impl StoreClient {
    pub(super) fn new(url: &str, options: &BackendOptions) -> Result<Self, BackendError> {
        let base = base(url)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::client_config(base.starts_with("https"), options)?)
            .https_or_http()
            .enable_http1()
            .build();
        let mut http = Client::builder(TokioExecutor::new());
        http.pool_timer(TokioTimer::new()).timer(TokioTimer::new());
        Ok(Self {
            base,
            headers: headers(&options.headers)?,
            timeout: options.timeout,
            http: http.build(connector),
        })
    }

    /// Returns the base address of all requests.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Requests a path and its query, with retries while the store is busy.
    pub(super) async fn get(&self, path: &str, accept: &'static str) -> Result<Body, BackendError> {
        let mut pause = FIRST_BACKOFF;
        for _ in 1..MAX_ATTEMPTS {
            match self.within_timeout(path, accept).await {
                Ok(body) => return Ok(body),
                Err(Failed {
                    retry_backoff: Some(asked),
                    ..
                }) => {
                    // Jitter spreads the retries of clients that failed at the same time.
                    let spread = pause.mul_f64(fastrand::f64() / 2.0);
                    time::sleep((pause + spread).max(asked).min(MAX_BACKOFF)).await;
                    pause *= 2;
                }
                Err(failed) => return Err(failed.error),
            }
        }
        self.within_timeout(path, accept)
            .await
            .map_err(|failed| failed.error)
    }

    async fn within_timeout(&self, path: &str, accept: &'static str) -> Result<Body, Failed> {
        let url = format!("{}{path}", self.base);
        match time::timeout(self.timeout, self.attempt(&url, accept)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(BackendError::Timeout {
                url: shown(&url),
                timeout: self.timeout,
            }
            .into()),
        }
    }

    async fn attempt(&self, url: &str, accept: &'static str) -> Result<Body, Failed> {
        let uri: Uri = url.parse().map_err(|_| BackendError::Url {
            url: shown(url),
            problem: "it cannot be written in a request",
        })?;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&self.headers);
        request
            .headers_mut()
            .entry(ACCEPT)
            .or_insert(HeaderValue::from_static(accept));
        let unreachable = |source: Box<dyn Error + Send + Sync>| BackendError::Unreachable {
            url: shown(url),
            source,
        };
        let answer = self.http.request(request).await.map_err(|error| Failed {
            retry_backoff: was_never_sent(&error).then_some(Duration::ZERO),
            error: unreachable(error.into()),
        })?;
        let (head, body) = answer.into_parts();
        let body = match Limited::new(body, MAX_ANSWER_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Err(too_large(url).into()),
            // The connection broke during the answer: the store is reachable, so a retry may succeed.
            Err(source) => return Err(Failed::broken(url, source)),
        };
        let bytes = inflated(&head.headers, &body, url)?;
        if head.status.is_success() {
            return Ok(Body {
                bytes,
                url: shown(url),
            });
        }
        Err(Failed {
            retry_backoff: retry_backoff(head.status, &head.headers),
            error: BackendError::Status {
                url: shown(url),
                status: head.status,
                message: excerpt(&bytes),
            },
        })
    }
}

/// Returns whether a connection ended between the handshake and the request. A store that rejects a client certificate
/// may do that. Only the connection has the cause; the next attempt either fails with it or succeeds.
fn was_never_sent(error: &(dyn Error + 'static)) -> bool {
    tls::causes(error)
        .filter_map(|error| error.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_canceled)
}

/// Returns the minimal backoff if a retry makes sense, or `None` otherwise.
fn retry_backoff(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let is_busy = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    );
    let asked = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map_or(Duration::ZERO, Duration::from_secs);
    is_busy.then_some(asked)
}

fn inflated(headers: &HeaderMap, body: &[u8], url: &str) -> Result<Vec<u8>, Failed> {
    use std::io::Read;
    if headers
        .get(CONTENT_ENCODING)
        .is_none_or(|encoding| encoding != "gzip")
    {
        return Ok(body.to_vec());
    }
    let mut bytes = Vec::new();
    MultiGzDecoder::new(body)
        .take(MAX_ANSWER_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failed::broken(url, error.into()))?;
    if bytes.len() > MAX_ANSWER_BYTES {
        return Err(too_large(url).into());
    }
    Ok(bytes)
}

fn too_large(url: &str) -> BackendError {
    BackendError::TooLarge {
        url: shown(url),
        most: MAX_ANSWER_BYTES,
    }
}

/// Returns the beginning of a text body on one line, or the size of a body that is not text.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_EXCERPT_BYTES)]);
    let is_binary = |c: char| c == char::REPLACEMENT_CHARACTER || c.is_control() && !c.is_whitespace();
    // The last character may be truncated.
    if text
        .trim_end_matches(char::REPLACEMENT_CHARACTER)
        .contains(is_binary)
    {
        return format!("{} bytes that are not text", body.len());
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns an address without its query, which may be long and may hold secrets.
fn shown(url: &str) -> String {
    url.split('?').next().unwrap_or_default().to_owned()
}

/// Returns the scheme, the authority and the path prefix of an address, without a trailing slash.
fn base(url: &str) -> Result<String, BackendError> {
    let bad = |problem| BackendError::Url {
        url: url.rsplit_once('@').map_or(url, |(_, behind)| behind).to_owned(),
        problem,
    };
    let uri: Uri = url
        .parse()
        .map_err(|_| bad("write it like http://localhost:3200"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(bad("begin it with http:// or https://"));
    }
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    if authority.contains('@') {
        return Err(bad(
            "put user and password into --header 'Authorization: Basic ...' instead",
        ));
    }
    if uri.query().is_some() {
        return Err(bad("remove the query, which begins with the question mark"));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, BackendError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("pulsetrain/", env!("CARGO_PKG_VERSION"))),
    );
    for (name, value) in given {
        let bad = |problem| BackendError::Header {
            name: name.clone(),
            problem,
        };
        let key = HeaderName::try_from(name.as_str()).map_err(|_| bad("has an invalid name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("has an invalid value"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use std::io;

    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn backend_url_keeps_its_path_and_errors_hide_the_password() {
        assert_eq!(
            base("https://host/grafana/tempo/").unwrap(),
            "https://host/grafana/tempo"
        );
        for (url, word) in [
            ("host:3200", "http://"),
            ("ftp://host", "http://"),
            ("http://me:secret@host", "--header"),
            ("http://host/?a=1", "question mark"),
            ("http://", "localhost"),
        ] {
            let error = base(url).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn only_busy_statuses_are_retried() {
        let mut headers = HeaderMap::new();
        assert_eq!(
            retry_backoff(StatusCode::SERVICE_UNAVAILABLE, &headers),
            Some(Duration::ZERO)
        );
        assert_eq!(retry_backoff(StatusCode::INTERNAL_SERVER_ERROR, &headers), None);
        headers.insert(RETRY_AFTER, HeaderValue::from_static("3"));
        assert_eq!(
            retry_backoff(StatusCode::TOO_MANY_REQUESTS, &headers),
            Some(Duration::from_secs(3))
        );
    }

    #[tokio::test]
    async fn only_a_request_that_was_never_sent_is_retried() {
        for is_taken in [false, true] {
            let (ours, mut theirs) = tokio::io::duplex(1024);
            let (mut sender, connection) = http1::handshake(TokioIo::new(ours)).await.unwrap();
            let asked = sender.send_request(Request::new(Empty::<Bytes>::new()));
            if is_taken {
                tokio::spawn(connection);
                theirs.read_u8().await.unwrap();
            } else {
                drop(connection);
            }
            drop(theirs);
            let error = io::Error::other(asked.await.unwrap_err());
            assert_eq!(was_never_sent(&error), !is_taken, "{error}");
        }
    }

    #[test]
    fn invalid_header_is_reported_without_its_value() {
        let error = headers(&[("X-Token".to_owned(), "se\ncret".to_owned())])
            .unwrap_err()
            .to_string();
        assert!(error.contains("X-Token") && !error.contains("cret"), "{error}");
    }
}
