//! The live page over HTTP, without a browser.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
};

use flate2::read::GzDecoder;
use pulsetrain_tests::{
    http::{connections, rest},
    wait_until,
};
use serde_json::Value;

use crate::page::{
    agent::Agent,
    world::{Demo, Updates, ask, get, run_with_verdicts},
};

#[test]
fn the_page_its_data_and_the_metrics_are_served_on_one_port() {
    let demo = Demo::start(&["--rate", "20", "--ranks", "2"]);
    let page = get(demo.port, "/", "");
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"),
        "{policy}"
    );
    // The page loads nothing from other hosts.
    for outside in ["src=\"http", "href=\"http", "@import", "url(http", "fetch(\"http"] {
        assert!(!page.text().contains(outside), "the page has {outside}");
    }
    let id = demo.run().expect("a run")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let run = get(demo.port, &format!("/api/run?id={id}"), "").json();
    let loss = series(&run, "train.loss");
    let columns = ["t", "s", "v"].map(|column| loss[column].as_array().expect("a column").len());
    assert!(
        columns[0] > 0 && columns.iter().all(|length| *length == columns[0]),
        "{columns:?}"
    );
    assert_eq!(run["metrics"]["train.loss"]["unit"], "{loss}");
    assert_eq!(
        run["ranks"]
            .as_array()
            .expect("ranks")
            .iter()
            .filter(|rank| rank["rank"].is_number())
            .count(),
        2
    );
    assert!(get(demo.port, "/metrics", "").text().contains("train_loss"));
    assert_eq!(get(demo.port, "/nothing", "").status, 404);
    assert_eq!(get(demo.port, "/api/run?id=nobody", "").status, 404);
    let post = ask(demo.port, "POST / HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("an answer");
    assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn steps_have_their_phases_by_rank_and_gpus_their_readings() {
    let demo = Demo::start(&["--rate", "20", "--ranks", "4"]);
    let id = demo.run().expect("a run")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    wait_until("a step has the phases of four ranks", || {
        let run = get(demo.port, &format!("/api/run?id={id}"), "").json();
        let steps = run["steps"].as_array().cloned().unwrap_or_default();
        let phases: Vec<&str> = run["phases"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        ["perf.forward", "perf.backward", "perf.optimizer"]
            .iter()
            .all(|phase| phases.contains(phase))
            && steps.iter().any(|step| {
                let of_ranks = step["p"].as_array().cloned().unwrap_or_default();
                step["r"] == serde_json::json!([0, 1, 2, 3])
                    && of_ranks
                        .iter()
                        .all(|flat| flat.as_array().is_some_and(|flat| flat.len() >= 6))
            })
    });
    wait_until("the page shows the power of four GPUs", || {
        let gpus = get(demo.port, "/api/overview", "").json()["gpus"].clone();
        let has_power = |gpu: &Value| {
            let values = gpu["values"].as_array().cloned().unwrap_or_default();
            values
                .iter()
                .any(|value| value["metric"] == "gpu.power" && value["latest"].as_f64() > Some(1.0))
        };
        gpus.as_array()
            .is_some_and(|gpus| gpus.len() == 4 && gpus.iter().all(has_power))
    });
}

#[test]
fn foreign_host_header_is_rejected_and_other_origins_cannot_read() {
    let demo = Demo::start(&["--rate", "20"]);
    for path in ["/", "/api/overview", "/events"] {
        let answer = get(demo.port, path, "Host: evil.example\r\n");
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.text().contains("localhost"));
    }
    let answer = get(demo.port, "/api/overview", "Origin: http://evil.example\r\n");
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, None)
    );
}

#[test]
fn page_is_compressed_for_clients_that_accept_gzip() {
    let demo = Demo::start(&["--rate", "20"]);
    let plain = get(demo.port, "/", "");
    let gzip = get(demo.port, "/", "Accept-Encoding: gzip\r\n");
    assert_eq!(
        (plain.header("content-encoding"), gzip.header("content-encoding")),
        (None, Some("gzip"))
    );
    let mut inflated = Vec::new();
    GzDecoder::new(&gzip.body[..])
        .read_to_end(&mut inflated)
        .expect("gzip");
    assert!(inflated == plain.body, "the compressed page is another one");
    assert!(gzip.body.len() * 2 < plain.body.len());
}

