//! An OTLP/HTTP endpoint with scripted responses, which records its requests.

use std::{
    collections::VecDeque,
    future::pending,
    io::Read,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Response, StatusCode, Uri, header},
};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, time::Instant};

use crate::{Items, loopback};

/// One response of the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 200: everything is accepted.
    Accept,
    /// 200 with a partial success that rejects this number of items.
    Partial(u64),
    /// 503 with `Retry-After` in seconds.
    Busy(u64),
    /// 503 with the dates of this response and of the next attempt, as `Date` and `Retry-After`.
    BusyUntil(&'static str, &'static str),
    /// Any other status.
    Refuse(u16),
    /// 200 with this body.
    Say(String),
    /// 200 with a body that is declared as gzip but is not gzip.
    BrokenGzip,
    /// 200 after this delay.
    Late(Duration),
    /// No response at all.
    Hang,
}

/// One received request.
#[derive(Clone, Debug)]
pub struct Received {
    /// The path: `/v1/metrics`.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, inflated.
    pub body: Vec<u8>,
    /// The response of the endpoint.
    pub answer: Answer,
    /// The time of the request.
    pub at: Instant,
}

/// A running endpoint on loopback, which stops when it is dropped.
#[derive(Debug)]
pub struct FakeEndpoint {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    _runtime: Runtime,
}

#[derive(Debug)]
struct Shared {
    script: VecDeque<Answer>,
    by_path: Vec<(String, Answer)>,
    afterwards: Answer,
    received: Vec<Received>,
}

impl FakeEndpoint {
    /// Starts an endpoint that gives the responses of `script` in the order of the requests, and `afterwards` to all later
    /// ones.
    pub fn start(script: impl IntoIterator<Item = Answer>, afterwards: Answer) -> Self {
        Self::start_at(0, script, afterwards)
    }

    /// As [`start`](Self::start), at a port.
    pub fn start_at(port: u16, script: impl IntoIterator<Item = Answer>, afterwards: Answer) -> Self {
        let shared = Shared {
            script: script.into_iter().collect(),
            by_path: Vec::new(),
            afterwards,
            received: Vec::new(),
        };
        Self::serve(port, shared)
    }

    /// Starts an endpoint with one response for each of these paths; it accepts all requests to other paths.
    pub fn by_path(answers: impl IntoIterator<Item = (&'static str, Answer)>) -> Self {
        let answers = answers.into_iter();
        let shared = Shared {
            script: VecDeque::new(),
            by_path: answers.map(|(path, answer)| (path.to_owned(), answer)).collect(),
            afterwards: Answer::Accept,
            received: Vec::new(),
        };
        Self::serve(0, shared)
    }

    fn serve(port: u16, shared: Shared) -> Self {
        let shared = Arc::new(Mutex::new(shared));
        let (runtime, listener, address) = loopback::listen(port);
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            address,
            shared,
            _runtime: runtime,
        }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the response to all later requests.
    pub fn answer_with(&self, answer: Answer) {
        let mut shared = lock(&self.shared);
        shared.script.clear();
        shared.afterwards = answer;
    }

    /// Returns the requests so far, in order.
    pub fn received(&self) -> Vec<Received> {
        self.received_since(0)
    }

    /// Returns the requests after the first `known`, in order.
    pub fn received_since(&self, known: usize) -> Vec<Received> {
        lock(&self.shared).received[known..].to_vec()
    }

    /// Returns the items of all requests with the response `answer`; the bodies must be OTLP/JSON.
    pub fn items_answered(&self, answer: &Answer) -> Items {
        let received = self.received();
        let bodies = received.iter().filter(|request| request.answer == *answer);
        let lines = bodies.map(|request| String::from_utf8_lossy(&request.body).replace('\n', " ") + "\n");
        Items::parse(&lines.collect::<String>())
    }
}

async fn answer(
    State(shared): State<Arc<Mutex<Shared>>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<String> {
    let answer = {
        let mut shared = lock(&shared);
        let of_path = shared.by_path.iter().find(|(path, _)| path == uri.path());
        let of_path = of_path.map(|(_, answer)| answer.clone());
        let scripted = of_path.or_else(|| shared.script.pop_front());
        let answer = scripted.unwrap_or_else(|| shared.afterwards.clone());
        let body = inflated(&headers, &body);
        let path = uri.path().to_owned();
        shared.received.push(Received {
            path,
            headers,
            body,
            answer: answer.clone(),
            at: Instant::now(),
        });
        answer
    };
    let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
    let (response, body) = match answer {
        Answer::Say(text) => return response.body(text).expect("invariant: the headers are valid"),
        Answer::Accept => (response, json!({})),
        Answer::Partial(rejected) => (response, partial_success(uri.path(), rejected)),
        Answer::Busy(secs) => {
            let response = response
                .status(StatusCode::SERVICE_UNAVAILABLE)
                .header(header::RETRY_AFTER, secs);
            (response, json!({"message": "busy"}))
        }
        Answer::BusyUntil(date, next) => {
            let response = response.status(StatusCode::SERVICE_UNAVAILABLE);
            let response = response
                .header(header::DATE, date)
                .header(header::RETRY_AFTER, next);
            (response, json!({"message": "busy"}))
        }
        Answer::Refuse(status) => (response.status(status), json!({"message": "refused by the test"})),
        Answer::BrokenGzip => (
            response.header(header::CONTENT_ENCODING, "gzip"),
            json!("no gzip"),
        ),
        Answer::Late(delay) => {
            tokio::time::sleep(delay).await;
            (response, json!({}))
        }
        Answer::Hang => pending().await,
    };
    response
        .body(body.to_string())
        .expect("invariant: status and headers are valid")
}

fn partial_success(path: &str, rejected: u64) -> Value {
    let field = match path {
        "/v1/metrics" => "rejectedDataPoints",
        "/v1/traces" => "rejectedSpans",
        _ => "rejectedLogRecords",
    };
    json!({"partialSuccess": {field: rejected.to_string(), "errorMessage": "refused by the test"}})
}

fn inflated(headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    if headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|encoding| encoding != "gzip")
    {
        return body.to_vec();
    }
    let mut inflated = Vec::new();
    GzDecoder::new(body)
        .read_to_end(&mut inflated)
        .expect("a body with the encoding gzip is gzip");
    inflated
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().expect("no holder of this lock panics")
}
