//! The recorded answers of a real Grafana Tempo (`tests/corpus/tempo`), served on loopback.

use std::{fs, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Response, StatusCode, Uri, header},
};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{corpus, loopback};

/// The longest window of a search, in seconds: Tempo's default `max_search_duration`.
const LONGEST_WINDOW: u64 = 168 * 3_600;

/// A server that answers as the recorded Tempo did, which stops when it is dropped. It answers a search by its query, a trace by
/// its path and form, and 404 to everything else.
#[derive(Debug)]
pub struct RecordedTempo {
    address: SocketAddr,
    _runtime: Runtime,
}

/// One recorded answer.
#[derive(Debug)]
struct RecordedAnswer {
    uri: Uri,
    accept: String,
    status: StatusCode,
    content_type: String,
    body: Bytes,
    answers_any_search: bool,
}

impl RecordedTempo {
    /// Starts a Tempo with both versions of traces by id.
    pub fn start() -> Self {
        Self::serve(answers())
    }

    /// Starts a Tempo before 2.7, which has only the first version of traces by id.
    pub fn start_with_first_version() -> Self {
        let mut answers = answers();
        answers.retain(|answer| !answer.uri.path().starts_with("/api/v2/traces/"));
        Self::serve(answers)
    }

    /// Starts a Tempo that answers a search which was not recorded as the search for all traces. It fills panels, whatever they
    /// ask for.
    pub fn start_with_any_search() -> Self {
        let mut answers = answers();
        answers.push(RecordedAnswer {
            answers_any_search: true,
            ..RecordedAnswer::read("search_all")
        });
        Self::serve(answers)
    }

    fn serve(answers: Vec<RecordedAnswer>) -> Self {
        let (runtime, listener, address) = loopback::listen(0);
        let router = Router::new().fallback(answer).with_state(Arc::new(answers));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            address,
            _runtime: runtime,
        }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Returns the body of a recorded answer.
pub fn recorded_tempo_body(name: &str) -> Vec<u8> {
    let path = corpus(&format!("tempo/{name}.body"));
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the description of a recorded answer: request, status and headers.
pub fn recorded_tempo_answer(name: &str) -> Value {
    let path = corpus(&format!("tempo/{name}.json"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).expect("a recorded answer is JSON")
}

/// Returns the names of the recorded answers to GET requests.
pub fn recorded_tempo_requests() -> Vec<String> {
    let files = fs::read_dir(corpus("tempo")).expect("the corpus can be read");
    let mut names: Vec<String> = files
        .filter_map(|file| {
            let name = file.expect("the corpus can be read").file_name();
            Some(name.to_str()?.strip_suffix(".json")?.to_owned())
        })
        .filter(|name| recorded_tempo_answer(name)["method"] == "GET")
        .collect();
    names.sort();
    names
}

/// Returns the value of a parameter of a query, decoded.
pub fn query_parameter(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.into_iter().find(|(key, _)| *key == name)?.1;
    Some(percent_decoded(value))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("digits of a byte");
                bytes.push(u8::from_str_radix(digits, 16).expect("digits of a byte"));
                rest = after;
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).expect("a parameter is in UTF-8")
}

fn answers() -> Vec<RecordedAnswer> {
    let names = recorded_tempo_requests();
    names.iter().map(|name| RecordedAnswer::read(name)).collect()
}

impl RecordedAnswer {
    fn read(name: &str) -> Self {
        let recorded = recorded_tempo_answer(name);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let status = recorded["status"].as_u64().expect("an answer has a status");
        Self {
            uri: text(&recorded["path"]).parse().expect("a request has a path"),
            accept: text(&recorded["request_headers"]["accept"]),
            status: StatusCode::from_u16(status as u16).expect("a status"),
            content_type: text(&recorded["headers"]["Content-Type"]),
            body: recorded_tempo_body(name).into(),
            answers_any_search: false,
        }
    }

    fn fits(&self, uri: &Uri, accept: &str) -> bool {
        if uri.path() != "/api/search" {
            return self.uri.path() == uri.path() && self.accept == accept;
        }
        let is_same = |name| query_parameter(&self.uri, name) == query_parameter(uri, name);
        if self.answers_any_search {
            return true;
        }
        self.uri.path() == uri.path()
            && is_same("q")
            && is_same("limit")
            && is_too_long(&self.uri) == is_too_long(uri)
    }
}

fn is_too_long(uri: &Uri) -> bool {
    let seconds = |name| query_parameter(uri, name).and_then(|value| value.parse::<u64>().ok());
    match (seconds("start"), seconds("end")) {
        (Some(start), Some(end)) => end.saturating_sub(start) > LONGEST_WINDOW,
        _ => false,
    }
}

/// Returns whether a path is that of a trace, with an id.
fn is_trace(path: &str) -> bool {
    path.rsplit_once("/traces/")
        .is_some_and(|(_, id)| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

async fn answer(
    State(answers): State<Arc<Vec<RecordedAnswer>>>,
    uri: Uri,
    headers: HeaderMap,
) -> Response<axum::body::Body> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let accept = accept.unwrap_or_default();
    let found = answers.iter().find(|answer| answer.fits(&uri, accept));
    // The answer to an id that is not recorded is that to the unknown id.
    let found = found.or_else(|| {
        let (folder, _) = uri.path().rsplit_once('/').filter(|_| is_trace(uri.path()))?;
        let unknown: Uri = format!("{folder}/{:032x}", 1).parse().ok()?;
        answers.iter().find(|answer| answer.fits(&unknown, accept))
    });
    let response = Response::builder();
    match found {
        Some(found) => response
            .status(found.status)
            .header(header::CONTENT_TYPE, &found.content_type)
            .body(found.body.clone().into()),
        None => response
            .status(StatusCode::NOT_FOUND)
            .body("404 page not found".into()),
    }
    .expect("invariant: status and headers are valid")
}
