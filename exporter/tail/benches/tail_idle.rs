//! The cost of following a thousand idle logs: CPU time of the process as a share of wall time.
//!
//! `cargo bench --package pulsetrain-tail --bench tail_idle`

use std::{
    fs,
    io::{self, Write},
    path::Path,
    time::Duration,
};

use pulsetrain_pipeline::{CancellationToken, Pipeline, Source, clock, run_sources};
use pulsetrain_tail::{Checkpointer, TailConfig, TailSource};

const FILES: u64 = 1_000;
const MEASURED: Duration = Duration::from_secs(20);

fn main() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    for number in 0..FILES {
        write_log(folder.path(), number)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    for (name, watch) in [
        ("watched, and polled every second", true),
        ("polled every second", false),
    ] {
        let share = runtime.block_on(idle_share(folder.path(), watch));
        writeln!(
            io::stdout(),
            "{FILES} idle logs, {name}: {:.2} % of a core over {} s",
            100.0 * share,
            MEASURED.as_secs()
        )?;
    }
    Ok(())
}

fn write_log(folder: &Path, number: u64) -> io::Result<()> {
    let run = folder.join(format!("run{number:04}"));
    fs::create_dir(&run)?;
    let record = format!(
        r#"{{"log": "step", "time": "2026-11-21 00:18:40.{number:09}", "step": 1, "epoch": 0, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": 2.5, "lr": 2e-05}}"#
    );
    fs::write(run.join("training.json"), format!("[\n  {record}\n]\n"))
}

/// The CPU time for the wall time, once every log is read.
async fn idle_share(folder: &Path, watch: bool) -> f64 {
    let (pipeline, ingress) = Pipeline::builder().start();
    let config = TailConfig {
        watch,
        ..TailConfig::new([folder.join("run*/training.json")])
    };
    let source = TailSource::new(config, Checkpointer::in_memory(), |_| {});
    let status = source.status();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let following = tokio::spawn(async move {
        let sources: Vec<Box<dyn Source>> = vec![Box::new(source)];
        run_sources(sources, &ingress, &stopped).await
    });
    while status.files() < FILES {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (cpu, wall) = (cpu_time(), clock::now());
    tokio::time::sleep(MEASURED).await;
    let share = (cpu_time() - cpu).as_secs_f64() / wall.elapsed().as_secs_f64();
    stop.cancel();
    let _ = following.await;
    pipeline.drain(Duration::from_secs(1)).await;
    share
}

/// The time that all threads of the process have spent on a processor, in the kernel too.
fn cpu_time() -> Duration {
    // SAFETY: a struct of integers, for which zeroes are valid; the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}
