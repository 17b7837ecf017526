//! `trainer_state.json` of Hugging Face's Trainer, which every save rewrites completely: earlier entries of its history are not
//! emitted again, also after a restart of the follower.

use std::{collections::BTreeMap, fs, path::PathBuf};

use fastrand::Rng;
use pulsetrain_tests::{Folder, Items, Process, Progress, corpus, spin, wait_until, wait_until_begun};
use serde_json::{Value, json};

use crate::tail::{
    values,
    world::{World, imported},
};

/// The number of entries in the history of the sample.
const ALL: usize = 6;

/// The losses of the sample.
const LOSSES: [f64; 3] = [
    4.470_643_615_722_656,
    4.465_306_472_778_320_5,
    4.473_390_197_753_906,
];

/// The metrics of the summary of the run, which every state has in addition to its history.
const AROUND: [&str; 2] = ["train.progress", "train.completed_flops"];

/// Returns the state with a history of `entries` entries, each modified by `change`.
fn state(entries: usize, change: impl Fn(&mut Value)) -> String {
    let text = fs::read_to_string(corpus("hf-trainer/trainer_state.json")).expect("the sample can be read");
    let mut state: Value = serde_json::from_str(&text).expect("the state is JSON");
    let history = state["log_history"].as_array_mut().expect("a history is a list");
    assert_eq!(history.len(), ALL);
    history.truncate(entries);
    history.iter_mut().for_each(change);
    let step = history.last().map(|entry| entry["step"].clone());
    state["global_step"] = step.unwrap_or_default();
    // As in Python, with the keys in their order.
    serde_json::to_string_pretty(&state).expect("JSON can be written")
}

fn same(_: &mut Value) {}

/// Modifies the values, as another run has them at the same steps.
fn of_another_run(entry: &mut Value) {
    if let Some(loss) = entry.get("loss").and_then(Value::as_f64) {
        entry["loss"] = json!(loss + 1.0);
    }
}

/// Modifies the values, as the same run has them after it resumed from an earlier checkpoint.
fn from_an_earlier_checkpoint(entry: &mut Value) {
    if entry["step"].as_u64() > Some(5) {
        of_another_run(entry);
    }
}

/// A folder with a state, and a follower of it.
struct Saved {
    world: World,
    path: PathBuf,
}

impl Saved {
    fn new() -> Self {
        let world = World::new("trainer_state.json").with("--poll-interval=0.1");
        let path = world.path("trainer_state.json");
        Self { world, path }
    }

    /// Replaces the saved state, in the same file or by renaming another one.
    fn save(&self, state: &str, renames: bool) {
        if renames {
            let new = self.path.with_extension("new");
            fs::write(&new, state).expect("a state can be written");
            fs::rename(new, &self.path).expect("a state can be renamed");
        } else {
            fs::write(&self.path, state).expect("a state can be written");
        }
    }

    /// Follows the saved states until the checkpoint covers them, and kills the follower.
    fn emit_and_kill(&self) {
        let saved = || {
            fs::metadata(self.world.positions())
                .and_then(|file| file.modified())
                .ok()
        };
        let before = saved();
        let follower = self.world.follow();
        wait_until("positions are kept", || saved() != before);
        drop(follower);
    }

    /// Expects that the follower has emitted the histories of these states once, as imports do.
    #[track_caller]
    fn expect(&self, follower: Process, states: &[&str]) {
        let finished = Folder::new();
        let mut expected = BTreeMap::new();
        for state in states {
            let path = finished.file("trainer_state.json", state);
            expected.extend(history(&imported([path.as_path()], &[])));
        }
        let has_come = |of: &BTreeMap<String, usize>| expected.keys().all(|value| of.contains_key(value));
        wait_until("all is delivered", || has_come(&history(&self.world.delivered())));
        let status = follower.stop();
        assert!(status.success(), "{status}");
        let delivered = history(&self.world.delivered());
        for (value, count) in &delivered {
            assert_eq!(Some(count), expected.get(value), "{value}");
        }
    }
}

/// Returns the items of the history and the settings, with their counts.
fn history(items: &Items) -> BTreeMap<String, usize> {
    let mut history = values::values(items);
    history.retain(|value, _| {
        !AROUND
            .iter()
            .any(|name| value.starts_with(&format!("\"{name}\"")))
    });
    history
}

#[test]
fn repeatedly_saved_state_is_emitted_once_despite_random_kills() {
    let mut random = Rng::with_seed(20_261_121);
    let saved = Saved::new();
    for entries in 1..=ALL {
        let before = Progress::new(saved.world.out(), saved.world.positions());
        let follower = saved.world.follow();
        saved.save(&state(entries, same), random.bool());
        before.wait_for_kill_time(&follower, &mut random);
        drop(follower);
    }
    saved.expect(saved.world.follow(), &[&state(ALL, same)]);
}

#[test]
fn state_saved_while_not_followed_emits_only_new_entries() {
    for renames in [false, true] {
        let saved = Saved::new();
        saved.save(&state(3, same), renames);
        saved.emit_and_kill();
        saved.save(&state(5, same), renames);
        saved.emit_and_kill();
        saved.save(&state(ALL, same), renames);
        saved.expect(saved.world.follow(), &[&state(ALL, same)]);
    }
}