#[test]
fn updates_follow_the_snapshot_without_a_gap() {
    let demo = Demo::start(&["--rate", "20"]);
    let id = demo.run().expect("a run")["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let mut updates = Updates::open(demo.port, &format!("run={id}"));
    updates.next("hello");
    let run = get(demo.port, &format!("/api/run?id={id}"), "").json();
    let loss = series(&run, "train.loss");
    let (number, mut count) = (loss["id"].clone(), loss["count"].as_u64().expect("a count"));
    for _ in 0..4 {
        let delta = updates.next("delta");
        let sent = delta["series"].as_array().expect("series");
        let Some(points) = sent.iter().find(|series| series["id"] == number) else {
            continue;
        };
        let from = points["from"].as_u64().expect("a place");
        assert!(from <= count, "points {count} to {from} are missing");
        count = count.max(from + points["v"].as_array().expect("values").len() as u64);
    }
    let now = series(
        &get(demo.port, &format!("/api/run?id={id}"), "").json(),
        "train.loss",
    )["count"]
        .as_u64();
    assert!(count > loss["count"].as_u64().unwrap_or(0) && Some(count) <= now);
    assert!(
        updates.next("news")["sinks"]
            .as_array()
            .is_some_and(|sinks| sinks.len() >= 2)
    );
}

/// The maximum number of runs that a stream can watch. Their updates have about 100 KiB each, so that the updates of a few
/// seconds exceed the buffers of a socket.
const RUNS: usize = 16;
/// The number of streams that are not read.
const SILENT: usize = 8;
/// The limit of the memory growth. The buffers of a socket belong to the system, not to the agent. Updates of 16 runs would
/// wait for each stream.
const MAX_MEMORY_KIB: u64 = 96 << 10;
/// The limit of the unread bytes of a closed stream: its buffers on both sides.
const MAX_UNREAD: usize = 32 << 20;

#[test]
fn unread_event_streams_are_closed_without_blocking_others() {
    let agent = Agent::start(", idle_timeout: 1s");
    for run in 0..RUNS {
        agent.send(&run_with_verdicts(&format!("r{run}"), 200));
    }
    agent.wait_for_runs(RUNS);
    let query: String = (0..RUNS).map(|run| format!("run=r{run}&")).collect();
    let mut updates = Updates::open(agent.port, &query);
    updates.next("delta");
    let memory = agent.memory_kib();
    let open = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, agent.port)).expect("the page listens");
        write!(stream, "GET /events?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the page reads");
        stream
    };
    let silent: Vec<TcpStream> = (0..SILENT).map(|_| open()).collect();
    wait_until("the agent knows the streams", || {
        connections(agent.port) == SILENT + 1
    });
    let mut most_memory = 0;
    wait_until("the agent has closed the streams that are not read", || {
        // The stream that is read still gets every update.
        updates.next("news");
        most_memory = most_memory.max(agent.memory_kib());
        connections(agent.port) == 1
    });
    let more = most_memory.saturating_sub(memory);
    assert!(more < MAX_MEMORY_KIB, "{more} KiB for {SILENT} streams");
    for stream in silent {
        let unread = rest(stream);
        assert!((1..MAX_UNREAD).contains(&unread), "{unread} bytes were sent");
    }
    updates.next("delta");

    // The shutdown does not wait for them either.
    let _silent: Vec<TcpStream> = (0..SILENT).map(|_| open()).collect();
    updates.next("delta");
    assert!(agent.stop().success());
}

#[track_caller]
fn series(run: &Value, metric: &str) -> Value {
    let all = run["series"].as_array().expect("series");
    let found = all.iter().find(|series| series["metric"] == metric);
    found.unwrap_or_else(|| panic!("there is no {metric}")).clone()
}
