//! Measures the scrape latency of a page with the telemetry of eight GPUs while their driver hangs for a minute.
//!
//! The GPU source on the fake driver, the Prometheus sink and its server run in this process. A client scrapes twenty times a
//! second, with a connection per scrape, from five seconds before the hang until five seconds after it, in real time. As a
//! control, each scrape alternates with one of a driver that never hangs, so that other load of the machine affects both.
//! `cargo bench -p pulsetrain-tests --bench gpu_hang`

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use pulsetrain_gpu::{GpuConfig, GpuSource, NoAttribution};
use pulsetrain_pipeline::{CancellationToken, Pipeline, run_sources};
use pulsetrain_prometheus::{PrometheusConfig, PrometheusSink};
use pulsetrain_tests::{FakeNvml, free_port, http::metrics, wait_until};

const EVERY: Duration = Duration::from_millis(50);
/// The limit of the 99th percentile of the scrape latency while the driver hangs.
const P99_MS: f64 = 2.0;
const HANGS: &str = "the driver hangs";
/// The seconds of the scenario at which the phases begin, and at which the last one ends.
const PHASES: [(&str, f64); 4] = [
    ("the driver answers", 5.0),
    (HANGS, 10.0),
    ("the driver answers again", 70.0),
    ("", 75.0),
];

/// A driver, and the port of the page with its metrics.
struct Watched {
    fake: FakeNvml,
    page: u16,
    source: JoinHandle<()>,
    stop: CancellationToken,
}

/// The latencies and the sizes of scrapes.
#[derive(Default)]
struct Scrapes {
    millis: Vec<f64>,
    kib: Vec<usize>,
}

fn main() {
    let (hangs, control) = (Watched::start("hang"), Watched::start("h100x8"));
    print_machine();
    for watched in [&hangs, &control] {
        watched.fake.run_from(PHASES[0].1);
    }
    let began = now();
    let mut verdict = None;
    for phases in PHASES.windows(2) {
        let [(name, _), (_, until)] = phases else { continue };
        let until = began + Duration::from_secs_f64(until - PHASES[0].1);
        let [hanging, beside] = scrape_both(&hangs, &control, until);
        let p99 = hanging.print(name);
        let control = beside.print("  a driver that answers");
        if name == &HANGS {
            verdict = Some((p99, control));
        }
    }
    hangs.end();
    control.end();
    print_machine();
    let (p99, control) = verdict.expect("the driver has hung");
    judge(p99, control);
}

/// Scrapes both alternately, so that other load of the machine affects both.
fn scrape_both(hangs: &Watched, control: &Watched, until: Instant) -> [Scrapes; 2] {
    let mut both = [Scrapes::default(), Scrapes::default()];
    while now() < until {
        for (scrapes, watched) in both.iter_mut().zip([hangs, control]) {
            let asked = now();
            let bytes = metrics(watched.page).expect("the page is answered").len();
            scrapes.millis.push((now() - asked).as_secs_f64() * 1e3);
            scrapes.kib.push(bytes / 1_024);
        }
        thread::sleep(EVERY);
    }
    both
}

/// Prints the latency during a hang, and fails above the limit, even on a busy machine.
#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn judge(p99: f64, control: f64) {
    let ratio = p99 / control;
    println!("while {HANGS}: p99 {p99:.2} ms, {ratio:.2} times that of the driver that answers");
    assert!(
        p99 < P99_MS,
        "p99 is {p99:.2} ms while {HANGS}, and {control:.2} ms where none does"
    );
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn print_machine() {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores, load {load}");
}

impl Scrapes {
    /// Prints the latencies, and returns the 99th percentile in milliseconds.
    #[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
    fn print(mut self, name: &str) -> f64 {
        self.millis.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| self.millis[((self.millis.len() - 1) as f64 * share) as usize];
        let (least, most) = (self.kib.iter().min(), self.kib.iter().max());
        println!(
            "{name:<26} {:>5} scrapes of {} to {} KiB: p50 {:.2} ms, p99 {:.2} ms, slowest {:.2} ms",
            self.millis.len(),
            least.unwrap_or(&0),
            most.unwrap_or(&0),
            at(0.5),
            at(0.99),
            at(1.0)
        );
        at(0.99)
    }
}

impl Watched {
    /// Starts eight idle GPUs of a scenario, and returns when their page is complete.
    fn start(scenario: &str) -> Self {
        let fake = FakeNvml::start(scenario);
        let (page, stop) = (free_port(), CancellationToken::new());
        let source = thread::spawn({
            let (config, stop) = (config(&fake), stop.clone());
            move || watch(config, page, &stop)
        });
        wait_until("the page has the last GPU", || {
            metrics(page).is_some_and(|page| page.contains("gpu_index=\"7\""))
        });
        Self {
            fake,
            page,
            source,
            stop,
        }
    }

    fn end(self) {
        self.stop.cancel();
        self.source.join().expect("the source does not panic");
    }
}

fn config(fake: &FakeNvml) -> GpuConfig {
    GpuConfig {
        library: Some(fake.library()),
        ..GpuConfig::default()
    }
}

fn watch(config: GpuConfig, page: u16, stop: &CancellationToken) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime can be had").block_on(async {
        let page = PrometheusConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, page)).into(),
            ..PrometheusConfig::default()
        };
        let sink = PrometheusSink::new(&page);
        let server = page.bind(sink.store(), Vec::new());
        let server = tokio::spawn(server.expect("the page can be served").run(stop.clone()));
        let source = GpuSource::new(config, Box::new(NoAttribution), |_| {});
        let (pipeline, ingress) = Pipeline::builder().sink(Box::new(sink)).start();
        run_sources(vec![Box::new(source)], &ingress, stop).await;
        pipeline.drain(Duration::from_secs(5)).await;
        server.await.expect("the server does not panic");
    });
}

#[expect(clippy::disallowed_methods, reason = "how long a page takes is measured")]
fn now() -> Instant {
    Instant::now()
}
