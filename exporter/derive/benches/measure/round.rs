//! One round of a bench: batches pass a pipeline with one sink, with or without a stage.

use std::time::{Duration, Instant};

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Pipeline, Sink, Stage};
use tokio::runtime::{Builder, Runtime};

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// Returns the time from the first batch into the pipeline until the drain, and the number of items that
/// arrived.
pub(crate) fn round(runtime: &Runtime, stage: Option<Box<dyn Stage>>, batches: &[Batch]) -> (Duration, u64) {
    let (pipeline, ingress) = runtime.block_on(async {
        let builder = Pipeline::builder().sink(Box::new(Counting(0)));
        match stage {
            Some(stage) => builder.stage(stage),
            None => builder,
        }
        .start()
    });
    let began = Instant::now();
    for batch in batches {
        ingress.blocking_send(batch.clone()).unwrap();
    }
    let reports = runtime.block_on(pipeline.drain(Duration::from_secs(30)));
    let took = began.elapsed();
    let least: u64 = batches.iter().map(|batch| u64::from(batch.items())).sum();
    let delivered = reports[0].counts.delivered;
    assert!(delivered >= least, "everything arrived");
    (took, delivered)
}

/// A sink that only counts.
struct Counting(u64);

impl Sink for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        self.0 += u64::from(batch.items());
        Box::pin(std::future::ready(Delivery::Delivered))
    }
}
