//! Jaeger: traces by id and by service, through `/api/v3/traces` (OTLP with nanoseconds), or through `/api/traces` if an
//! instance has only that path.

use std::collections::BTreeSet;

use pulsetrain_otlp::{UnixNanos, limits::Limits, walk};

use super::{
    client::{BackendOptions, Body, StoreClient, excerpt},
    error::BackendError,
    query::Query,
    response::{QueryResponse, convert_response, looks_like_response},
    window::{Page, TimeWindow, TraceSearch, bisect_window},
};

const STORE: &str = "Jaeger";
const JSON: &str = "application/json";

/// The limit on the traces of one answer, which has all of their spans.
const PAGE: usize = 100;

/// A client of a Jaeger instance.
#[derive(Clone)]
pub struct JaegerBackend {
    client: StoreClient,
    max_traces: usize,
}

impl JaegerBackend {
    /// Creates a client for the base address of a query service, such as `http://localhost:16686`.
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

    /// Passes the traces of a service (and of one operation of it) that begin in a window to `take` and returns their ids.
    ///
    /// # Errors
    ///
    /// Returns an error if the store rejected the query or did not answer.
    pub async fn find(
        &self,
        service: &str,
        operation: Option<&str>,
        window: TimeWindow,
        mut take: impl FnMut(QueryResponse),
    ) -> Result<TraceSearch, BackendError> {
        let ask = async |window: TimeWindow| {
            let page = PAGE.min(self.max_traces);
            let mut query = Query::new("/api/v3/traces")
                .with("query.service_name", service)
                .with("query.start_time_min", rfc3339(window.start))
                .with("query.start_time_max", rfc3339(window.end))
                // The name of the same parameter before and after Jaeger 2.5.
                .with("query.num_traces", page)
                .with("query.search_depth", page)
                .with("query.raw_traces", true);
            if let Some(operation) = operation {
                query = query.with("query.operation_name", operation);
            }
            let answer = match self.client.get(&query.finish(), JSON).await {
                Ok(body) => read(body)?,
                Err(error) if error.is_not_found() => QueryResponse::default(),
                Err(error) => return Err(error),
            };
            Ok(Page {
                ids: trace_ids(&answer).into_iter().collect(),
                content: answer,
            })
        };
        let hand_on = async |mut page: Page<QueryResponse>, found: &BTreeSet<String>| {
            let (before, new): (Vec<_>, Vec<_>) = page.ids.into_iter().partition(|id| found.contains(id));
            let room = self.max_traces - found.len();
            if !before.is_empty() || new.len() > room {
                // The answer also has traces of earlier answers, or traces over the limit: fetch the new ones one by one.
                page.content.messages.clear();
                for id in new.iter().take(room) {
                    self.trace(id).await?.into_iter().for_each(&mut take);
                }
            }
            take(page.content);
            Ok(())
        };
        let page = PAGE.min(self.max_traces);
        let (search, misplaced) = bisect_window(window, page, self.max_traces, ask, hand_on).await?;
        let room = self.max_traces.saturating_sub(search.ids.len() - misplaced.len());
        for id in misplaced.iter().take(room) {
            self.trace(id).await?.into_iter().for_each(&mut take);
        }
        Ok(search)
    }

    /// Returns a trace, or `None` if Jaeger does not have it.
    ///
    /// # Errors
    ///
    /// Returns an error if the store gives no answer.
    pub async fn trace(&self, id: &str) -> Result<Option<QueryResponse>, BackendError> {
        // Without `raw_traces`, Jaeger shifts spans to correct an assumed clock skew.
        match self.answer(&format!("/api/v3/traces/{id}?raw_traces=true")).await {
            // A Jaeger without this path answers with the page of its user interface.
            Err(no_answer @ BackendError::Answer { .. }) => {
                let old = self.answer(&format!("/api/traces/{id}?raw=true")).await;
                old.map_err(|_| no_answer)
            }
            other => other,
        }
    }

    /// Requests a path and returns the answer, or `None` if it is empty or not found.
    async fn answer(&self, path: &str) -> Result<Option<QueryResponse>, BackendError> {
        match self.client.get(path, JSON).await {
            Ok(body) => read(body)
                .map(|answer| (!answer.messages.is_empty() || !answer.problems.is_empty()).then_some(answer)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn read(body: Body) -> Result<QueryResponse, BackendError> {
    if !looks_like_response(&body.bytes[..body.bytes.len().min(256)]) {
        return Err(BackendError::Answer {
            problem: format!("{:?}", excerpt(&body.bytes)),
            url: body.url,
            store: STORE,
        });
    }
    Ok(convert_response(&body.bytes, &Limits::default()))
}

/// Returns the ids of the traces in an answer, in hexadecimal.
fn trace_ids(answer: &QueryResponse) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for (_, bytes) in &answer.messages {
        let spans = walk::spans(bytes).flatten().flat_map(|resource| resource.items());
        ids.extend(spans.flatten().map(|span| hex(span.trace_id)));
    }
    ids
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Formats a time as RFC 3339 with nanoseconds.
fn rfc3339(time: UnixNanos) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(time.0))
        .map_or_else(|_| String::new(), |time| time.to_string())
}
