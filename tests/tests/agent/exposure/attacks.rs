//! Attacks on the receiver: an honest client is still served, and memory stays within the documented bound.
//!
//! `PULSETRAIN_ATTACKS=exporter/receiver/RECEIVER.md` writes the table of bounds and measurements into that file.

mod honest;
mod http2;

use std::{
    env,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    thread,
    time::Duration,
};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Sink};
use pulsetrain_sinks::{OtlpConfig, OtlpSink};
use pulsetrain_tests::{Folder, repeat_for, wait_until, write_table};

use self::{honest::Honest, http2::Http2};
use crate::exposure::agent::{Agent, Keys};

const MIB: u64 = 1024;

/// The measurements of an attack.
struct Row {
    attack: &'static str,
    /// The settings that bound the memory, and the bound in KiB.
    bound: (&'static str, u64),
    grown_kib: u64,
    longest_wait: Duration,
}

#[test]
fn honest_clients_are_served_and_memory_is_bounded_under_attack() {
    let attacks: [fn() -> Row; 5] = [
        silent_connections,
        slow_bodies,
        full_windows,
        small_messages,
        large_resources,
    ];
    let rows: Vec<Row> = attacks.iter().map(|attack| attack()).collect();
    let text = table(&rows);
    println!("{text}");
    if let Some(path) = env::var_os("PULSETRAIN_ATTACKS") {
        write_table(path, "attacks", &text);
    }
    for row in &rows {
        assert!(
            row.grown_kib <= row.bound.1,
            "{}: {} KiB of {}\n{text}",
            row.attack,
            row.grown_kib,
            row.bound.1
        );
        assert!(
            row.longest_wait < Duration::from_secs(10),
            "{}: {:?}\n{text}",
            row.attack,
            row.longest_wait
        );
    }
}

/// Opens the maximum number of connections without a request, and opens them again after they are closed.
fn silent_connections() -> Row {
    let agent = agent();
    measured(
        &agent,
        "320 connections that send nothing and reconnect",
        ("64 KiB for each of 320", 20 * MIB),
        || {
            let mut silent: Vec<TcpStream> = Vec::new();
            repeat_for(Duration::from_secs(8), || {
                silent.retain(|stream| !is_closed(stream));
                while silent.len() < 320 {
                    silent.push(connect(&agent));
                }
                thread::sleep(Duration::from_millis(100));
            });
        },
    )
}

/// Sends bodies byte by byte.
fn slow_bodies() -> Row {
    let agent = agent();
    measured(
        &agent,
        "64 bodies of 16 MiB, 1 MiB at once and then a byte ten times a second",
        ("8 × max_message", 128 * MIB),
        || {
            let head = "POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-protobuf\r\n\
                        Content-Length: 16777216\r\n\r\n";
            let mut slow: Vec<TcpStream> = (0..64)
                .map(|_| {
                    let mut stream = connect(&agent);
                    let _ = stream.write_all(head.as_bytes());
                    let _ = stream.write_all(&[0; 1 << 20]);
                    stream
                })
                .collect();
            repeat_for(Duration::from_secs(8), || {
                for stream in &mut slow {
                    let _ = stream.write_all(&[0]);
                }
                thread::sleep(Duration::from_millis(100));
            });
        },
    )
}

/// Opens HTTP/2 connections that fill their windows and complete no request.
fn full_windows() -> Row {
    let agent = agent();
    measured(
        &agent,
        "60 HTTP/2 connections with 1 MiB of unfinished requests each",
        ("8 × max_message", 128 * MIB),
        || {
            let full: Vec<Http2> = (0..60)
                .map(|_| {
                    let mut connection = Http2::connect(agent.receiver);
                    for stream in 0..8 {
                        connection.unfinished_request(2 * stream + 1, 128 << 10);
                    }
                    connection
                })
                .collect();
            repeat_for(Duration::from_secs(4), || {
                thread::sleep(Duration::from_millis(100));
            });
            assert!(full.iter().all(Http2::is_read));
        },
    )
}

/// Sends messages of 113 bytes, which a flight recorder of 16 MiB keeps.
fn small_messages() -> Row {
    let agent = agent();
    let span = span_of(113);
    measured(
        &agent,
        "60,000 messages of 113 bytes into a flight recorder of 16 MiB",
        (
            "the recorder, and as much again for the allocator and the live page",
            32 * MIB,
        ),
        || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
            let senders = (0..4).map(|_| {
                let (url, span) = (format!("grpc://127.0.0.1:{}", agent.receiver), span.clone());
                runtime.spawn(async move {
                    let config = OtlpConfig::from_url(&url, |_| None).expect("the address is one");
                    let mut sink = OtlpSink::new(&config).expect("a client can be made");
                    let batch = Batch::new(Signal::Traces, 1, span);
                    for _ in 0..15_000 {
                        while sink.deliver(&batch).await != Delivery::Delivered {
                            tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                    }
                })
            });
            for sender in senders.collect::<Vec<_>>() {
                runtime.block_on(sender).expect("a sender does not panic");
            }
        },
    )
}

/// Sends resources with an attribute of 1 MB each.
fn large_resources() -> Row {
    let agent = agent();
    measured(
        &agent,
        "200 resources with an attribute of 1 MB",
        (
            "the recorder, 8 × max_message, max_bytes of the page: 16 + 128 + 64",
            208 * MIB,
        ),
        || {
            for number in 0..200 {
                let text = format!(
                    r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"service.instance.id","value":{{"stringValue":"{number}{}"}}}}]}},"scopeMetrics":[{{"metrics":[{{"name":"g","gauge":{{"dataPoints":[{{"asDouble":1}}]}}}}]}}]}}]}}"#,
                    "x".repeat(1_000_000)
                );
                honest::post(agent.receiver, "/v1/metrics", text.as_bytes());
            }
            // Everything has reached the sinks when a later span has arrived.
            wait_until("the file has all", || agent.spans() > 0);
        },
    )
}

