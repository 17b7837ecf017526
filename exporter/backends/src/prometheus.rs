//! Prometheus: the samples of a selector in a time window, each with its scrape time, as OTLP.
//!
//! A selector is queried with its range (`train_loss[3600s]`), which returns every sample with its own time; any other
//! expression is evaluated at regular steps (`query_range`). NaN stays NaN.

mod series;

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use pulsetrain_otlp::{Signal, UnixNanos, json};
use serde::Deserialize;

use self::series::{MetadataByName, Series};
use super::{
    client::{BackendOptions, StoreClient},
    error::BackendError,
    query::Query,
    window::TimeWindow,
};

const STORE: &str = "Prometheus";
const JSON: &str = "application/json";

/// The longest time range of one query: a store limits the samples that a query loads.
const STRETCH: Duration = Duration::from_secs(6 * 3600);

/// The number of evaluations in a window; the step is never shorter than a second.
const EVALUATIONS: u32 = 2_000;

/// A client of Prometheus, or of a store with the same API.
#[derive(Clone)]
pub struct PrometheusBackend {
    client: StoreClient,
}

/// Samples as OTLP, and the problems of the conversion.
#[derive(Debug, Default)]
pub struct Samples {
    /// OTLP messages, each with its signal.
    pub messages: Vec<(Signal, Vec<u8>)>,
    /// The number of series in the messages.
    pub series: usize,
    /// The samples that were left out, and the warnings of the store.
    pub problems: Vec<String>,
}

#[derive(Deserialize)]
struct ApiResponse<T> {
    data: Option<T>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Matrix {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    help: String,
    #[serde(default)]
    unit: String,
}

impl PrometheusBackend {
    /// Creates a client for a base address, such as `http://localhost:9090`.
    ///
    /// # Errors
    ///
    /// Returns an error if the address or a header cannot be used.
    pub fn new(url: &str, options: &BackendOptions) -> Result<Self, BackendError> {
        Ok(Self {
            client: StoreClient::new(url, options)?,
        })
    }

    /// Returns the samples of a selector or an expression in a window. `resource` returns the encoded resource of a job
    /// and an instance, or `None`; the resource is then built from these two labels.
    ///
    /// # Errors
    ///
    /// The store rejected the expression or did not answer.
    pub async fn samples(
        &self,
        expression: &str,
        window: TimeWindow,
        resource: impl Fn(&str, &str) -> Option<Vec<u8>>,
    ) -> Result<Samples, BackendError> {
        let known = self.metadata().await?;
        let mut samples = Samples::default();
        let mut all = Vec::<Series>::new();
        let mut places = HashMap::new();
        for stretch in stretches(window) {
            let path = request_path(expression, stretch, window);
            let answer = self.ask_for_series(&path).await?;
            samples.problems.extend(
                answer
                    .warnings
                    .into_iter()
                    .map(|warning| format!("{expression}: {warning}")),
            );
            for series in answer.data.into_iter().flat_map(|matrix| matrix.result) {
                let place = *places.entry(series.labels()).or_insert_with(|| {
                    all.push(series.without_samples());
                    all.len() - 1
                });
                all[place].append(series);
            }
        }
        samples.series = all.len();
        for series in all {
            if let Some(problem) = series.problem() {
                samples.problems.push(problem);
            }
            let message = series.encode(&known, &resource);
            samples
                .messages
                .extend(message.map(|bytes| (Signal::Metrics, bytes)));
        }
        Ok(samples)
    }

    /// Evaluates an expression now, and returns the labels of each series of the result.
    ///
    /// # Errors
    ///
    /// The store rejected the expression or did not answer.
    pub async fn labels(&self, expression: &str) -> Result<Vec<BTreeMap<String, String>>, BackendError> {
        let path = Query::new("/api/v1/query").with("query", expression).finish();
        let answer = self.ask::<Matrix>(&path).await?;
        let series = answer.data.into_iter().flat_map(|matrix| matrix.result);
        Ok(series.map(Series::into_labels).collect())
    }

    /// Returns the metadata of every metric; empty if the store has no such endpoint.
    async fn metadata(&self) -> Result<MetadataByName, BackendError> {
        let path = Query::new("/api/v1/metadata")
            .with("limit_per_metric", 1)
            .finish();
        match self.ask::<HashMap<String, Vec<Metadata>>>(&path).await {
            Ok(answer) => {
                let first = |(name, mut all): (String, Vec<Metadata>)| Some((name, all.pop()?));
                Ok(MetadataByName::new(
                    answer.data.into_iter().flatten().filter_map(first),
                ))
            }
            // Some stores with this API lack the endpoint.
            Err(BackendError::Status { status, .. }) if status.is_client_error() => {
                Ok(MetadataByName::default())
            }
            Err(error) => Err(error),
        }
    }

    async fn ask<T: for<'a> Deserialize<'a>>(&self, path: &str) -> Result<ApiResponse<T>, BackendError> {
        let body = self.client.get(path, JSON).await?;
        serde_json::from_slice(&body.bytes).map_err(|error| body.unreadable(STORE, &error))
    }

