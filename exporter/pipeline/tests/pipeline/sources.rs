//! Tests of sources that run concurrently.

use pulsetrain_pipeline::{BoxFuture, CancellationToken, Ingress, Pipeline, Problem, Source, run_sources};
use std::{panic::resume_unwind, time::Duration};

use crate::fake_sink::{Answer, FakeSink, batch};

type Run = fn(Ingress, CancellationToken) -> BoxFuture<'static, Result<(), Problem>>;

struct FakeSource(&'static str, Run);

impl Source for FakeSource {
    fn name(&self) -> &str {
        self.0
    }

    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        (self.1)(ingress, stop)
    }
}

fn read_two(ingress: Ingress, _stop: CancellationToken) -> BoxFuture<'static, Result<(), Problem>> {
    Box::pin(async move {
        let read = move || (0..2).try_for_each(|id| ingress.blocking_send(batch(id, 1, 10)));
        let read = tokio::task::spawn_blocking(read)
            .await
            .expect("the reader does not panic");
        read.map_err(|closed| Problem::new(closed.to_string()))
    })
}

fn until_stopped(_ingress: Ingress, stop: CancellationToken) -> BoxFuture<'static, Result<(), Problem>> {
    Box::pin(async move {
        stop.cancelled().await;
        Ok(())
    })
}

fn unreadable(_ingress: Ingress, _stop: CancellationToken) -> BoxFuture<'static, Result<(), Problem>> {
    Box::pin(async { Err("no permission: run it as the owner".into()) })
}

fn panicking(_ingress: Ingress, _stop: CancellationToken) -> BoxFuture<'static, Result<(), Problem>> {
    Box::pin(async { resume_unwind(Box::new("as scripted")) })
}

#[tokio::test]
async fn each_source_runs_to_completion_and_is_reported_in_order() {
    let (sink, witness) = FakeSink::scripted("quick", [Answer::Take.at_once()]);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
    let raiser = CancellationToken::new();
    let sources: [(&'static str, Run); 4] = [
        ("live", until_stopped),
        ("panics", panicking),
        ("denied", unreadable),
        ("file", read_two),
    ];
    let sources = sources.map(|(name, run)| Box::new(FakeSource(name, run)) as Box<dyn Source>);
    let stop = raiser.clone();
    let running = tokio::spawn(async move { run_sources(Vec::from(sources), &ingress, &stop).await });
    while witness.received_ids().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(!running.is_finished(), "the live source is not stopped yet");
    raiser.cancel();
    let reports = running.await.expect("no source takes the others down");
    let ends: Vec<_> = reports
        .iter()
        .map(|report| (report.name.as_str(), report.ended.clone()))
        .collect();
    assert_eq!(ends[0], ("live", Ok(())));
    assert_eq!(ends[1], ("panics", Err("panicked: as scripted".into())));
    assert_eq!(
        ends[2],
        ("denied", Err("no permission: run it as the owner".into()))
    );
    assert_eq!(ends[3], ("file", Ok(())));
    assert_eq!(
        pipeline.drain(Duration::from_secs(60)).await[0].counts.delivered,
        2
    );
}