fn agent() -> Agent {
    let folder = Folder::new();
    let recorder = format!(
        "  recorder: {{flight_recorder: {{bytes: 16MiB, path: {}}}}}",
        folder.path("recorded.pftrace").display()
    );
    Agent::start(
        folder,
        &Keys {
            receiver: "max_message: 16MiB",
            page: "max_bytes: 64MiB",
            sinks: &recorder,
            ..Keys::default()
        },
    )
}

/// Attacks an agent that also serves an honest client, and measures both.
fn measured(
    agent: &Agent,
    attack: &'static str,
    bound: (&'static str, u64),
    act: impl FnOnce() + Send,
) -> Row {
    let honest = Honest::start(agent.receiver);
    wait_until("the honest client is served", || honest.served() > 5);
    let before = agent.memory_kib();
    let mut grown_kib = 0;
    let longest_wait = thread::scope(|scope| {
        let acting = scope.spawn(|| {
            act();
            honest.end()
        });
        while !acting.is_finished() {
            grown_kib = grown_kib.max(agent.memory_kib().saturating_sub(before));
            thread::sleep(Duration::from_millis(20));
        }
        acting.join().expect("the attack does not panic")
    });
    Row {
        attack,
        bound,
        grown_kib,
        longest_wait,
    }
}

fn connect(agent: &Agent) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, agent.receiver)).expect("the receiver listens")
}

fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket can be set up");
    !matches!(stream.read(&mut [0; 512]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Returns OTLP with one span of this number of bytes.
fn span_of(bytes: usize) -> Vec<u8> {
    let encoded = |name: &str| {
        let text = honest::SPAN.replace("honest", name);
        let mut bytes = Vec::new();
        pulsetrain_otlp::json::decode(text.as_bytes(), &Default::default(), &mut bytes)
            .expect("the span is OTLP/JSON");
        bytes
    };
    let mut spans = (0..bytes).map(|name| encoded(&"x".repeat(name)));
    spans
        .find(|span| span.len() == bytes)
        .expect("a name of some length makes it that long")
}

fn table(rows: &[Row]) -> String {
    let mut text =
        "| attack | bound | memory grew by | longest wait of an honest client |\n|---|---|---|---|\n"
            .to_owned();
    for row in rows {
        let (name, kib) = row.bound;
        text.push_str(&format!(
            "| {} | {} MiB ({name}) | {} MiB | {:.1} s |\n",
            row.attack,
            kib / MIB,
            row.grown_kib.div_ceil(MIB),
            row.longest_wait.as_secs_f64()
        ));
    }
    text
}
