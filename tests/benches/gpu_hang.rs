//! How long a page with the telemetry of eight GPUs takes while their driver hangs for a minute.
//!
//! The GPU source on the fake driver, the Prometheus sink and its server, in this process; a client with a connection a
//! scrape, twenty times a second, from five seconds before the hang until five seconds after it, all in real time.
//! `cargo bench -p pulsetrain-tests --bench gpu_hang`

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use pulsetrain_pipeline::{Pipeline, Stop, StopRaiser, run_sources};
use pulsetrain_sinks::{PrometheusConfig, PrometheusServer, PrometheusSink};
use pulsetrain_sources::nvml::{NoBelonging, NvmlConfig, NvmlSource};
use pulsetrain_tests::{FakeNvml, free_port, wait_until};

const EVERY: Duration = Duration::from_millis(50);
/// What the ninety-ninth of a hundred scrapes may take while the driver hangs.
const P99_MS: f64 = 2.0;
const HANGS: &str = "the driver hangs";
/// The seconds of the scenario at which the phases begin and the last ends.
const PHASES: [(&str, f64); 4] = [
    ("the driver answers", 5.0),
    (HANGS, 10.0),
    ("the driver answers again", 70.0),
    ("", 75.0),
];

fn main() {
    let fake = FakeNvml::start("hang");
    let (page, stop) = (free_port(), StopRaiser::new());
    let source = thread::spawn({
        let (config, stop) = (config(&fake), stop.stop());
        move || watch(config, page, &stop)
    });
    wait_until("the page has the last GPU", || {
        fetch(page).contains("gpu_index=\"7\"")
    });
    fake.run_from(PHASES[0].1);
    let began = now();
    let mut hanging = f64::NAN;
    for phases in PHASES.windows(2) {
        let [(name, _), (_, until)] = phases else { continue };
        let until = began + Duration::from_secs_f64(until - PHASES[0].1);
        let p99 = say(name, &scrapes(page, until));
        if name == &HANGS {
            hanging = p99;
        }
    }
    stop.raise();
    source.join().expect("the source does not panic");
    assert!(hanging < P99_MS, "p99 is {hanging:.2} ms while {HANGS}");
}

/// How long each scrape took and how many bytes it brought.
fn scrapes(page: u16, until: Instant) -> Vec<(Duration, usize)> {
    let mut scrapes = Vec::new();
    while now() < until {
        let asked = now();
        let bytes = fetch(page).len();
        scrapes.push((now() - asked, bytes));
        thread::sleep(EVERY);
    }
    scrapes
}

/// Prints how long the scrapes took, and returns the ninety-ninth of a hundred in milliseconds.
#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn say(name: &str, scrapes: &[(Duration, usize)]) -> f64 {
    let mut times: Vec<_> = scrapes.iter().map(|(took, _)| took.as_secs_f64() * 1e3).collect();
    times.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let bytes = |pick: fn(&[usize]) -> Option<usize>| {
        pick(&scrapes.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>()).unwrap_or_default() / 1_024
    };
    println!(
        "{name:<26} {:>5} scrapes of {} to {} KiB: p50 {:.2} ms, p99 {:.2} ms, slowest {:.2} ms",
        times.len(),
        bytes(|all| all.iter().min().copied()),
        bytes(|all| all.iter().max().copied()),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    at(0.99)
}

fn config(fake: &FakeNvml) -> NvmlConfig {
    NvmlConfig {
        library: Some(fake.library()),
        ..NvmlConfig::default()
    }
}

fn watch(config: NvmlConfig, page: u16, stop: &Stop) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime can be had").block_on(async {
        let page = PrometheusConfig {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, page)),
            ..PrometheusConfig::default()
        };
        let sink = PrometheusSink::new(&page);
        let server = PrometheusServer::bind(&page, sink.store(), Vec::new()).await;
        let server = tokio::spawn(server.expect("the page can be served").run(stop.clone()));
        let source = NvmlSource::new(config, Box::new(NoBelonging), |_| {});
        let (pipeline, door) = Pipeline::builder().sink(Box::new(sink)).start();
        run_sources(vec![Box::new(source)], &door, stop).await;
        pipeline.drain(Duration::from_secs(5)).await;
        server.await.expect("the server does not panic");
    });
}

fn fetch(page: u16) -> String {
    let mut answer = String::new();
    // Until the server listens there is nothing to read, which is no page.
    if let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, page)) {
        let asked =
            stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n");
        asked
            .and_then(|()| stream.read_to_string(&mut answer))
            .expect("the page is answered");
    }
    answer
}

#[expect(clippy::disallowed_methods, reason = "how long a page takes is measured")]
fn now() -> Instant {
    Instant::now()
}
