//! An agent that is killed repeatedly while its logs grow: its output equals that of an import.

use std::{fs, path::PathBuf, thread, time::Duration};

use fastrand::Rng;
use pulsetrain_tests::{
    Answer, FakeEndpoint, Items, Progress, Received, SurogateRun, spin, wait_at_most, wait_until,
    wait_until_begun,
};

use crate::world::{Setup, World, imported};

pub(crate) const KILLS: usize = 50;

/// Two logs, each with its own source.
const LOGS: [&str; 2] = ["first.json", "second.json"];

#[test]
fn fifty_kills_neither_lose_nor_duplicate_logs_nor_retract_telemetry() {
    const EMPTIED_BEFORE: usize = 20;
    const RENAMED_BEFORE: usize = 35;
    let mut random = Rng::with_seed(20_261_122);
    let world = world_with_archive("", "wait: 2s");
    let [first, second] = LOGS.map(|log| world.path(log));
    let mut runs = [SurogateRun::begin(&first, 0), SurogateRun::begin(&second, 10)];
    let mut logs = vec![first.clone(), second];
    for kill in 0..KILLS {
        if kill == EMPTIED_BEFORE {
            deliver_all(&world, &logs);
            fs::copy(&first, world.path("emptied.json")).expect("a log can be copied");
            logs.push(world.path("emptied.json"));
            runs[0] = SurogateRun::begin(&first, 1);
        }
        if kill == RENAMED_BEFORE {
            fs::rename(&first, world.path("renamed.json")).expect("a log can be renamed");
            logs.push(world.path("renamed.json"));
            runs[0] = SurogateRun::begin(&first, 2);
        }
        if kill % 5 == 4 {
            kill_while_a_record_is_torn(&world, &mut runs[kill % 2], &mut random);
        } else {
            kill_while_logs_grow(&world, &mut runs, &mut random);
        }
    }
    let expected = imported(&logs);
    let agent = world.spawn();
    let of_logs = || world.written("out.jsonl").1.divide_ends();
    // If it comes too late, the comparison below prints what is missing.
    let is_in_time = wait_at_most(Duration::from_secs(120), || of_logs().1.len() >= expected.len());
    assert!(agent.stop().success());
    let (ends, others) = of_logs();
    others.assert_same(&expected);
    assert!(
        is_in_time,
        "the agent delivered everything only when it was stopped"
    );
    // The run whose log was renamed while it was followed has ended, and the end of its series arrived once.
    assert_eq!(ends.distinct().len(), ends.len());
}

/// No data of the logs is ever committed, because one sink accepts nothing: every kill removes all of it from the file. The
/// agent's own telemetry is written once, and stays.
#[test]
fn agent_telemetry_that_no_log_can_replay_survives_every_kill() {
    let endpoint = FakeEndpoint::start([], Answer::Refuse(503));
    let collector = format!("  collector:\n    otlp:\n      endpoint: {}\n", endpoint.url());
    let world = world_with_archive(&collector, "enabled: false");
    let mut random = Rng::with_seed(11);
    let mut runs = LOGS.map(|log| SurogateRun::begin(&world.path(log), usize::from(log == LOGS[1])));
    let mut own = Items::default();
    for _ in 0..5 {
        runs.iter_mut().for_each(|run| run.write(&mut random, 30));
        let agent = world.start();
        wait_until("the agent has sent more telemetry of its own", || {
            world.written("out.jsonl").0.len() > own.len() + 20
        });
        wait_until("the logs have come", || !world.written("out.jsonl").1.is_empty());
        drop(agent);
        let now = world.written("out.jsonl").0;
        now.assert_holds(&own);
        own = now;
    }
    let expected = imported(&LOGS.map(|log| world.path(log)));
    let agent = world.spawn();
    wait_until("everything is there again", || {
        world.written("out.jsonl").1.len() >= expected.len()
    });
    drop(agent);
    let (now, of_logs) = world.written("out.jsonl");
    now.assert_holds(&own);
    of_logs.assert_same(&expected);
}

#[test]
fn duplicates_after_a_kill_are_identifiable_by_ids_and_times() {
    let mut random = Rng::with_seed(7);
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let world = World::new();
    let collector = format!("  collector:\n    otlp:\n      endpoint: {}\n", endpoint.url());
    world.configure_as(&Setup {
        logs: &LOGS,
        sinks: &collector,
        ..Setup::default()
    });
    let logs = LOGS.map(|log| world.path(log));
    let mut runs = [SurogateRun::begin(&logs[0], 0), SurogateRun::begin(&logs[1], 10)];
    let received = || {
        endpoint
            .items_answered(&Answer::Accept)
            .divide_by_service("pulsetrain")
            .1
    };
    // Parsing all that was received takes seconds, so the loops wait for requests.
    let requests = || {
        let of_log = |request: &&Received| memchr::memmem::find(&request.body, b"\"surogate\"").is_some();
        endpoint.received().iter().filter(of_log).count()
    };
    for _ in 0..10 {
        let before = requests();
        let agent = world.spawn();
        runs.iter_mut().for_each(|run| run.write(&mut random, 20));
        wait_until("something arrives", || requests() > before);
        spin(&mut random);
        drop(agent);
    }
    let expected = imported(&logs);
    let agent = world.spawn();
    let distinct = expected.distinct();
    let mut parsed = 0;
    wait_until("everything has arrived", || {
        std::mem::replace(&mut parsed, requests()) != parsed && received().distinct().len() >= distinct.len()
    });
    agent.stop();
    assert_eq!(distinct.len(), expected.len(), "no item of a log is there twice");
    assert_eq!(received().distinct(), distinct);
}

fn world_with_archive(more: &str, energy: &str) -> World {
    let world = World::new();
    let archive = world.file_sink("archive", "out.jsonl") + more;
    world.configure_as(&Setup {
        logs: &LOGS,
        sinks: &archive,
        energy,
        ..Setup::default()
    });
    world
}

pub(crate) fn kill_while_logs_grow(world: &World, runs: &mut [SurogateRun; 2], random: &mut Rng) {
    let before = Progress::new(world.path("out.jsonl"), world.path("state/positions.json"));
    let records = random.usize(5..40);
    let [mut writing, mut other] = [random.fork(), random.fork()];
    let [first, second] = runs;
    thread::scope(|scope| {
        scope.spawn(|| first.write(&mut writing, records));
        scope.spawn(|| second.write(&mut other, records));
        let agent = world.spawn();
        before.wait_for_kill_time(&agent, random);
        drop(agent);
    });
}

/// Starts an agent on a half-written record, and kills it before the other half is written.
pub(crate) fn kill_while_a_record_is_torn(world: &World, run: &mut SurogateRun, random: &mut Rng) {
    let mut moment = random.fork();
    run.write_torn(random, || {
        let agent = world.spawn();
        wait_until_begun(&agent);
        spin(&mut moment);
        drop(agent);
    });
}

fn deliver_all(world: &World, logs: &[PathBuf]) {
    let expected = imported(logs);
    let agent = world.spawn();
    wait_until("everything is delivered", || {
        world.written("out.jsonl").1.divide_ends().1.len() >= expected.len()
    });
    drop(agent);
}
