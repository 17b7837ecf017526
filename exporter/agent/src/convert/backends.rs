//! Inputs from backends: traces from Tempo and Jaeger, and the samples of Prometheus for the time of these traces.

mod arguments;
mod fetch;
mod span_summary;

use std::{collections::BTreeSet, ops::Range, time::Duration};

use pulsetrain_backends::{
    BackendError, JaegerBackend, PrometheusBackend, QueryResponse, TempoBackend, TimeWindow, TraceSearch,
};
use pulsetrain_otlp::{Signal, UnixNanos};
use pulsetrain_pipeline::clock;
use pulsetrain_trace_inputs::InputReport;

pub(crate) use self::arguments::BackendArguments;
use self::fetch::{Store, fetch};
pub(super) use self::span_summary::SpanSummary;
use crate::{failure::Failure, runtime};

/// The traces that a search in Tempo found.
pub(super) struct FoundTraces {
    tempo: TempoBackend,
    ids: BTreeSet<String>,
    report: InputReport,
}

/// Searches Tempo for the ids of the requested traces.
pub(super) fn search(
    arguments: &BackendArguments,
    window: Option<&Range<UnixNanos>>,
) -> Result<Option<FoundTraces>, Failure> {
    arguments.check()?;
    let Some(url) = &arguments.tempo else {
        return Ok(None);
    };
    let tempo = TempoBackend::new(url, &arguments.options()).map_err(Failure::usage)?;
    let mut report = store_report("tempo", url);
    let window = searched(window, arguments.since);
    let ids = runtime::start(2)?.block_on(tempo_ids(&tempo, arguments, window, &mut report))?;
    Ok(Some(FoundTraces { tempo, ids, report }))
}

/// Returns the maximum number of traces that the stores can return, or `None` if only the traces themselves show it.
pub(super) fn most_traces(arguments: &BackendArguments, found: Option<&FoundTraces>) -> Option<usize> {
    if arguments.service.is_some() {
        return None;
    }
    let of_jaeger = arguments.jaeger.as_ref().map_or(0, |_| arguments.trace_ids.len());
    Some(of_jaeger + found.map_or(0, |found| found.ids.len()))
}

/// Fetches the traces found in Tempo and the requested traces from Jaeger, and passes their messages on.
pub(super) fn read_traces(
    arguments: &BackendArguments,
    window: Option<&Range<UnixNanos>>,
    found: Option<FoundTraces>,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), Failure>,
) -> Result<Vec<InputReport>, Failure> {
    let window = searched(window, arguments.since);
    let mut reports = Vec::new();
    if let Some(FoundTraces {
        tempo,
        ids,
        mut report,
    }) = found
    {
        let store = Store::Tempo(tempo);
        runtime::start(2)?.block_on(fetch(&store, ids, arguments.parallel, &mut report, deliver))?;
        reports.push(report);
    }
    if let Some(url) = &arguments.jaeger {
        let jaeger = JaegerBackend::new(url, &arguments.options()).map_err(Failure::usage)?;
        let mut report = store_report("jaeger", url);
        runtime::start(2)?.block_on(from_jaeger(&jaeger, arguments, window, &mut report, deliver))?;
        reports.push(report);
    }
    Ok(reports)
}

/// Fetches the requested samples: of the window, or else of the time range of the spans, or else of the recent past.
pub(super) fn read_samples(
    arguments: &BackendArguments,
    window: Option<&Range<UnixNanos>>,
    seen: &SpanSummary,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), Failure>,
) -> Result<Option<InputReport>, Failure> {
    let Some(url) = &arguments.prometheus else {
        return Ok(None);
    };
    let window = match (window, seen.window()) {
        (None, Some(of_spans)) => of_spans,
        _ => searched(window, arguments.since),
    };
    let prometheus = PrometheusBackend::new(url, &arguments.options()).map_err(Failure::usage)?;
    let mut report = store_report("prometheus", url);
    let runtime = runtime::start(2)?;
    for selector in &arguments.selectors {
        let resource = |job: &str, instance: &str| seen.resource(job, instance);
        let samples = runtime.block_on(prometheus.samples(selector, window, resource));
        let samples = samples.map_err(Failure::failed)?;
        if samples.series == 0 {
            report.problem(format!("no series matches {selector} {}", words(window)));
        }
        samples
            .problems
            .into_iter()
            .for_each(|problem| report.problem(problem));
        report.deliver(samples.messages, deliver)?;
    }
    Ok(Some(report))
}

