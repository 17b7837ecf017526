//! What it costs to relay OTLP/HTTP, message by message, to a receiver that is near and to one that is 100 ms away.
//!
//! Each relay gets the same messages over two connections, each of which waits for its answers; the receiver counts the spans
//! that arrive. The agent takes part with merging and without, with its disk queue and without; with it a Collector, and
//! rotel where `ROTEL` names it or it is on the PATH (PyPI `rotel` 0.0.1a15, whose output is always gzip). The relays take
//! turns, several rounds, and the best round of each counts.
//! `RELAY_SHARE=20` sends a twentieth, to see that all of them work.
//! `PULSETRAIN=target/release/pulsetrain cargo bench -p pulsetrain-tests --bench relay`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench reads the clock and prints its table"
)]

mod load;
mod receiver;
mod relays;

use std::{
    env,
    time::{Duration, Instant},
};

use load::Load;
use receiver::Receiver;
use relays::Relay;

const ROUNDS: usize = 3;
/// The spans of one message: a small one, as a trainer's SDK sends it.
const SPANS: usize = 10;

/// What one round of one relay came to.
#[derive(Clone, Copy, Debug)]
struct Measured {
    seconds: f64,
    cpu_seconds: f64,
    peak_kib: u64,
    requests: usize,
}

fn main() {
    println!("cargo bench -p pulsetrain-tests --bench relay");
    println!(
        "spans of {SPANS} to a message, OTLP/HTTP in and out, compressed on the way out where a row names gzip; best of {ROUNDS} interleaved rounds"
    );
    let share = env::var("RELAY_SHARE").map_or(1, |share| share.parse().expect("RELAY_SHARE is a number"));
    compare(Duration::ZERO, 20_000 / share);
    compare(Duration::from_millis(100), 4_000 / share);
}

fn compare(latency: Duration, messages: usize) {
    let relays = relays::all();
    let mut best: Vec<Option<Measured>> = vec![None; relays.len()];
    for _ in 0..ROUNDS {
        for (relay, best) in relays.iter().zip(&mut best) {
            let measured = measure(relay, latency, messages);
            let is_better = best.is_none_or(|best| measured.seconds < best.seconds);
            if is_better {
                *best = Some(measured);
            }
        }
    }
    println!("\n{messages} messages, a receiver that takes {latency:?} for a request");
    println!(
        "{:<34}{:>12}{:>18}{:>12}{:>12}",
        "", "messages/s", "spans/CPU-second", "requests", "peak MiB"
    );
    for (relay, best) in relays.iter().zip(best) {
        let Some(best) = best else { continue };
        println!(
            "{:<34}{:>12.0}{:>18.0}{:>12}{:>12.1}",
            relay.name,
            messages as f64 / best.seconds,
            (messages * SPANS) as f64 / best.cpu_seconds,
            best.requests,
            best.peak_kib as f64 / 1024.0
        );
    }
}

/// Sends all messages through a relay, and waits until the receiver has every span.
fn measure(relay: &Relay, latency: Duration, messages: usize) -> Measured {
    let receiver = Receiver::start(latency);
    let running = relay.start(receiver.port());
    let load = Load::new(SPANS);
    let before = running.cpu_seconds();
    let began = Instant::now();
    load.send(running.port, messages);
    while receiver.spans() < messages * SPANS {
        assert!(
            began.elapsed() < Duration::from_secs(600),
            "{}: {} spans",
            relay.name,
            receiver.spans()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    Measured {
        seconds: began.elapsed().as_secs_f64(),
        cpu_seconds: running.cpu_seconds() - before,
        peak_kib: running.peak_kib(),
        requests: receiver.requests(),
    }
}