#[test]
fn unchanged_trainer_state_is_not_emitted_again() {
    let saved = Saved::new();
    let complete = state(ALL, same);
    saved.save(&complete, false);
    saved.emit_and_kill();
    let reported = saved.world.delivered().len();
    let follower = saved.world.follow();
    wait_until_begun(&follower);
    saved.expect(follower, &[&complete]);
    // The same state in another file: not even the summary is emitted again.
    saved.save(&complete, true);
    let follower = saved.world.follow();
    wait_until_begun(&follower);
    saved.expect(follower, &[&complete]);
    assert_eq!(saved.world.delivered().len(), reported);
}

#[test]
fn state_of_another_run_is_emitted_from_its_start() {
    for is_followed in [false, true] {
        let saved = Saved::new();
        let (first, second) = (state(5, same), state(ALL, of_another_run));
        saved.save(&first, false);
        let follower = if is_followed {
            let follower = saved.world.follow();
            wait_until("the first run is delivered", || {
                !saved.world.delivered().is_empty()
            });
            saved.save(&second, false);
            follower
        } else {
            saved.emit_and_kill();
            saved.save(&second, false);
            saved.world.follow()
        };
        saved.expect(follower, &[&first, &second]);
    }
}

#[test]
fn run_resumed_from_an_earlier_checkpoint_is_emitted_from_there() {
    let saved = Saved::new();
    saved.save(&state(4, same), false);
    saved.emit_and_kill();
    saved.save(&state(4, from_an_earlier_checkpoint), false);
    let follower = saved.world.follow();
    let losses = || -> Vec<f64> {
        let losses = saved.world.delivered().values("train.loss");
        losses.into_iter().map(|(_, loss)| loss).collect()
    };
    let expected = [LOSSES[0], LOSSES[1], LOSSES[2], LOSSES[1] + 1.0, LOSSES[2] + 1.0];
    wait_until("the new losses are delivered", || {
        losses().len() >= expected.len()
    });
    assert!(follower.stop().success());
    assert_eq!(losses(), expected);
}

#[test]
fn partially_saved_state_is_emitted_once_wherever_it_is_torn() {
    let mut random = Rng::with_seed(7);
    let (first, complete) = (state(4, same), state(ALL, same));
    let history = complete.find("log_history").expect("there is a history");
    let end = complete.find("\"max_steps\"").expect("a setting follows it");
    let first_entry = history + complete[history..].find('}').expect("an entry ends");
    for cut in [
        0,
        1,
        history,
        first_entry - 1,
        first_entry + 1,
        first.len(),
        end - 1,
        end,
        complete.len() - 1,
    ] {
        let saved = Saved::new();
        saved.save(&first, false);
        saved.emit_and_kill();
        saved.save(&complete[..cut], false);
        let follower = saved.world.follow();
        wait_until_begun(&follower);
        spin(&mut random);
        drop(follower);
        let follower = saved.world.follow();
        wait_until_begun(&follower);
        saved.save(&complete, false);
        saved.expect(follower, &[&complete]);
    }
}

/// The Trainer saves a state into each checkpoint, including the history of all earlier ones.
#[test]
fn states_of_all_checkpoints_are_emitted_as_one_despite_random_kills() {
    let mut random = Rng::with_seed(11);
    let world = World::new("run/*/trainer_state.json").with("--poll-interval=0.1");
    let complete = state(ALL, same);
    let saved = Saved {
        path: world.path("complete.json"),
        world,
    };
    let checkpoint = |entries: usize| {
        let folder = saved.world.path(&format!("run/checkpoint-{}", entries * 5));
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("trainer_state.json"), state(entries, same)).expect("a state can be written");
    };
    // Two states exist before the follower starts; the later one has the lower name.
    checkpoint(1);
    checkpoint(2);
    saved.emit_and_kill();
    for entries in 3..=ALL {
        let before = Progress::new(saved.world.out(), saved.world.positions());
        let follower = saved.world.follow();
        checkpoint(entries);
        before.wait_for_kill_time(&follower, &mut random);
        drop(follower);
    }
    saved.expect(saved.world.follow(), &[&complete]);
}

#[test]
fn checkpoint_without_emitted_history_is_reported_and_loses_nothing() {
    let tear = |reported: &mut Value| reported["entries"] = json!("torn");
    let forget = |reported: &mut Value| *reported = Value::Null;
    for spoil in [tear, forget] {
        let saved = Saved::new();
        saved.save(&state(3, same), false);
        saved.emit_and_kill();
        let kept = fs::read(saved.world.positions()).expect("positions are kept");
        let mut kept: Value = serde_json::from_slice(&kept).expect("positions are JSON");
        let file = kept["files"]
            .as_object_mut()
            .and_then(|files| files.values_mut().next());
        spoil(&mut file.expect("there is a position")["emitted"]);
        fs::write(saved.world.positions(), kept.to_string()).expect("positions can be spoilt");
        saved.save(&state(5, same), false);
        let follower = saved.world.follow();
        wait_until("it is logged", || {
            follower.log().contains("earlier items may appear twice")
        });
        let expected = state(5, same);
        let path = saved.world.path("complete");
        fs::write(&path, expected).expect("a state can be written");
        let expected = history(&imported([path.as_path()], &[]));
        wait_until("all is delivered", || {
            let delivered = history(&saved.world.delivered());
            expected.keys().all(|value| delivered.contains_key(value))
        });
    }
}
