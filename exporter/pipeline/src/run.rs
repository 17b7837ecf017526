//! Runs sources concurrently, each to its own end.

use tokio::task::JoinSet;

use crate::{CancellationToken, Ingress, Problem, Source, panic::caught};

/// The report of a source that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceReport {
    /// The source's name.
    pub name: String,
    /// `Ok` if the source read its input to the end or was stopped; `Err` names the input that could not be read.
    pub ended: Result<(), Problem>,
}

/// Runs the sources concurrently until the last one has ended; the reports are in the order of the sources.
///
/// A source that panics is reported, and the others continue. When the future is dropped, the sources are cancelled.
pub async fn run_sources(
    sources: Vec<Box<dyn Source>>,
    ingress: &Ingress,
    stop: &CancellationToken,
) -> Vec<SourceReport> {
    let mut running = JoinSet::new();
    for (place, source) in sources.into_iter().enumerate() {
        let (ingress, stop) = (ingress.clone(), stop.clone());
        running.spawn(async move { (place, run(source, ingress, stop).await) });
    }
    let mut reports = running.join_all().await;
    reports.sort_by_key(|(place, _)| *place);
    reports.into_iter().map(|(_, report)| report).collect()
}

async fn run(source: Box<dyn Source>, ingress: Ingress, stop: CancellationToken) -> SourceReport {
    let name = source.name().to_owned();
    let ended = caught(|| source.run(ingress, stop)).await.unwrap_or_else(Err);
    SourceReport { name, ended }
}
