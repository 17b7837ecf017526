//! MaxText's `metrics_file`, which is truncated at every evaluation and then continues: nothing is read twice.

use std::{
    fs::{self, OpenOptions},
    io::Write,
};

use pulsetrain_tests::{corpus, wait_until};

use crate::tail::{
    values::{assert_same_values, values},
    world::{World, imported},
};

#[test]
fn metrics_file_truncated_at_every_evaluation_is_one_run() {
    let original = corpus("maxtext/demo.metrics.jsonl");
    let text = fs::read_to_string(&original).expect("the corpus can be read");
    let world = World::new("metrics.jsonl").with("--poll-interval=0.1");
    let path = world.path("metrics.jsonl");
    let follower = world.follow();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut written, step) = (String::new(), lines.len() / 3);
    for (number, line) in lines.iter().enumerate() {
        // As MaxText does: the file is opened for each line, and truncated before some of them.
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .expect("a log can be opened");
        if number > 0 && number % step == 0 {
            log.set_len(0).expect("a log can be emptied");
        }
        log.write_all(line.as_bytes()).expect("a log can be written");
        written.push_str(line);
        if (number + 1) % step == 0 {
            let so_far = world.path("so-far");
            fs::write(&so_far, &written).expect("a file can be written");
            let expected = values(&imported([so_far.as_path()], &[])).values().sum::<usize>();
            wait_until("all that will be emptied is delivered", || {
                values(&world.delivered()).values().sum::<usize>() >= expected
            });
        }
    }
    let expected = imported([original.as_path()], &[]);
    wait_until("everything is delivered", || {
        world.delivered().of_kind("point").len() >= expected.of_kind("point").len()
    });
    let status = follower.stop();
    assert!(status.success(), "{status}");
    assert_same_values(&world.delivered(), &expected);
}
