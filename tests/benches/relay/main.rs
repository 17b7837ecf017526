//! Cost of relaying OTLP: messages per second, spans per second of CPU time and memory, by protocol and compression, with a
//! receiver that responds at once, with one that responds after 100 ms, and without a receiver.
//!
//! Each relay gets the same messages over two connections or more, and every connection waits for its responses; the receiver
//! counts the spans that arrive. The agent runs with and without merging, and with and without its disk queue; a Collector with
//! and without batching; rotel if `ROTEL` names it or it is on the PATH (PyPI `rotel` 0.0.1a15). Relays alternate for several
//! rounds, and the best round of each counts. `HTTP alone` reads messages and drops them: the lower bound for any relay.
//! `BEFORE` names another build of the agent, which runs with its disk queue.
//! `RELAY_SHARE=20` sends a twentieth, as a smoke test. `RELAY_SPANS=500` measures only messages of that size.
//! `PULSETRAIN=target/release/pulsetrain cargo bench -p pulsetrain-tests --bench relay`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench reads the clock and prints its table"
)]

mod floor;
mod load;
mod receiver;
mod relays;

use std::{
    env,
    time::{Duration, Instant},
};

use load::Load;
use pulsetrain_tests::free_port;
use receiver::Receiver;
use relays::{Compression, Protocol, Relay, Wire};

const ROUNDS: usize = 3;
/// The spans of a small message, as a trainer's SDK sends it.
const SPANS: usize = 10;
const FEW_CLIENTS: usize = 2;
const MANY_CLIENTS: usize = 32;
/// The spans of a large message: a full batch of an SDK.
const SPANS_OF_LARGE: usize = 500;
const PLAIN_HTTP: Wire = Wire {
    protocol: Protocol::Http,
    compression: Compression::None,
};
/// The protocol and compression that every relay supports.
const GZIP_HTTP: Wire = Wire {
    protocol: Protocol::Http,
    compression: Compression::Gzip,
};

/// The result of one round of one relay.
#[derive(Clone, Copy, Debug)]
struct Measured {
    seconds: f64,
    cpu_seconds: f64,
    peak_kib: u64,
    requests: usize,
}

fn main() {
    if let Some(port) = env::args()
        .skip_while(|argument| argument != relays::FLOOR)
        .nth(1)
    {
        return floor::serve(port.parse().expect("the argument is a port"));
    }
    println!("cargo bench -p pulsetrain-tests --bench relay");
    println!(
        "a heading names the protocol in and out, and the compression of what is sent; best of {ROUNDS} interleaved rounds"
    );
    let share = env::var("RELAY_SHARE").map_or(1, |share| share.parse().expect("RELAY_SHARE is a number"));
    for protocol in [Protocol::Http, Protocol::Grpc] {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let wire = Wire {
                protocol,
                compression,
            };
            compare(wire, SPANS, FEW_CLIENTS, Duration::ZERO, 20_000 / share);
        }
    }
    compare(PLAIN_HTTP, SPANS, MANY_CLIENTS, Duration::ZERO, 40_000 / share);
    for wire in [PLAIN_HTTP, GZIP_HTTP] {
        compare(wire, SPANS_OF_LARGE, FEW_CLIENTS, Duration::ZERO, 4_000 / share);
    }
    compare(
        PLAIN_HTTP,
        SPANS,
        FEW_CLIENTS,
        Duration::from_millis(100),
        500 / share,
    );
    compare_without_receiver(2_000 / share);
}

fn compare(wire: Wire, spans: usize, clients: usize, latency: Duration, messages: usize) {
    if env::var("RELAY_SPANS").is_ok_and(|wanted| wanted != spans.to_string()) {
        return;
    }
    let relays = relays::all(wire);
    let mut best: Vec<Option<Measured>> = vec![None; relays.len()];
    for _ in 0..ROUNDS {
        for (relay, best) in relays.iter().zip(&mut best) {
            let measured = measure(relay, wire.protocol, spans, clients, latency, messages);
            let is_better = best.is_none_or(|best| measured.seconds < best.seconds);
            if is_better {
                *best = Some(measured);
            }
        }
    }
    println!(
        "\n{wire}: {messages} messages of {spans} spans from {clients} clients, a receiver that answers after {latency:?}"
    );
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
            (messages * spans) as f64 / best.cpu_seconds,
            best.requests,
            best.peak_kib as f64 / 1024.0
        );
    }
}

/// Sends large messages to relays whose receiver is not reachable.
fn compare_without_receiver(messages: usize) {
    let load = Load::new(SPANS_OF_LARGE);
    println!("\n{GZIP_HTTP}: {messages} messages of {SPANS_OF_LARGE} spans, and no receiver");
    println!(
        "{:<34}{:>12}{:>12}{:>12}",
        "", "accepted", "MiB of them", "peak MiB"
    );
    for relay in relays::all(GZIP_HTTP).iter().filter(|relay| relay.sends) {
        let running = relay.start(free_port());
        let accepted = load.try_send_or_drop(running.port, messages);
        println!(
            "{:<34}{:>12}{:>12.1}{:>12.1}",
            relay.name,
            accepted,
            (accepted * load.bytes()) as f64 / f64::from(1 << 20),
            running.peak_kib() as f64 / 1024.0
        );
    }
}

/// Sends all messages through a relay, and waits until the receiver has every span.
fn measure(
    relay: &Relay,
    protocol: Protocol,
    spans: usize,
    clients: usize,
    latency: Duration,
    messages: usize,
) -> Measured {
    let receiver = Receiver::start(protocol, latency);
    let running = relay.start(receiver.port());
    let load = Load::new(spans);
    let before = running.cpu_seconds();
    let began = Instant::now();
    load.send(protocol, running.port, messages, clients);
    while relay.sends && receiver.spans() < messages * spans {
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
