//! Grafana Tempo: traces by id (`/api/v2/traces`, or `/api/traces` if an instance has only that) and by TraceQL.
//!
//! Both answer in protobuf, which is OTLP as it was sent.

use pulsetrain_otlp::{
    Signal,
    limits::{Limits, check},
    wire::{Reader, WireValue},
};
use serde::Deserialize;

use super::{
    client::{BackendOptions, StoreClient, excerpt},
    error::BackendError,
    query::Query,
    response::QueryResponse,
    window::{Page, TimeWindow, TraceSearch, bisect_window},
};

const STORE: &str = "Tempo";
const PROTOBUF: &str = "application/protobuf";
const JSON: &str = "application/json";

/// The limit on the traces that one answer lists.
const PAGE: usize = 500;

/// `TraceByIDResponse.status` (tempopb): the trace is too large and is incomplete.
const PARTIAL: u64 = 1;

/// A client of a Tempo instance.
#[derive(Clone)]
pub struct TempoBackend {
    client: StoreClient,
    max_traces: usize,
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    traces: Option<Vec<FoundTrace>>,
}

#[derive(Deserialize)]
struct FoundTrace {
    #[serde(rename = "traceID")]
    id: String,
}

impl TempoBackend {
    /// Creates a client for a base address, such as `http://localhost:3200`.
    ///
    /// # Errors
    ///
    /// Returns an error if the address or a header cannot be used.
    pub fn new(url: &str, options: &BackendOptions) -> Result<Self, BackendError> {
        Ok(Self {
            client: StoreClient::new(url, options)?,
            max_traces: options.max_traces.max(1),
        })
    }

    /// Returns the ids of the traces that a TraceQL query finds in a window.
    ///
    /// # Errors
    ///
    /// The store rejected the query or did not answer.
    pub async fn search(&self, traceql: &str, window: TimeWindow) -> Result<TraceSearch, BackendError> {
        let ask = async |window: TimeWindow| {
            // Tempo requires a start with an end, in seconds, and excludes traces that begin at the end.
            let (start, end) = (window.start.0 / 1_000_000_000, window.end.0 / 1_000_000_000 + 1);
            let path = Query::new("/api/search")
                .with("q", traceql)
                .with("start", start)
                .with("end", end)
                .with("limit", PAGE)
                .with("spss", 1)
                .finish();
            let body = self.client.get(&path, JSON).await?;
            let search: Search =
                serde_json::from_slice(&body.bytes).map_err(|error| body.unreadable(STORE, &error))?;
            // Tempo omits the leading zeros of an id.
            let ids = search.traces.into_iter().flatten();
            let ids = ids.map(|found| format!("{:0>32}", found.id)).collect();
            Ok(Page { ids, content: () })
        };
        let search = bisect_window(window, PAGE, self.max_traces, ask, async |_, _| Ok(()));
        Ok(search.await?.0)
    }

    /// Returns a trace, or `None` if Tempo does not have it.
    ///
    /// # Errors
    ///
    /// Returns an error if the store gives no answer.
    pub async fn trace(&self, id: &str) -> Result<Option<QueryResponse>, BackendError> {
        let body = match self.client.get(&format!("/api/v2/traces/{id}"), PROTOBUF).await {
            Ok(body) => unwrapped(&body.bytes).map_err(|problem| (body.url, problem)),
            // A Tempo before 2.7 has only this path, and never answers with a part of a trace.
            Err(error) if error.is_not_found() => {
                match self.client.get(&format!("/api/traces/{id}"), PROTOBUF).await {
                    Ok(body) => Ok((body.bytes.into(), None)),
                    Err(error) if error.is_not_found() => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let bad = |(url, problem)| BackendError::Answer {
            url,
            store: STORE,
            problem,
        };
        let (bytes, partial) = body.map_err(bad)?;
        let counts = check(Signal::Traces, &bytes, &limits()).map_err(|error| {
            let url = format!("{}/api/traces/{id}", self.client.base());
            bad((url, format!("{error} in {:?}", excerpt(&bytes))))
        })?;
        if counts.items == 0 {
            return Ok(None);
        }
        Ok(Some(QueryResponse {
            messages: vec![(Signal::Traces, bytes)],
            problems: partial
                .map(|message| format!("Tempo returned only a part of trace {id}: {message}"))
                .into_iter()
                .collect(),
            ..QueryResponse::default()
        }))
    }
}

/// Returns generous limits: a trace in a store can be large, and a trace that the client rejects is lost.
fn limits() -> Limits {
    Limits {
        bytes: 1 << 30,
        items: 100_000_000,
        ..Limits::default()
    }
}

/// Returns the trace in a `TraceByIDResponse` (field 1), and the message if the trace is incomplete (fields 3 and 4).
fn unwrapped(response: &[u8]) -> Result<(Vec<u8>, Option<String>), String> {
    let (mut trace, mut is_partial, mut message) = (Vec::new(), false, String::new());
    for field in Reader::new(response) {
        let field = field.map_err(|error| format!("{error} in {:?}", excerpt(response)))?;
        match (field.number, field.value) {
            (1, WireValue::Bytes(bytes)) => trace.extend_from_slice(bytes),
            (3, WireValue::Varint(status)) => is_partial = status == PARTIAL,
            (4, WireValue::Bytes(bytes)) => message = excerpt(bytes),
            _ => {}
        }
    }
    Ok((trace, is_partial.then_some(message)))
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::json;

    use super::*;

    #[test]
    fn truncated_tempo_response_is_an_error_with_its_offset() {
        let text = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a"},{"name":"b"}]}]}]}"#;
        let mut trace = Vec::new();
        json::decode(text.as_bytes(), &limits(), &mut trace).unwrap();
        let response = [&[1 << 3 | 2, trace.len() as u8], &trace[..], b"\x22\x01m"].concat();
        for cut in 1..response.len() {
            match unwrapped(&response[..cut]) {
                Ok((whole, partial)) => {
                    assert_eq!((whole, partial, cut), (trace.clone(), None, trace.len() + 2));
                }
                Err(problem) => assert!(problem.contains("at byte "), "{cut}: {problem}"),
            }
        }
    }
}
