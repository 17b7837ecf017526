//! The delay from a line of a log to the sink while thousands of logs get a line a second, through a disk queue.
//!
//! `cargo bench --package pulsetrain-tail --bench tail_many`; `LOGS=1000` sets the number of logs.

use std::{
    env,
    error::Error,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use pulsetrain_formats::format_by_name;
use pulsetrain_otlp::{Signal, Signals, walk};
use pulsetrain_pipeline::{
    Batch, BoxFuture, CancellationToken, Delivery, Pipeline, Requirement, Sink, SinkTaskConfig, Source,
    clock::{self, Instant},
    disk::{DiskQueue, DiskQueueConfig},
    run_sources,
};
use pulsetrain_tail::{Checkpointer, TailConfig, TailSource};

const SECONDS: u32 = 20;
const METRIC: &str = "train.loss";

/// Records the delay of each point, whose value is the time of its line in seconds after `begun`.
struct Delays {
    begun: Instant,
    seconds: Arc<Mutex<Vec<f64>>>,
}

impl Sink for Delays {
    fn name(&self) -> &str {
        "delays"
    }

    fn signals(&self) -> Signals {
        Signals::from_iter([Signal::Metrics])
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let now = self.begun.elapsed().as_secs_f64();
        let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        for resource in walk::metrics(batch.bytes()) {
            for metric in resource
                .into_iter()
                .flat_map(|resource| resource.items())
                .flatten()
            {
                if metric.name.to_str_lossy() == METRIC {
                    let _ = metric.each_point(|point| {
                        seconds.extend(point.number().map(|written| now - written.as_f64()));
                    });
                }
            }
        }
        Box::pin(std::future::ready(Delivery::Delivered))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let logs: u32 = env::var("LOGS")
        .ok()
        .and_then(|logs| logs.parse().ok())
        .unwrap_or(10_000);
    let folder = tempfile::tempdir()?;
    let begun = clock::now();
    for log in 0..logs {
        fs::create_dir(folder.path().join(format!("run{log}")))?;
        write_line(folder.path(), log, 0, begun)?;
    }
    let seconds = Arc::<Mutex<Vec<f64>>>::default();
    let sink = Delays {
        begun,
        seconds: Arc::clone(&seconds),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let (first, written) = runtime.block_on(follow(folder.path(), logs, sink))?;
    let mut seconds = seconds
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .split_off(0);
    let arrived = seconds.len();
    // The first lines wait for their logs to be found.
    seconds.drain(..(logs as usize).min(arrived));
    seconds.sort_by(f64::total_cmp);
    let at = |part: f64| {
        seconds
            .get((seconds.len() as f64 * part) as usize)
            .copied()
            .unwrap_or_default()
    };
    writeln!(
        io::stdout(),
        "{logs} logs: all found after {first:.1} s; {arrived} of {written} lines arrived; delay p50 {:.2} s, p90 {:.2} s, p99 {:.2} s, \
         largest {:.2} s",
        at(0.5),
        at(0.9),
        at(0.99),
        seconds.last().copied().unwrap_or_default()
    )?;
    Ok(())
}

/// Follows the logs while they grow. Returns the seconds until all were found, and the number of lines.
async fn follow(folder: &Path, logs: u32, sink: Delays) -> Result<(f64, u32), Box<dyn Error>> {
    let begun = sink.begun;
    let task = SinkTaskConfig {
        disk: Some(DiskQueue::open(
            DiskQueueConfig::new(folder.join("queue")),
            |_| {},
        )?),
        ..SinkTaskConfig::default()
    };
    let (pipeline, ingress) = Pipeline::builder()
        .sink_with(Box::new(sink), Requirement::Required, task)
        .start();
    let mut config = TailConfig::new([folder.join("run*/train.log")]);
    config.options.format = format_by_name("keyvalue");
    let source = TailSource::new(config, Checkpointer::open(&folder.join("state"))?, |_| {});
    let status = source.status();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let started = clock::now();
    let following = tokio::spawn(async move {
        let sources: Vec<Box<dyn Source>> = vec![Box::new(source)];
        run_sources(sources, &ingress, &stopped).await
    });
    while status.files() < u64::from(logs) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let first = started.elapsed().as_secs_f64();
    let path = folder.to_owned();
    let writing = tokio::task::spawn_blocking(move || -> io::Result<()> {
        for second in 1..=SECONDS {
            let round = clock::now();
            for log in 0..logs {
                // Evenly over the second.
                let due = round + Duration::from_secs(1) * log / logs;
                thread::sleep(due.saturating_duration_since(clock::now()));
                write_line(&path, log, second, begun)?;
            }
        }
        Ok(())
    });
    writing.await??;
    // The stop reads the bytes that are in a file now.
    stop.cancel();
    let _ = following.await;
    pipeline.drain(Duration::from_secs(60)).await;
    Ok((first, logs * (SECONDS + 1)))
}

fn write_line(folder: &Path, log: u32, step: u32, begun: Instant) -> io::Result<()> {
    let path = folder.join(format!("run{log}/train.log"));
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let seconds = begun.elapsed().as_secs_f64();
    file.write_all(format!("step={step} train.loss={seconds}\n").as_bytes())
}
