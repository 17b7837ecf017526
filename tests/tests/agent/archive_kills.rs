//! SIGKILL at random moments, with an output file: every acknowledged item of a client is in the file exactly once.
//!
//! `PULSETRAIN_KILLS=200 PULSETRAIN_KILLS_TABLE=exporter/DELIVERY.md` writes the figures of a longer run into that file.

use std::{collections::BTreeMap, env, thread};

use fastrand::Rng;
use pulsetrain_tests::{Items, SurogateRun, free_port, spin, wait_until, wait_until_begun, write_table};
use serde_json::Value;

use crate::{
    clients::Clients,
    delivery::configure_sinks,
    disk_queue_kills::kills,
    rotation::archived,
    world::{World, imported},
};

#[test]
fn kills_at_random_moments_neither_lose_nor_duplicate_acknowledged_archive_items() {
    let mut random = Rng::with_seed(20_261_125);
    let world = World::new();
    let receiver = free_port();
    let rotation = "      rotation: {max_bytes: 256KiB, keep: 0}\n";
    configure_sinks(
        &world,
        receiver,
        &(world.file_sink("archive", "out.jsonl") + rotation),
        "",
    );
    let log = world.path("training.json");
    let mut run = SurogateRun::begin(&log, 0);
    let clients = Clients::default();
    let kills = kills();
    thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(|| clients.post(receiver))));
        for _ in 0..kills {
            let agent = world.spawn();
            if random.u8(0..4) > 0 {
                wait_until_begun(&agent);
            }
            thread::scope(|scope| {
                let mut writing = random.fork();
                let run = &mut run;
                scope.spawn(move || run.write(&mut writing, 10));
                if random.u8(0..4) > 0 {
                    clients.wait_for_answers(&agent);
                }
                spin(&mut random);
                agent.kill();
            });
        }
        clients.end();
    });
    let expected = imported(&[&log]);
    let acknowledged = clients.acknowledged();
    assert!(acknowledged.len() > kills / 2, "{}", acknowledged.len());
    let folder = world.path("");
    let written = || archived(&folder).map(divide);
    let agent = world.start();
    wait_until("the log is delivered", || {
        written().is_some_and(|(_, of_log)| of_log.len() >= expected.len())
    });
    let (status, printed) = agent.stop_with_log();
    assert!(status.success() && !printed.contains("lost"), "{printed}");
    let (messages, of_log) = written().expect("nobody changes it");
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|text| !messages.contains_key(*text))
        .collect();
    assert!(lost.is_empty(), "{} messages are lost: {lost:?}", lost.len());
    let repeated = messages.iter().find(|(_, times)| **times > 1);
    assert_eq!(repeated, None, "each message is in the file once");
    of_log.assert_same(&expected);
    if let Some(document) = env::var_os("PULSETRAIN_KILLS_TABLE") {
        let figures = format!(
            "{kills} kills: {} messages were acknowledged, {} items of the log were read. 0 were lost, 0 are in the files twice.\n",
            acknowledged.len(),
            expected.len()
        );
        write_table(document, "kills with a file", &figures);
    }
}

/// Returns the number of occurrences of each client message, and all other items.
fn divide(items: Items) -> (BTreeMap<String, usize>, Items) {
    let text_of = |item: &Value| {
        let text = item["log"]["body"]["stringValue"].as_str()?;
        text.starts_with("message ").then(|| text.to_owned())
    };
    let mut messages = BTreeMap::new();
    for text in items.of_kind("log").into_iter().filter_map(text_of) {
        *messages.entry(text).or_default() += 1;
    }
    (messages, items.changed(|item| text_of(item).is_none(), |_| {}))
}
