//! One attempt over HTTP: encodes the request body, and classifies the response.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Uri,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
    response,
};
use http_body_util::Full;
use pulsetrain_net::client::{Client, Compression, retry_after};
use pulsetrain_otlp::{Signal, json};
use pulsetrain_pipeline::{Batch, Delivery};

use super::{
    advice,
    answer::{self, BodyFormat},
    client::origin,
    config::{Protocol, SignalConfig},
    peer::Peer,
    verdict::Verdict,
};

/// Sends one signal over HTTP/protobuf or HTTP/JSON.
#[derive(Clone)]
pub(super) struct HttpExporter {
    client: Client,
    peer: Peer,
    signal: Signal,
    url: Uri,
    headers: HeaderMap,
    format: BodyFormat,
    compression: Compression,
}

impl HttpExporter {
    pub(super) fn new(client: Client, signal: Signal, config: &SignalConfig) -> Self {
        let shown = format!("{}{}", origin(&config.endpoint), config.endpoint.path());
        let format = match config.protocol {
            Protocol::HttpJson => BodyFormat::Json,
            Protocol::HttpProtobuf | Protocol::Grpc => BodyFormat::Protobuf,
        };
        Self {
            client,
            peer: Peer::new(shown, config),
            signal,
            url: config.endpoint.clone(),
            headers: headers(config, format),
            format,
            compression: config.compression,
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) async fn export(&self, batch: &Batch) -> Delivery {
        let body = match self.body(batch).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.url);
        request.headers_mut().clone_from(&self.headers);
        match self.client.exchange(request).await {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                self.outcome(&head, &body, batch.items())
            }
            Err(error) => self.peer.failed(&error),
        }
    }

    async fn body(&self, batch: &Batch) -> Result<Bytes, Delivery> {
        self.peer.check_size(batch.bytes().len())?;
        let text = match self.format {
            BodyFormat::Json => self.json(batch).await?,
            BodyFormat::Protobuf | BodyFormat::Text => batch.bytes().clone(),
        };
        self.peer.check_size(text.len())?;
        let compressed = self.compression.compress(text).await;
        compressed.map_err(|error| self.peer.failed(&error))
    }

    /// Returns the batch as OTLP/JSON, which is encoded on the blocking pool.
    async fn json(&self, batch: &Batch) -> Result<Bytes, Delivery> {
        let (signal, bytes) = (batch.signal(), batch.bytes().clone());
        let text = tokio::task::spawn_blocking(move || {
            let mut text = Vec::with_capacity(3 * bytes.len());
            json::encode(signal, &bytes, &mut text).map(|()| text)
        });
        match text.await {
            Ok(Ok(text)) => Ok(text.into()),
            Ok(Err(error)) => {
                let what = format_args!("not sent: the batch is not OTLP protobuf: {error}");
                Err(self.peer.refused(what, None))
            }
            Err(error) => Err(self.peer.refused(format_args!("not sent: {error}"), None)),
        }
    }

    fn outcome(&self, head: &response::Parts, body: &[u8], items: u32) -> Delivery {
        let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
        let format = content_type.map_or(self.format, |text| {
            BodyFormat::from_content_type(text.unwrap_or_default())
        });
        if head.status.is_success() && answer::is_web_page(body) {
            // The login page of a proxy, or of another program at this address.
            let what = format_args!("HTTP status {} with a web page: nothing was stored", head.status);
            let advice = Some(advice::NOT_A_RECEIVER);
            return (self.peer).delivery(Verdict::Service, what, advice, None, &self.client);
        }
        if head.status.is_success() {
            return answer::success(format, body, self.signal, items);
        }
        let message = answer::refusal(format, body)
            .map(|text| format!(": {text}"))
            .unwrap_or_default();
        let what = format_args!("HTTP status {}{message}", head.status);
        let text = String::from_utf8_lossy(body);
        let advice = advice::http_status(head.status, &text);
        let verdict = Verdict::from_http(head.status, &text);
        self.peer
            .delivery(verdict, what, advice, retry_after(&head.headers), &self.client)
    }
}

fn headers(config: &SignalConfig, format: BodyFormat) -> HeaderMap {
    let mut headers = config.headers.clone();
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
