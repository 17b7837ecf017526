//! `trainer_state.json` of Hugging Face's Trainer, which is written anew as a whole whenever it is saved: what its history had
//! before is not said again.

use std::{fs, path::Path};

use pulsetrain_tests::{Items, corpus, wait_until};
use serde_json::Value;

use crate::world::World;

const LOSSES: [f64; 4] = [
    4.470_643_615_722_656,
    4.465_306_472_778_320_5,
    4.473_390_197_753_906,
    4.467_992_401_123_046_5,
];

/// The state as it was when its history had so many entries.
fn state(entries: usize) -> String {
    let text = fs::read_to_string(corpus("hf-trainer/trainer_state.json")).expect("the sample can be read");
    let mut state: Value = serde_json::from_str(&text).expect("the state is JSON");
    let history = state["log_history"].as_array_mut().expect("a history is a list");
    history.truncate(entries);
    let step = history.last().map(|entry| entry["step"].clone());
    state["global_step"] = step.unwrap_or_default();
    // As Python does, the keys in their order.
    serde_json::to_string_pretty(&state).expect("JSON can be written")
}

fn values(items: &Items, metric: &str) -> Vec<f64> {
    let values = items.values(metric);
    values.into_iter().map(|(_, value)| value).collect()
}

/// Saves the state in place of what was there, in the same file or in another one under its name.
fn save(path: &Path, entries: usize, renames: bool) {
    if renames {
        let new = path.with_extension("new");
        fs::write(&new, state(entries)).expect("a state can be written");
        fs::rename(new, path).expect("a state can be renamed");
    } else {
        fs::write(path, state(entries)).expect("a state can be written");
    }
}

#[test]
fn a_state_that_is_saved_again_and_again_is_told_once_also_after_a_kill() {
    let world = World::new("trainer_state.json").with("--poll-interval=0.1");
    let path = world.path("trainer_state.json");
    let expect = |count: usize| {
        wait_until("the new losses are delivered", || {
            values(&world.delivered(), "train.loss").len() >= count
        });
        assert_eq!(values(&world.delivered(), "train.loss"), LOSSES[..count]);
    };
    save(&path, 1, false);
    let follower = world.follow();
    expect(1);
    save(&path, 3, false);
    expect(2);
    drop(follower);
    let follower = world.follow();
    save(&path, 4, true);
    expect(3);
    save(&path, 6, false);
    expect(4);
    wait_until("the second evaluation is delivered", || {
        values(&world.delivered(), "eval.loss").len() >= 2
    });
    let status = follower.stop();
    assert!(status.success(), "{status}");
    let delivered = world.delivered();
    assert_eq!(
        values(&delivered, "eval.loss"),
        [4.474_307_060_241_699, 4.469_989_299_774_17]
    );
    assert_eq!(values(&delivered, "train.loss"), LOSSES);
    assert_eq!(values(&delivered, "train.global_step"), [5.0, 10.0, 15.0, 20.0]);
}
