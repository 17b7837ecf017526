//! Logs of several ranks of one run in one source of the agent.

use std::fs;

use pulsetrain_tests::wait_until;

use crate::world::{Setup, World, check};

/// Creates a world with two logs of a run, whose source has one more key.
fn world(key: &str) -> World {
    let world = World::new();
    let setup = Setup {
        logs: &["rank*.log"],
        ..Setup::default()
    };
    let keys = format!("poll_interval: 100ms\n      format: keyvalue\n      run_id: job7\n{key}");
    let yaml = world.yaml(&setup).replace("poll_interval: 100ms\n", &keys);
    fs::write(world.path("agent.yaml"), yaml).expect("a temporary file can be written");
    for rank in 0..2 {
        let log = world.path(&format!("rank_{rank}.log"));
        fs::write(log, format!("step=1 train.loss=2.{rank}\n")).expect("a temporary file can be written");
    }
    world
}

#[test]
fn configured_path_pattern_sets_the_rank_of_each_log() {
    let world = world("      rank: {from: path, pattern: 'rank_(\\d+)'}\n");
    let agent = world.start();
    for (rank, loss) in [(0, 2.0), (1, 2.1)] {
        wait_until("the page has the rank", || {
            world.scraped_where("train_loss", &format!("train_rank=\"{rank}\"")) == [loss]
        });
    }
    assert!(!agent.stop_well().contains("collide"));
}

#[test]
fn colliding_ranks_of_followed_logs_are_reported() {
    let world = world("");
    let agent = world.start();
    wait_until("the agent warns", || agent.log().contains("collide"));
    let log = agent.stop_well();
    for word in ["rank_0.log", "rank_1.log", "job7", "rank 0", "from: path"] {
        assert!(log.contains(word), "{word} is missing: {log}");
    }
}

#[test]
fn invalid_rank_setting_is_rejected_with_its_location() {
    for (key, words) in [
        ("      rank: fast\n", "a rank like 3"),
        ("      rank: -1\n", "a rank like 3"),
        (
            "      rank: {from: path, pattern: 'rank_('}\n",
            "not a regular expression",
        ),
        ("      rank: {from: path, pattern: 'rank_3'}\n", "no group"),
        ("      rank: {from: host, pattern: '(3)'}\n", "host"),
    ] {
        let reported = check(&world(key)).expect_code(2).stderr;
        assert!(reported.contains(words), "{key}: {reported}");
        assert!(reported.contains("agent.yaml:9:"), "{key}: {reported}");
    }
    check(&world("      rank: 3\n")).expect_code(0);
}
