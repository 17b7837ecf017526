//! A follower that is killed repeatedly while the log grows: its output equals that of an import.

use std::{fs, path::Path, thread};

use fastrand::Rng;
use pulsetrain_tests::{Answer, FakeEndpoint, Progress, SurogateRun, spin, wait_until, wait_until_begun};

use crate::tail::world::{World, imported};

const KILLS: usize = 50;

#[test]
fn fifty_kills_at_random_moments_neither_lose_nor_duplicate_items() {
    const EMPTIED_BEFORE: usize = 20;
    const RENAMED_BEFORE: usize = 35;
    let mut random = Rng::with_seed(20_261_121);
    let world = World::new("training.json");
    let log = world.path("training.json");
    let mut run = SurogateRun::begin(&log, 0);
    for kill in 0..KILLS {
        if kill == EMPTIED_BEFORE {
            deliver_all(&world, &log);
            fs::copy(&log, world.path("emptied.json")).expect("a log can be copied");
            run = SurogateRun::begin(&log, 1);
        }
        if kill == RENAMED_BEFORE {
            fs::rename(&log, world.path("renamed.json")).expect("a log can be renamed");
            run = SurogateRun::begin(&log, 2);
        }
        if kill % 5 == 4 {
            kill_while_a_record_is_torn(&world, &mut run, &mut random);
        } else {
            kill_while_the_log_grows(&world, &mut run, &mut random);
        }
    }
    let logs = ["emptied.json", "renamed.json", "training.json"].map(|name| world.path(name));
    let expected = imported(logs.iter().map(AsRef::as_ref), &[]);
    world.expect_delivered(world.follow(), &expected);
}

#[test]
fn duplicates_after_a_kill_are_identifiable_by_ids_and_times() {
    let mut random = Rng::with_seed(7);
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let world = World::new("training.json");
    let log = world.path("training.json");
    let mut run = SurogateRun::begin(&log, 0);
    let received = || endpoint.items_answered(&Answer::Accept);
    for _ in 0..10 {
        let before = received().len();
        let follower = world.follow_to(&endpoint.url());
        run.write(&mut random, 20);
        wait_until("something arrives", || received().len() > before);
        spin(&mut random);
        drop(follower);
    }
    let expected = imported([log.as_path()], &[]);
    let follower = world.follow_to(&endpoint.url());
    wait_until("everything has arrived", || {
        received().distinct().len() >= expected.distinct().len()
    });
    follower.stop();
    assert_eq!(
        expected.distinct().len(),
        expected.len(),
        "no item of a log is there twice"
    );
    assert_eq!(received().distinct(), expected.distinct());
}

fn kill_while_the_log_grows(world: &World, run: &mut SurogateRun, random: &mut Rng) {
    let before = Progress::new(world.out(), world.positions());
    let records = random.usize(5..60);
    let mut writing = random.fork();
    thread::scope(|scope| {
        scope.spawn(|| run.write(&mut writing, records));
        let follower = world.follow();
        before.wait_for_kill_time(&follower, random);
        drop(follower);
    });
}

/// Starts a follower on a half-written record, and kills it before the other half is written.
fn kill_while_a_record_is_torn(world: &World, run: &mut SurogateRun, random: &mut Rng) {
    let mut moment = random.fork();
    run.write_torn(random, || {
        let follower = world.follow();
        wait_until_begun(&follower);
        spin(&mut moment);
        drop(follower);
    });
}

fn deliver_all(world: &World, log: &Path) {
    let expected = imported([log], &[]);
    let follower = world.follow();
    wait_until("everything is delivered", || {
        world.delivered().len() >= expected.len()
    });
    drop(follower);
}