async fn tempo_ids(
    tempo: &TempoBackend,
    arguments: &BackendArguments,
    window: TimeWindow,
    report: &mut InputReport,
) -> Result<BTreeSet<String>, Failure> {
    let mut ids: BTreeSet<String> = arguments.trace_ids.iter().cloned().collect();
    if let Some(traceql) = &arguments.query {
        let search = tempo.search(traceql, window).await.map_err(Failure::failed)?;
        report_search(report, &search, traceql, window, arguments.limit);
        ids.extend(search.ids.into_iter().take(arguments.limit));
    }
    Ok(ids)
}

async fn from_jaeger(
    jaeger: &JaegerBackend,
    arguments: &BackendArguments,
    window: TimeWindow,
    report: &mut InputReport,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Some(service) = &arguments.service {
        let operation = arguments.operation.as_deref();
        let mut outcome = Ok(());
        let mut take = |answer: QueryResponse| {
            if outcome.is_ok() {
                outcome = report.take(answer, deliver);
            }
        };
        let found = jaeger.find(service, operation, window, &mut take).await;
        outcome?;
        let search = found.map_err(Failure::failed)?;
        report_search(report, &search, service, window, arguments.limit);
    }
    let ids = arguments.trace_ids.iter().cloned().collect();
    fetch(
        &Store::Jaeger(jaeger.clone()),
        ids,
        arguments.parallel,
        report,
        deliver,
    )
    .await
}

/// Returns the report about a store.
fn store_report(form: &'static str, url: &str) -> InputReport {
    InputReport::new(format!("{form} {url}"), form)
}

/// Reports a search that found nothing, or not every match.
fn report_search(
    report: &mut InputReport,
    search: &TraceSearch,
    question: &str,
    window: TimeWindow,
    limit: usize,
) {
    if search.ids.is_empty() {
        report.problem(format!(
            "no trace matches {question} {}; search a longer time with --since or --window",
            words(window)
        ));
    }
    if search.has_more {
        report.problem(format!(
            "there are more traces than the {} that were fetched; raise --limit, or search a shorter time",
            search.ids.len().min(limit)
        ));
    }
    if search.misplaced > 0 {
        report.problem(format!(
            "the store indexes {} of these traces at another time than that of their spans, so more may match {question} {}; \
             ask with a query that matches fewer traces",
            search.misplaced,
            words(window)
        ));
    }
}

/// Reports a trace that could not be fetched.
fn report_lost(report: &mut InputReport, id: &str, error: &BackendError) {
    report.problem(format!("trace {id}: {error}"));
}

/// Returns the time window of a search: the given window, cut at the present, or else the recent past.
fn searched(window: Option<&Range<UnixNanos>>, since: Duration) -> TimeWindow {
    let now = clock::unix_nanos();
    let before = |end: UnixNanos| end.saturating_sub(since);
    let Some(window) = window else {
        return TimeWindow {
            start: before(now),
            end: now,
        };
    };
    let end = window.end.min(now.max(window.start));
    TimeWindow {
        start: if window.start.is_known() {
            window.start
        } else {
            before(end)
        },
        end,
    }
}

fn words(window: TimeWindow) -> String {
    let [start, end] = [window.start, window.end].map(|instant| {
        let time = jiff::Timestamp::from_second((instant.0 / 1_000_000_000) as i64);
        time.map_or_else(|_| instant.to_string(), |time| time.to_string())
    });
    format!("between {start} and {end}")
}
