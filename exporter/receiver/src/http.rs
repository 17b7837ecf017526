//! HTTP clients: protobuf or JSON in a POST, compressed or not.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{
        ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
    },
};
use http_body_util::Full;
use hyper::body::Incoming;
use pulsetrain_otlp::Signal;
use serde_json::json;
use tonic::body::Body;

use super::{
    bodies::{Collected, discard},
    inflate::Coding,
    inlet::{Inlet, Message, held},
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

/// What the head of a request asks for.
#[derive(Clone, Copy, Debug)]
struct Export {
    signal: Signal,
    spelling: Spelling,
    coding: Coding,
}

/// Answers a request of an HTTP client.
pub(super) async fn answer(inlet: &Inlet, request: Request<Incoming>) -> Response<Body> {
    let spelling = spelling(request.headers()).unwrap_or(Spelling::Json);
    let (head, mut body) = request.into_parts();
    let outcome = match Export::of(inlet, &head) {
        Ok(export) => export.run(inlet, &mut body).await,
        Err(refusal) => Err(refusal),
    };
    match outcome {
        Ok(()) => success(spelling),
        Err(refusal) => {
            if head.version < Version::HTTP_2 {
                // The client reads the answer when it has written its request.
                discard(body);
            }
            refused(inlet, spelling, &refusal)
        }
    }
}

impl Export {
    /// Checks the head of a request, before anything of its body is read.
    fn of(inlet: &Inlet, head: &http::request::Parts) -> Result<Self, Refusal> {
        inlet.authorize(&head.headers)?;
        let path = head.uri.path();
        let signal = Signal::ALL.into_iter().find(|signal| is_path(path, *signal));
        let signal = signal.ok_or_else(|| Refusal::NoSuchPath(path.to_owned()))?;
        if head.method != Method::POST {
            return Err(Refusal::Method(head.method.clone()));
        }
        let spelling = spelling(&head.headers).ok_or_else(|| {
            // A web site can have a browser send a POST without a type to any address, but no other.
            Refusal::Unsupported(format!(
                "Content-Type is missing or not of OTLP; send {PROTOBUF} or {JSON}"
            ))
        })?;
        let coding = coding(&head.headers)?;
        let length = head.headers.get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if length.is_some_and(|length| length > inlet.limits().bytes) {
            return Err(inlet.too_large());
        }
        Ok(Self {
            signal,
            spelling,
            coding,
        })
    }

    async fn run(self, inlet: &Inlet, body: &mut Incoming) -> Result<(), Refusal> {
        let Collected { bytes, permit } = inlet.collect(body).await?;
        let outcome = inlet.admitted(async {
            let body = inflated(bytes, self.coding, inlet.limits().bytes).await?;
            let message = match self.spelling {
                Spelling::Protobuf => Message::Protobuf(body),
                Spelling::Json => Message::Json(body),
            };
            inlet.take(self.signal, message).await
        });
        let outcome = outcome.await?;
        drop(permit);
        held(outcome?).await
    }
}

fn is_path(path: &str, signal: Signal) -> bool {
    path.strip_prefix("/v1/") == Some(signal.as_str())
}

/// Returns the spelling of the body, `None` where the header is missing or names another type.
fn spelling(headers: &HeaderMap) -> Option<Spelling> {
    let content = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes)?;
    let kind = content.split(|byte| *byte == b';').next().unwrap_or_default();
    let kind = kind.trim_ascii();
    [(PROTOBUF, Spelling::Protobuf), (JSON, Spelling::Json)]
        .into_iter()
        .find_map(|(name, spelling)| kind.eq_ignore_ascii_case(name.as_bytes()).then_some(spelling))
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
    inlet.report(refusal);
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
    match refusal {
        Refusal::Unauthenticated(why) => {
            answer.headers_mut().insert(WWW_AUTHENTICATE, why.challenge());
        }
        Refusal::Method(_) => set(&mut answer, ALLOW, "POST"),
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
