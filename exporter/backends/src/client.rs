//! The requests to all stores: GET with the user's headers, and retries if a store is busy.

use std::{fmt::Display, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Uri,
    header::{ACCEPT, ACCEPT_ENCODING},
};
use http_body_util::Full;
use pulsetrain_net::client::{Client, ClientConfig, ClientTls, HttpVersion, Proxy, retry_after};
use tokio::time;

use super::error::BackendError;

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
    /// The certificate authorities to trust, and the certificate for a store that authenticates its clients.
    pub tls: ClientTls,
    /// Returns the value of a variable: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` select the proxy of a store.
    pub variable: fn(&str) -> Option<String>,
}

/// A client for one store; clones share its connections.
#[derive(Clone)]
pub(super) struct StoreClient {
    base: String,
    headers: HeaderMap,
    client: Client,
}

/// The body of an answer with a success status.
pub(super) struct Body {
    pub(super) bytes: Bytes,
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

impl StoreClient {
    pub(super) fn new(url: &str, options: &BackendOptions) -> Result<Self, BackendError> {
        let (base, uri) = base(url)?;
        let config = ClientConfig {
            version: HttpVersion::Http1,
            tls: options.tls.clone(),
            credentials: None,
            proxy: Proxy::from_variables(&options.variable, &uri, false)?,
            timeout: Some(options.timeout),
            max_response_bytes: MAX_ANSWER_BYTES,
            user_agent: concat!("pulsetrain/", env!("CARGO_PKG_VERSION")),
        };
        Ok(Self {
            base,
            headers: headers(&options.headers)?,
            client: Client::new(&uri, config).map_err(BackendError::Tls)?,
        })
    }

    /// Returns the base address of all requests.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Requests a path and its query, with retries while the store is busy.
    pub(super) async fn get(&self, path: &str, accept: &'static str) -> Result<Body, BackendError> {
        let url = format!("{}{path}", self.base);
        let mut pause = FIRST_BACKOFF;
        for _ in 1..MAX_ATTEMPTS {
            let outcome = self.attempt(&url, accept).await;
            let Some(asked) = outcome.as_ref().err().and_then(BackendError::retry_backoff) else {
                return outcome;
            };
            // Jitter spreads the retries of clients that failed at the same time.
            let spread = pause.mul_f64(fastrand::f64() / 2.0);
            time::sleep((pause + spread).max(asked).min(MAX_BACKOFF)).await;
            pause *= 2;
        }
        self.attempt(&url, accept).await
    }

    async fn attempt(&self, url: &str, accept: &'static str) -> Result<Body, BackendError> {
        let shown = shown(url);
        let mut request = Request::new(Full::default());
        *request.uri_mut() = url.parse().map_err(|_| BackendError::Url {
            url: shown.clone(),
            problem: "it cannot be written in a request",
        })?;
        request.headers_mut().clone_from(&self.headers);
        request
            .headers_mut()
            .entry(ACCEPT)
            .or_insert(HeaderValue::from_static(accept));
        let (head, bytes) = match self.client.exchange(request).await {
            Ok(answer) => answer.into_parts(),
            Err(error) => return Err(BackendError::Request { url: shown, error }),
        };
        if head.status.is_success() {
            return Ok(Body { bytes, url: shown });
        }
        Err(BackendError::Status {
            url: shown,
            status: head.status,
            message: excerpt(&bytes),
            retry_after: retry_after(&head.headers),
        })
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

/// Returns the scheme, the authority and the path prefix of an address, without a trailing slash, and the address.
fn base(url: &str) -> Result<(String, Uri), BackendError> {
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
    Ok((url.trim_end_matches('/').to_owned(), uri))
}

fn headers(given: &[(String, String)]) -> Result<HeaderMap, BackendError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
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
    use super::*;

    #[test]
    fn backend_url_keeps_its_path_and_errors_hide_the_password() {
        assert_eq!(
            base("https://host/grafana/tempo/").unwrap().0,
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
    fn invalid_header_is_reported_without_its_value() {
        let error = headers(&[("X-Token".to_owned(), "se\ncret".to_owned())])
            .unwrap_err()
            .to_string();
        assert!(error.contains("X-Token") && !error.contains("cret"), "{error}");
    }
}
