//! Fetches many traces by their ids concurrently.

use std::collections::BTreeSet;

use pulsetrain_backends::{BackendError, JaegerBackend, QueryResponse, TempoBackend};
use pulsetrain_otlp::Signal;
use pulsetrain_trace_inputs::InputReport;
use tokio::task::JoinSet;

use super::report_lost;
use crate::failure::Failure;

/// A store that can look up traces by their ids.
#[derive(Clone)]
pub(super) enum Store {
    Tempo(TempoBackend),
    Jaeger(JaegerBackend),
}

impl Store {
    async fn trace(&self, id: &str) -> Result<Option<QueryResponse>, BackendError> {
        match self {
            Self::Tempo(tempo) => tempo.trace(id).await,
            Self::Jaeger(jaeger) => jaeger.trace(id).await,
        }
    }
}

/// Fetches up to `parallel` traces at a time, and passes each on as it arrives, which bounds the answers in memory. A
/// trace that cannot be fetched does not block the others, but a store that cannot be reached is not asked for the rest.
pub(super) async fn fetch(
    store: &Store,
    ids: BTreeSet<String>,
    parallel: usize,
    report: &mut InputReport,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut ids = ids.into_iter();
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < parallel.max(1)
            && let Some(id) = ids.next()
        {
            let store = store.clone();
            under_way.spawn(async move {
                let answer = store.trace(&id).await;
                (id, answer)
            });
        }
        let Some(done) = under_way.join_next().await else {
            return Ok(());
        };
        let (id, answer) = done.map_err(|error| Failure::failed(format!("a request failed: {error}")))?;
        match answer {
            Ok(Some(answer)) => report.take(answer, deliver)?,
            Ok(None) => report.problem(format!("there is no trace {id}")),
            Err(error) => {
                report_lost(report, &id, &error);
                if error.is_gone() {
                    let rest = ids.by_ref().count();
                    report_not_asked(report, rest as u64);
                }
            }
        }
    }
}

/// Reports the traces that were not requested.
fn report_not_asked(report: &mut InputReport, count: u64) {
    if count > 0 {
        report.problem(format!("{count} further traces were not requested"));
        report.lost += count - 1;
    }
}
