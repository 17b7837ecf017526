//! The cost of observing eight GPUs: CPU time per thread, memory, and the duration of a pass.
//!
//! The driver is the fake one of the tests: eight H100 whose calls have no latency, and eight B200 with 18 links each whose calls
//! have the published latency of real ones. It runs in this process, so the thread that calls it carries its cost too. The fake
//! driver counts the CPU time of its own calls during the measurement, by the clock of the thread, and that time is reported
//! separately.
//!
//! `cargo bench -p pulsetrain-gpu --bench nvml [SECONDS]`

mod driver;
mod passes;
mod threads;

use std::{env, error::Error, path::Path, time::Duration};

use pulsetrain_gpu::{GpuConfig, GpuSource, NoAttribution};
use pulsetrain_pipeline::{Batch, BoxFuture, CancellationToken, Delivery, Pipeline, Sink, run_sources};

use self::{
    driver::OwnWork,
    passes::{LastBatches, Passes},
    threads::{Cost, rss_bytes},
};

/// The duration of the measurement in seconds, and the warm-up before it, in which static facts are read and the first pass is
/// made.
const SECONDS: u64 = 20;
const SETTLE: Duration = Duration::from_secs(7);

/// The scenarios, with their descriptions.
const SCENARIOS: [(&str, &str); 2] = [
    ("h100x8.yaml", "eight H100 (fake), calls without latency"),
    (
        "real_latency.yaml",
        "eight B200 (fake), calls with the latency of real ones",
    ),
];

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn main() -> Result<(), Box<dyn Error>> {
    let given = env::args().skip(1).find_map(|argument| argument.parse().ok());
    let seconds = given.unwrap_or(SECONDS);
    for (scenario, what) in SCENARIOS {
        let folder = tempfile::tempdir()?;
        let library = driver::install(folder.path(), scenario)?;
        println!("{what}, one pass a second, {seconds} s");
        measure(&library, seconds)?;
        println!();
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn measure(library: &Path, seconds: u64) -> Result<(), Box<dyn Error>> {
    let idle = rss_bytes()?;
    let seen = watch(library, seconds)?;
    let rss = rss_bytes()?.saturating_sub(idle);
    let of = |name: &str| seen.cost.share(name, seconds) * 100.0;
    let (all, fake) = (
        seen.cost.total(seconds) * 100.0,
        seen.fake_nanos as f64 / 1e7 / seconds as f64,
    );
    let shares = [
        ("recording (series, OTLP, the pipeline)", of("recording")),
        ("calling (wrapper and the fake driver)", of("nvml-gpu-")),
        ("waiting for events", of("nvml-events")),
        ("together", all),
        ("of that inside the fake driver's calls", fake),
        ("ours", all - fake),
    ];
    for (what, share) in shares {
        println!("{what:<44}{share:>10.4} % of a core");
    }
    println!(
        "{:<44}{:>10.2} MiB",
        "memory: library, scenario and source",
        rss as f64 / 1_048_576.0
    );
    println!("{:<44}{:>10}", "items a second", seen.items / seconds);
    println!("{:<44}{:>10}", "bytes of OTLP a second", seen.bytes / seconds);
    for (part, what) in [
        (0.5, "median of a pass, at most"),
        (0.99, "99th percentile of a pass, at most"),
    ] {
        let bound = seen.passes.percentile(part).ok_or("no pass was counted")?;
        println!("{what:<44}{:>10} ms", bound * 1000.0);
    }
    Ok(())
}

/// The measurements of one run.
struct Seen {
    /// The CPU time of each thread.
    cost: Cost,
    /// The part of the CPU time that the calls of the fake driver used, in nanoseconds.
    fake_nanos: u64,
    items: u64,
    bytes: u64,
    /// The durations of the passes.
    passes: Passes,
}

/// Runs the source, and measures it for `seconds` after the warm-up.
fn watch(library: &Path, seconds: u64) -> Result<Seen, Box<dyn Error>> {
    let config = GpuConfig {
        library: Some(library.to_owned()),
        ..GpuConfig::default()
    };
    let source = GpuSource::new(config, Box::new(NoAttribution), |_| {});
    let stop = CancellationToken::new();
    let counted = Counted::default();
    let (sink, stopping) = (counted.clone(), stop.clone());
    let recording = std::thread::Builder::new()
        .name("recording".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be had").block_on(async {
                let (pipeline, ingress) = Pipeline::builder().sink(Box::new(sink)).start();
                run_sources(vec![Box::new(source)], &ingress, &stopping).await;
                pipeline.drain(Duration::from_secs(1)).await;
            });
        })?;
    std::thread::sleep(SETTLE);
    let own_work = OwnWork::new(library)?;
    let passes = counted.last.passes()?;
    let (before, fake, begun) = (Cost::now()?, own_work.nanos()?, counted.read());
    std::thread::sleep(Duration::from_secs(seconds));
    let seen = Seen {
        cost: Cost::now()?.since(&before),
        fake_nanos: own_work.nanos()? - fake,
        items: counted.read().0 - begun.0,
        bytes: counted.read().1 - begun.1,
        passes: counted.last.passes()?.since(&passes),
    };
    stop.cancel();
    recording.join().map_err(|_| "the source panicked")?;
    Ok(seen)
}

/// A sink that only counts.
#[derive(Clone, Default)]
struct Counted {
    counts: std::sync::Arc<[std::sync::atomic::AtomicU64; 2]>,
    last: LastBatches,
}

impl Counted {
    fn read(&self) -> (u64, u64) {
        let [items, bytes] =
            [0, 1].map(|which| self.counts[which].load(std::sync::atomic::Ordering::Relaxed));
        (items, bytes)
    }
}

impl Sink for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let counts = [u64::from(batch.items()), batch.bytes().len() as u64];
        for (counted, count) in self.counts.iter().zip(counts) {
            counted.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        }
        self.last.keep(batch);
        Box::pin(std::future::ready(Delivery::Delivered))
    }
}
