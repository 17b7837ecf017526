//! HTTP clients: protobuf or JSON in a POST, compressed or not.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use http_body_util::Full;
use hyper::body::Incoming;
use pulsetrain_otlp::Signal;
use serde_json::json;
use tonic::body::Body;

use super::{
    bodies::Collected,
    inflate::Coding,
    inlet::{Inlet, Message},
    refusal::Refusal,
};

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// How the body of a request and of its answer is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    Protobuf,
    Json,
}

/// Answers a request of an HTTP client.
pub(super) async fn answer(inlet: &Inlet, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path();
    let Some(signal) = Signal::ALL.into_iter().find(|signal| is_path(path, *signal)) else {
        return words(
            StatusCode::NOT_FOUND,
            "send to /v1/traces, /v1/metrics or /v1/logs\n",
        );
    };
    if request.method() != Method::POST {
        let mut answer = words(StatusCode::METHOD_NOT_ALLOWED, "use POST\n");
        set(&mut answer, ALLOW, "POST");
        return answer;
    }
    let Some(spelling) = spelling(request.headers()) else {
        return words(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send application/x-protobuf or application/json\n",
        );
    };
    match export(inlet, signal, spelling, request).await {
        Ok(()) => success(spelling),
        Err(refusal) => refused(inlet, spelling, &refusal),
    }
}

fn is_path(path: &str, signal: Signal) -> bool {
    path.strip_prefix("/v1/") == Some(signal.as_str())
}

/// What the body is; a client that does not say it sends what OTLP has for its default.
fn spelling(headers: &HeaderMap) -> Option<Spelling> {
    let content = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let kind = content.unwrap_or(PROTOBUF.as_bytes()).split(|byte| *byte == b';');
    let kind = kind.map(<[u8]>::trim_ascii).next().unwrap_or_default();
    [(PROTOBUF, Spelling::Protobuf), (JSON, Spelling::Json)]
        .into_iter()
        .find_map(|(name, spelling)| kind.eq_ignore_ascii_case(name.as_bytes()).then_some(spelling))
}

async fn export(
    inlet: &Inlet,
    signal: Signal,
    spelling: Spelling,
    request: Request<Incoming>,
) -> Result<(), Refusal> {
    let limit = inlet.limits().bytes;
    let coding = coding(request.headers())?;
    // Who says that it is too long need not send it.
    let length = request.headers().get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(inlet.too_large());
    }
    let Collected { bytes, permit } = inlet.collect(request.into_body()).await?;
    let outcome = inlet.admitted(async {
        let body = inflated(bytes, coding, limit).await?;
        let message = match spelling {
            Spelling::Protobuf => Message::Protobuf(body),
            Spelling::Json => Message::Json(body),
        };
        inlet.take(signal, message).await
    });
    let outcome = outcome.await?;
    drop(permit);
    outcome
}

async fn inflated(body: Bytes, coding: Coding, limit: usize) -> Result<Bytes, Refusal> {
    if coding == Coding::Identity {
        return match body.len() > limit {
            true => Err(Refusal::TooLarge { allowed: limit }),
            false => Ok(body),
        };
    }
    let inflated = tokio::task::spawn_blocking(move || coding.inflate(&body, limit)).await;
    inflated.unwrap_or(Err(Refusal::Ending)).map(Bytes::from)
}

fn coding(headers: &HeaderMap) -> Result<Coding, Refusal> {
    let word = headers.get(CONTENT_ENCODING);
    let word = word.map_or("", |word| word.to_str().unwrap_or("?"));
    Coding::named(word).ok_or_else(|| {
        Refusal::Unsupported(format!("Content-Encoding {word} is none of gzip, zstd, identity"))
    })
}

/// An answer without fields says that everything was taken.
fn success(spelling: Spelling) -> Response<Body> {
    match spelling {
        Spelling::Protobuf => response(StatusCode::OK, PROTOBUF, Bytes::new()),
        Spelling::Json => response(StatusCode::OK, JSON, Bytes::from_static(b"{}")),
    }
}

/// The answer to a request that is refused without a look at its body; the connection ends with it.
pub(super) fn refused_for_now<B>(inlet: &Inlet, request: &Request<B>, refusal: &Refusal) -> Response<Body> {
    let spelling = spelling(request.headers()).unwrap_or(Spelling::Protobuf);
    let mut answer = refused(inlet, spelling, refusal);
    if request.version() < Version::HTTP_2 {
        set(&mut answer, CONNECTION, "close");
    }
    answer
}

/// `google.rpc.Status` in the spelling of the request.
fn refused(inlet: &Inlet, spelling: Spelling, refusal: &Refusal) -> Response<Body> {
    inlet.notices().refused(refusal);
    let (kind, body) = match spelling {
        Spelling::Protobuf => (PROTOBUF, refusal.status_message()),
        Spelling::Json => {
            let status = json!({"code": refusal.grpc_code() as i32, "message": refusal.to_string()});
            (JSON, status.to_string().into_bytes())
        }
    };
    let mut answer = response(refusal.http_status(), kind, body.into());
    if let Some(wait) = refusal.retry_after() {
        set(&mut answer, RETRY_AFTER, &wait.as_secs().to_string());
    }
    answer
}

fn words(status: StatusCode, text: &'static str) -> Response<Body> {
    response(
        status,
        "text/plain; charset=utf-8",
        Bytes::from_static(text.as_bytes()),
    )
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
