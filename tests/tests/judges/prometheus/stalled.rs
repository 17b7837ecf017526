//! Scrapers that stall: the agent continues to read, serves others, and closes their connections.

use std::{io::Write, net::TcpStream};

use pulsetrain_tests::{
    http::{connections, rest},
    wait_until,
};

use crate::prometheus::following::{Agent, Following};

/// The number of stalled scrapers, of four kinds.
const STALLED: usize = 200;

/// Segments of an allocator with long names: a page of about 27 MB, more than socket buffers hold.
const SEGMENTS: usize = 500;
const PAGE_BYTES: usize = 20 << 20;

/// The bytes that a scraper sends before it stalls. The last two never read the response.
const SENT: [&str; 4] = [
    "",
    "GET /metrics HT",
    "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n",
];

/// The limit of the memory growth. One page for each scraper that does not read it would be 2.7 GB.
const MAX_MEMORY_KIB: u64 = 128 << 10;

#[test]
fn stalled_scrapers_are_disconnected_without_blocking_others() {
    let mut following = Following::start("      idle_timeout: 6s\n", "");
    following.append(&allocator());
    following.write_step(9.0);
    assert!(following.agent().page().len() > PAGE_BYTES);
    let memory = following.agent().process().memory_kib();

    let stalled: Vec<TcpStream> = (0..STALLED)
        .map(|number| stall(following.agent(), number))
        .collect();
    assert!(connections(following.agent().port()) >= STALLED);
    for step in 0..3 {
        following.write_step(f64::from(step));
    }
    let more = following.agent().process().memory_kib().saturating_sub(memory);
    assert!(more < MAX_MEMORY_KIB, "{more} KiB for {STALLED} scrapers");
    wait_until("the agent has let go of them", || {
        connections(following.agent().port()) == 0
    });
    for (number, scraper) in stalled.into_iter().enumerate() {
        let read = rest(scraper);
        assert!(read < PAGE_BYTES, "scraper {number} got a complete page");
    }
    following.write_step(4.0);
    assert!(following.stop().success());
}

/// Opens a connection of the kind with this number.
fn stall(agent: &Agent, number: usize) -> TcpStream {
    let mut scraper = TcpStream::connect(agent.address()).expect("the agent listens");
    let sent = SENT[number % SENT.len()].as_bytes();
    scraper.write_all(sent).expect("the agent reads");
    scraper
}

/// Returns a record that makes four series of each segment.
fn allocator() -> String {
    let name = "x".repeat(12_000);
    let segments: Vec<String> = (0..SEGMENTS)
        .map(|number| {
            format!(r#"{{"name": "{name}{number}", "device": 1, "managed": 2, "pinned": 3, "pageable": 4}}"#)
        })
        .collect();
    format!(
        r#"{{"log": "allocator", "time": "2026-11-21 00:59:00.000000000", "step": 0, "stats": [{}]}}"#,
        segments.join(", ")
    )
}