    /// Requests series; of a truncated answer, the complete series are used.
    async fn ask_for_series(&self, path: &str) -> Result<ApiResponse<Matrix>, BackendError> {
        let body = self.client.get(path, JSON).await?;
        whole_series(&body.bytes).map_err(|error| body.unreadable(STORE, &error))
    }
}

fn whole_series(text: &[u8]) -> Result<ApiResponse<Matrix>, serde_json::Error> {
    let error = match serde_json::from_slice(text) {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    let closed = json::close_truncated(text).filter(|_| error.is_eof());
    let Some((whole, cut)) = closed else {
        return Err(error);
    };
    let mut answer: ApiResponse<Matrix> = serde_json::from_slice(&whole).map_err(|_| error)?;
    answer.warnings.push(format!(
        "the response is truncated at byte {}; the data before byte {cut} is used",
        text.len()
    ));
    Ok(answer)
}

/// Splits a window into stretches of at most `STRETCH`.
fn stretches(window: TimeWindow) -> Vec<TimeWindow> {
    let mut stretches = Vec::new();
    let mut start = window.start;
    loop {
        let end = start.saturating_add(STRETCH).min(window.end);
        stretches.push(TimeWindow { start, end });
        if end >= window.end {
            return stretches;
        }
        start = end;
    }
}

/// Returns the request for a stretch of a window.
fn request_path(expression: &str, stretch: TimeWindow, window: TimeWindow) -> String {
    if is_selector(expression) {
        // The start of a range is exclusive.
        let seconds = stretch.duration().as_secs_f64().ceil() as u64 + 1;
        return Query::new("/api/v1/query")
            .with("query", format!("{expression}[{seconds}s]"))
            .with("time", seconds_of(stretch.end))
            .finish();
    }
    let step = (window.duration() / EVALUATIONS).max(Duration::from_secs(1));
    Query::new("/api/v1/query_range")
        .with("query", expression)
        .with("start", seconds_of(stretch.start))
        .with("end", seconds_of(stretch.end))
        .with("step", format!("{:.3}", step.as_secs_f64()))
        .finish()
}

fn seconds_of(time: UnixNanos) -> String {
    // Rounded up to the millisecond, the resolution of Prometheus.
    let millis = time.0.div_ceil(1_000_000);
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// Returns whether an expression is only a name, only labels in braces, or both.
fn is_selector(expression: &str) -> bool {
    let text = expression.trim();
    let name = text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
            .len();
    match &text[name..] {
        "" => name > 0,
        labels => labels.starts_with('{') && closes_at_end(labels),
    }
}

/// Returns whether the last character of a text closes its first brace.
fn closes_at_end(text: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(open) if c == '\\' && open != '`' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None if c == '}' => return at + 1 == text.len(),
            None => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_distinguished_from_expressions() {
        for selector in [
            "up",
            "train_loss{rank=\"0\"}",
            "{__name__=~\"train_.*\"}",
            "a{b=\"}\"}",
            "job:x:rate5m",
        ] {
            assert!(is_selector(selector), "{selector}");
        }
        for expression in [
            "rate(x[1m])",
            "a + b",
            "a{b=\"c\"} * 2",
            "",
            "a{b=\"}",
            "sum by (x) (y)",
            "a offset 5m",
        ] {
            assert!(!is_selector(expression), "{expression}");
        }
    }

    #[test]
    fn truncated_response_yields_every_complete_series_and_reports_where_they_end() {
        let one = r#"{"metric":{"__name__":"loss","rank":"0"},"values":[[1.5,"2.5"],[2.5,"NaN"]]}"#;
        let other = one.replace("\"0\"", "\"é]}\"");
        let text =
            format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{one},{other}]}}}}"#);
        let ends = [one, &other].map(|series| text.find(series).unwrap() + series.len());
        for cut in 0..text.len() {
            let answer = whole_series(&text.as_bytes()[..cut]);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let Ok(answer) = answer else {
                assert_eq!(whole, 0, "{cut}");
                continue;
            };
            assert_eq!(answer.data.unwrap().result.len(), whole, "{cut}");
            let until = format!("before byte {}", ends[whole - 1]);
            assert!(answer.warnings[0].contains(&until), "{:?}", answer.warnings);
        }
        assert_eq!(whole_series(text.as_bytes()).unwrap().warnings, [""; 0]);
    }

    #[test]
    fn long_window_is_queried_in_contiguous_stretches() {
        let hour = 3_600_000_000_000;
        let window = TimeWindow {
            start: UnixNanos(hour),
            end: UnixNanos(14 * hour),
        };
        let stretches = stretches(window);
        assert_eq!(stretches.len(), 3);
        assert_eq!(stretches[0].start, window.start);
        assert_eq!(stretches[2].end, window.end);
        assert!(stretches.windows(2).all(|two| two[0].end == two[1].start));
        assert_eq!(
            request_path("up", stretches[2], window),
            "/api/v1/query?query=up%5B3601s%5D&time=50400.000"
        );
    }

    #[test]
    fn expression_is_queried_as_a_range_with_a_step() {
        let window = TimeWindow {
            start: UnixNanos(0),
            end: UnixNanos(4_000_000_000_000),
        };
        let path = request_path("a + b", window, window);
        assert!(
            path.starts_with("/api/v1/query_range?") && path.ends_with("step=2.000"),
            "{path}"
        );
    }
}
