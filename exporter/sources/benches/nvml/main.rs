//! What watching eight GPUs costs: processor time of each thread, and memory.
//!
//! The driver is the fake one of the tests, with a scenario of eight H100. It runs in our own process, so the thread that
//! calls it carries its cost too; what its calls alone take is measured apart, by the same passes without recording.
//!
//! `cargo bench -p pulsetrain-sources --bench nvml [SECONDS]`

mod driver;
mod threads;

use std::{env, error::Error, path::Path, time::Duration};

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Pipeline, Sink, StopRaiser, run_sources};
use pulsetrain_sources::nvml::{NoBelonging, NvmlConfig, NvmlSource};

use self::threads::{Cost, rss_bytes};

/// How long is measured, and how long before that it settles: static facts are read and the first pass is made.
const SECONDS: u64 = 20;
const SETTLE: Duration = Duration::from_secs(7);

#[expect(clippy::print_stdout, reason = "a bench says what it measured")]
fn main() -> Result<(), Box<dyn Error>> {
    let given = env::args().skip(1).find_map(|argument| argument.parse().ok());
    let seconds = given.unwrap_or(SECONDS);
    let folder = tempfile::tempdir()?;
    let library = driver::install(folder.path())?;
    println!("eight H100 (fake), one pass a second, {seconds} s");
    let idle = rss_bytes()?;
    let (cost, items, bytes) = watch(&library, seconds)?;
    let rss = rss_bytes()?.saturating_sub(idle);
    let of = |name: &str| cost.share(name, seconds) * 100.0;
    println!(
        "{:<44}{:>10.4} % of a core",
        "recording (series, OTLP, the door)",
        of("recording")
    );
    println!(
        "{:<44}{:>10.4} % of a core",
        "calling (wrapper and the fake driver)",
        of("nvml")
    );
    println!(
        "{:<44}{:>10.4} % of a core",
        "waiting for XID errors",
        of("nvml-xid")
    );
    println!(
        "{:<44}{:>10.4} % of a core",
        "together",
        cost.total(seconds) * 100.0
    );
    let calls = driver::cost_of_calls(&library)?;
    println!(
        "{:<44}{:>10.4} % of a core",
        "of that the fake driver's own work",
        calls * 100.0
    );
    println!(
        "{:<44}{:>10.2} MiB",
        "memory: library, scenario and source",
        rss as f64 / 1_048_576.0
    );
    println!("{:<44}{:>10}", "items a second", items / seconds);
    println!("{:<44}{:>10}", "bytes of OTLP a second", bytes / seconds);
    Ok(())
}

/// Watches for so long, and says what each thread took, and what went through.
fn watch(library: &Path, seconds: u64) -> Result<(Cost, u64, u64), Box<dyn Error>> {
    let config = NvmlConfig {
        library: Some(library.to_owned()),
        ..NvmlConfig::default()
    };
    let source = NvmlSource::new(config, Box::new(NoBelonging), |_| {});
    let stop = StopRaiser::new();
    let counted = Counted::default();
    let (sink, told) = (counted.clone(), stop.stop());
    let recording = std::thread::Builder::new()
        .name("recording".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be had").block_on(async {
                let (pipeline, door) = Pipeline::builder().sink(Box::new(sink)).start();
                run_sources(vec![Box::new(source)], &door, &told).await;
                pipeline.drain(Duration::from_secs(1)).await;
            });
        })?;
    std::thread::sleep(SETTLE);
    let (before, begun) = (Cost::now()?, counted.read());
    std::thread::sleep(Duration::from_secs(seconds));
    let (cost, ended) = (Cost::now()?.since(&before), counted.read());
    stop.raise();
    recording.join().map_err(|_| "the source panicked")?;
    Ok((cost, ended.0 - begun.0, ended.1 - begun.1))
}

/// A sink that only counts.
#[derive(Clone, Default)]
struct Counted(std::sync::Arc<[std::sync::atomic::AtomicU64; 2]>);

impl Counted {
    fn read(&self) -> (u64, u64) {
        let [items, bytes] = [0, 1].map(|which| self.0[which].load(std::sync::atomic::Ordering::Relaxed));
        (items, bytes)
    }
}

impl Sink for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let counts = [u64::from(batch.items()), batch.bytes().len() as u64];
        for (counted, count) in self.0.iter().zip(counts) {
            counted.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        }
        Box::pin(std::future::ready(Delivery::Delivered))
    }
}
