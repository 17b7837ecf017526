//! One attempt over HTTP: encodes the request body, and classifies the response.
//!
//! Status codes are classified by the OTLP specification, "OTLP/HTTP Response".

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Uri,
    header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
    response,
};
use http_body_util::{BodyExt, Full, Limited};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, clock};
use tonic::body::Body;

use super::{
    advice,
    answer::{self, BodyFormat},
    body,
    config::{Compression, Protocol, SignalConfig},
    peer::{MAX_ANSWER_BYTES, Peer},
    transport::Transport,
};

/// Sends one signal over HTTP/protobuf or HTTP/JSON.
#[derive(Clone)]
pub(super) struct HttpExporter {
    transport: Transport,
    peer: Peer,
    signal: Signal,
    url: Uri,
    headers: HeaderMap,
    format: BodyFormat,
    compression: Compression,
}

impl HttpExporter {
    pub(super) fn new(transport: Transport, signal: Signal, config: &SignalConfig) -> Self {
        let shown = format!(
            "{}{}",
            super::transport::origin(&config.endpoint),
            config.endpoint.path()
        );
        let format = match config.protocol {
            Protocol::HttpJson => BodyFormat::Json,
            Protocol::HttpProtobuf | Protocol::Grpc => BodyFormat::Protobuf,
        };
        Self {
            transport,
            peer: Peer::new(shown, config),
            signal,
            url: config.endpoint.clone(),
            headers: headers(config, format),
            format,
            compression: config.compression,
        }
    }

    pub(super) async fn export(&self, batch: &Batch) -> Delivery {
        match self.body(batch).await {
            Ok(body) => self.peer.within_timeout(self.attempt(body, batch.items())).await,
            Err(refused) => refused,
        }
    }

    async fn body(&self, batch: &Batch) -> Result<Bytes, Delivery> {
        self.peer.check_size(batch.bytes().len())?;
        let text = match self.format {
            BodyFormat::Json => body::json(batch)
                .await
                .map_err(|error| self.peer.refused(error, None))?,
            BodyFormat::Protobuf | BodyFormat::Text => batch.bytes().clone(),
        };
        self.peer.check_size(text.len())?;
        body::compress(text, self.compression)
            .await
            .map_err(|error| self.peer.refused(error, None))
    }

    async fn attempt(&self, body: Bytes, items: u32) -> Delivery {
        let mut request = Request::new(Body::new(Full::new(body)));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.url);
        request.headers_mut().clone_from(&self.headers);
        let (head, body) = match self.transport.send(request).await {
            Ok(answer) => answer.into_parts(),
            Err(error) => return self.peer.unreachable(&error),
        };
        match Limited::new(body, MAX_ANSWER_BYTES).collect().await {
            Ok(body) => self.outcome(&head, &body.to_bytes(), items),
            Err(error) => self.peer.unreadable(error.as_ref()),
        }
    }

    fn outcome(&self, head: &response::Parts, body: &[u8], items: u32) -> Delivery {
        let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
        let format = content_type.map_or(self.format, |text| BodyFormat::of(text.unwrap_or_default()));
        if head.status.is_success() {
            return answer::success(format, body, self.signal, items);
        }
        let message = answer::refusal(format, body)
            .map(|text| format!(": {text}"))
            .unwrap_or_default();
        let what = format_args!("HTTP status {}{message}", head.status);
        let text = String::from_utf8_lossy(body);
        match head.status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let advice = advice::http_status(head.status, &text);
                self.peer.retry(retry_after(head), what, advice)
            }
            StatusCode::NOT_FOUND => self
                .peer
                .unsupported(what, advice::http_status(head.status, &text)),
            StatusCode::UNAUTHORIZED => match self.transport.credentials_refused() {
                // The batch waits for valid credentials.
                Some(advice) => self.peer.wait_for_credentials(what, advice),
                None => self.peer.denied(what, Some(advice::CREDENTIALS)),
            },
            StatusCode::PAYLOAD_TOO_LARGE => {
                self.peer.too_large(what, advice::http_status(head.status, &text))
            }
            status if is_denial(status) => self.peer.denied(what, advice::http_status(status, &text)),
            status => self.peer.refused(what, advice::http_status(status, &text)),
        }
    }
}

/// Returns whether a status is the same for every request of this sink, independent of its body.
fn is_denial(status: StatusCode) -> bool {
    status.is_redirection()
        || matches!(
            status,
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::PROXY_AUTHENTICATION_REQUIRED
                | StatusCode::UNSUPPORTED_MEDIA_TYPE
        )
}

fn headers(config: &SignalConfig, format: BodyFormat) -> HeaderMap {
    let mut headers = config.headers.clone();
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(super::USER_AGENT));
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(match format {
            BodyFormat::Json => "application/json",
            BodyFormat::Protobuf | BodyFormat::Text => "application/x-protobuf",
        }),
    );
    if let Some(coding) = config.compression.coding() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    headers
}

fn retry_after(head: &response::Parts) -> Option<std::time::Duration> {
    let value = head.headers.get(RETRY_AFTER)?.to_str().ok()?;
    super::delay::retry_after(value, clock::unix_now())
}
