//! HTTP: POST of protobuf or JSON, compressed or not.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use hyper::body::Incoming;
use pulsetrain_otlp::Signal;
use serde_json::json;
use tonic::body::Body;

use crate::{
    bodies::{Collected, discard},
    decompress::Coding,
    ingest::{IngestHandler, Message, wait_until_held},
    rejection::Rejection,
};

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// The encoding of the body of a request and of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Protobuf,
    Json,
}

/// The export that the head of a request describes.
#[derive(Clone, Copy, Debug)]
struct Export {
    signal: Signal,
    encoding: Encoding,
    coding: Coding,
}

/// Answers an HTTP request.
pub(super) async fn answer(handler: &IngestHandler, request: Request<Incoming>) -> Response<Body> {
    let encoding = encoding(request.headers()).unwrap_or(Encoding::Json);
    let (head, mut body) = request.into_parts();
    let outcome = match Export::from_head(handler, &head) {
        Ok(export) => export.run(handler, &mut body).await,
        Err(rejection) => Err(rejection),
    };
    match outcome {
        Ok(()) => success(encoding),
        Err(rejection) => {
            if head.version < Version::HTTP_2 {
                // An HTTP/1 client reads the response after it has written its request.
                discard(body);
            }
            rejected(handler, encoding, &rejection)
        }
    }
}

impl Export {
    /// Checks the head of a request before its body is read.
    fn from_head(handler: &IngestHandler, head: &http::request::Parts) -> Result<Self, Rejection> {
        handler.authorize(&head.headers)?;
        let path = head.uri.path();
        let signal = Signal::ALL.into_iter().find(|signal| is_path(path, *signal));
        let signal = signal.ok_or_else(|| Rejection::NoSuchPath(path.to_owned()))?;
        if head.method != Method::POST {
            return Err(Rejection::Method(head.method.clone()));
        }
        let encoding = encoding(&head.headers).ok_or_else(|| {
            // A web site can make a browser send a POST without a type to any address, but not one of these types.
            Rejection::Unsupported(format!(
                "Content-Type is missing or not of OTLP; send {PROTOBUF} or {JSON}"
            ))
        })?;
        let coding = Coding::from_header(&head.headers, "Content-Encoding")?;
        let length = head.headers.get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > handler.limits().bytes) {
            return Err(handler.too_large());
        }
        Ok(Self {
            signal,
            encoding,
            coding,
        })
    }

    async fn run(self, handler: &IngestHandler, body: &mut Incoming) -> Result<(), Rejection> {
        let collected = handler.collect(body).await?;
        let outcome = handler.admitted(async {
            let Collected { bytes, permit } = self.decompressed(handler, collected).await?;
            let outcome = match self.encoding {
                Encoding::Protobuf => handler.ingest(self.signal, Message::Protobuf(bytes)).await,
                Encoding::Json => {
                    // The protobuf form of a JSON message is at most as long.
                    let _protobuf = handler.bodies().permit(bytes.len())?;
                    handler.ingest(self.signal, Message::Json(bytes)).await
                }
            };
            drop(permit);
            outcome
        });
        wait_until_held(outcome.await??).await
    }

    /// Returns the message in a body.
    async fn decompressed(self, handler: &IngestHandler, body: Collected) -> Result<Collected, Rejection> {
        if self.coding != Coding::Identity {
            return handler.decompress(self.coding, body.bytes).await;
        }
        match body.bytes.len() > handler.limits().bytes {
            true => Err(handler.too_large()),
            false => Ok(body),
        }
    }
}

fn is_path(path: &str, signal: Signal) -> bool {
    path.strip_prefix("/v1/") == Some(signal.as_str())
}

/// Returns the encoding of the body, or `None` if the header is missing or names another type.
fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let content = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes)?;
    let kind = content.split(|byte| *byte == b';').next().unwrap_or_default();
    let kind = kind.trim_ascii();
    [(PROTOBUF, Encoding::Protobuf), (JSON, Encoding::Json)]
        .into_iter()
        .find_map(|(name, encoding)| kind.eq_ignore_ascii_case(name.as_bytes()).then_some(encoding))
}

/// Returns the response that acknowledges all items: a message without fields.
fn success(encoding: Encoding) -> Response<Body> {
    match encoding {
        Encoding::Protobuf => response(StatusCode::OK, PROTOBUF, Bytes::new()),
        Encoding::Json => response(StatusCode::OK, JSON, Bytes::from_static(b"{}")),
    }
}

/// Returns the response to a request that is rejected before its body is read. It closes an HTTP/1 connection.
pub(super) fn rejected_and_closed<B>(
    handler: &IngestHandler,
    request: &Request<B>,
    rejection: &Rejection,
) -> Response<Body> {
    let encoding = encoding(request.headers()).unwrap_or(Encoding::Protobuf);
    let mut answer = rejected(handler, encoding, rejection);
    if request.version() < Version::HTTP_2 {
        set(&mut answer, CONNECTION, "close");
    }
    answer
}

/// Returns the `google.rpc.Status` of a rejection in the encoding of the request.
fn rejected(handler: &IngestHandler, encoding: Encoding, rejection: &Rejection) -> Response<Body> {
    handler.report(rejection);
    let (kind, body) = match encoding {
        Encoding::Protobuf => (PROTOBUF, rejection.status_message()),
        Encoding::Json => {
            let status = json!({"code": rejection.grpc_code() as i32, "message": rejection.to_string()});
            (JSON, status.to_string().into_bytes())
        }
    };
    let mut answer = response(rejection.http_status(), kind, body.into());
    if let Some(wait) = rejection.retry_after() {
        set(&mut answer, RETRY_AFTER, &wait.as_secs().to_string());
    }
    match rejection {
        Rejection::Unauthenticated(why) => {
            answer.headers_mut().insert(WWW_AUTHENTICATE, why.challenge());
        }
        Rejection::Method(_) => set(&mut answer, ALLOW, "POST"),
        _ => {}
    }
    answer
}

fn response(status: StatusCode, kind: &str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::new(body)));
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, kind);
    response
}

fn set(answer: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
