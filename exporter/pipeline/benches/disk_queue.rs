//! The cost of a disk queue: acknowledged messages per second and the ack latency, in memory and by sync policy.
//!
//! `cargo bench -p pulsetrain-pipeline --bench disk_queue` prints one table. Clients push messages of 1 KiB one after the
//! other into a pipeline whose sink accepts everything at once. The variants alternate, and each row is the best of its
//! rounds. The folder is in `TMPDIR`: set it to the disk to measure.

#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::{
    error::Error,
    io::{self, Write},
    path::Path,
    slice,
    time::{Duration, Instant},
};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{
    Batch, BoxFuture, Delivery, Ingress, Pipeline, Requirement, Sink, SinkTaskConfig,
    disk::{DiskQueue, DiskQueueConfig, SyncPolicy},
};

const ROUNDS: usize = 3;
const MESSAGE_BYTES: usize = 1024;
const TIME: Duration = Duration::from_secs(1);

/// The variants of a queue: in memory, or on disk with a sync policy.
const WAYS: [(&str, Option<SyncPolicy>); 4] = [
    ("memory", None),
    ("disk, sync: never", Some(SyncPolicy::Never)),
    (
        "disk, sync: interval",
        Some(SyncPolicy::Interval(Duration::from_secs(1))),
    ),
    ("disk, sync: always", Some(SyncPolicy::Always)),
];

/// A sink that accepts everything at once.
struct Healthy;

impl Sink for Healthy {
    fn name(&self) -> &str {
        "healthy"
    }

    fn deliver<'a>(&'a mut self, _batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(std::future::ready(Delivery::Delivered))
    }
}

/// One row of the table.
#[derive(Clone, Copy, Default)]
struct Measured {
    per_second: f64,
    median: Duration,
    p99: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut out = io::stdout().lock();
    writeln!(out, "$ cargo bench -p pulsetrain-pipeline --bench disk_queue")?;
    writeln!(
        out,
        "messages of {MESSAGE_BYTES} bytes, best of {ROUNDS} rounds of {TIME:?}\n"
    )?;
    writeln!(
        out,
        "{:>7}  {:<22} {:>12} {:>12} {:>12}",
        "clients", "queue", "messages/s", "median µs", "p99 µs"
    )?;
    for clients in [1, 8, 64] {
        let mut best = [Measured::default(); WAYS.len()];
        for round in 0..ROUNDS {
            for (place, (_, sync)) in WAYS.iter().enumerate() {
                let queue = folder.path().join(format!("{clients}-{round}-{place}"));
                let measured = measure(*sync, &queue, clients)?;
                if measured.per_second > best[place].per_second {
                    best[place] = measured;
                }
            }
        }
        for ((way, _), row) in WAYS.iter().zip(best) {
            writeln!(
                out,
                "{clients:>7}  {way:<22} {:>12.0} {:>12.0} {:>12.0}",
                row.per_second,
                row.median.as_secs_f64() * 1e6,
                row.p99.as_secs_f64() * 1e6
            )?;
        }
    }
    Ok(())
}

fn measure(sync: Option<SyncPolicy>, folder: &Path, clients: usize) -> Result<Measured, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let disk = sync.map(|sync| {
        let config = DiskQueueConfig {
            sync,
            ..DiskQueueConfig::new(folder)
        };
        DiskQueue::open(config, |_| {})
    });
    let task = SinkTaskConfig {
        disk: disk.transpose()?,
        ..SinkTaskConfig::default()
    };
    Ok(runtime.block_on(async {
        let (pipeline, ingress) = Pipeline::builder()
            .sink_with(Box::new(Healthy), Requirement::Required, task)
            .start();
        let begun = Instant::now();
        let clients = (0..clients).map(|_| tokio::spawn(push(ingress.clone(), begun + TIME)));
        let mut waits = Vec::new();
        for client in clients.collect::<Vec<_>>() {
            waits.extend(client.await.unwrap_or_default());
        }
        let per_second = waits.len() as f64 / begun.elapsed().as_secs_f64();
        pipeline.drain(Duration::from_secs(10)).await;
        waits.sort_unstable();
        let at = |part: f64| {
            waits
                .get((waits.len() as f64 * part) as usize)
                .copied()
                .unwrap_or_default()
        };
        Measured {
            per_second,
            median: at(0.5),
            p99: at(0.99),
        }
    }))
}

/// Pushes messages until a time, and returns the ack latency of each.
async fn push(ingress: Ingress, until: Instant) -> Vec<Duration> {
    let batch = Batch::new(Signal::Logs, 1, vec![0; MESSAGE_BYTES]);
    let mut waits = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        let Ok(mut reserved) = ingress.try_reserve(slice::from_ref(&batch)) else {
            tokio::task::yield_now().await;
            continue;
        };
        if ingress.send_reserved(batch.clone(), &mut reserved).is_ok() && reserved.held().await.is_ok() {
            waits.push(begun.elapsed());
        }
        tokio::task::yield_now().await;
    }
    waits
}
