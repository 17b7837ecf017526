//! The Prometheus endpoint with its live page.

use std::{fmt::Display, sync::Arc};

use pulsetrain_page::{PageConfig, PageSink, PageStore};
use pulsetrain_pipeline::{CancellationToken, Sink, ThrottledLog};
use pulsetrain_prometheus::{PrometheusConfig, PrometheusSink};
use pulsetrain_sinks::SinkError;

use super::{BuiltSink, RetainedStores};
use crate::log::{self, Subject};

/// Opens a Prometheus endpoint, with the live page if `has_page`. It continues the series and the history in `kept`.
///
/// # Errors
/// Returns an error if the address cannot be listened on, or a file cannot be used.
pub(super) async fn open(
    name: &str,
    config: &PrometheusConfig,
    has_page: bool,
    kept: RetainedStores,
    stop: CancellationToken,
) -> Result<BuiltSink, SinkError> {
    let series = kept
        .series
        .filter(|store| store.config().has_same_series_settings(config));
    let sink = series.map_or_else(|| PrometheusSink::new(config), PrometheusSink::filling);
    let series = sink.store();
    let (name, address) = (name.to_owned(), config.listen.clone());
    let warning = address
        .tcp()
        .and_then(|tcp| config.exposure.cleartext_warning(tcp));
    let warned = name.clone();
    let log = ThrottledLog::new(move |event: &dyn Display| {
        log::warn(Subject::Sink(&name), format_args!("{address}: {event}"));
    });
    let report = Arc::new(move |kind: &str, event: &dyn Display| log.report(kind, event));
    let mut server = config.bind(series.clone(), Vec::new())?.with_report(report);
    if let Some(warning) = warning {
        log::warn(Subject::Sink(&warned), warning);
    }
    let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(sink)];
    let page = has_page.then(|| kept.page.unwrap_or_else(|| PageStore::new(PageConfig::default())));
    if let Some(page) = &page {
        server = server.with_routes(page.clone());
        sinks.push(Box::new(PageSink::new(page.clone())));
    }
    Ok(BuiltSink {
        sinks,
        server: Some(Box::pin(server.run(stop))),
        series: Some(series),
        page,
        ..BuiltSink::default()
    })
}
