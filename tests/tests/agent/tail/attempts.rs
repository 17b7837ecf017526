//! A restarted run: its log starts again, by truncation or by appending, and is the next attempt of the same run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use pulsetrain_tests::{
    Folder, Import, Items, SurogateWriter, corpus,
    otlp::{integer, text_of},
    surogate_records, wait_until,
};
use serde_json::Value;

use crate::tail::world::World;

/// The trace ids of the step spans of each attempt.
type Traces = BTreeMap<i64, BTreeSet<String>>;

/// Returns the attempt and the trace of each step span, including repeated deliveries.
fn steps(items: &Items) -> Vec<(i64, String)> {
    let steps = items.spans_of("train.step").into_iter();
    steps
        .map(|item| (attempt(item), item["span"]["traceId"].to_string()))
        .collect()
}

/// Returns the traces of the step spans of each attempt. A set also covers a file that is truncated and rewritten after a kill:
/// a reader may then see a step twice.
fn traces(items: &Items) -> Traces {
    let mut traces = Traces::new();
    for (attempt, trace) in steps(items) {
        traces.entry(attempt).or_default().insert(trace);
    }
    traces
}

fn attempt(item: &Value) -> i64 {
    integer(&item["resource"], "train.attempt").expect("a run has an attempt")
}

fn runs(items: &Items) -> BTreeSet<&str> {
    let spans = items.of_kind("span").into_iter();
    spans
        .filter_map(|item| text_of(&item["resource"], "train.run.id"))
        .collect()
}

fn sizes(traces: &Traces) -> Vec<(i64, usize)> {
    traces
        .iter()
        .map(|(attempt, traces)| (*attempt, traces.len()))
        .collect()
}

fn wait_for_steps(world: &World, expected: &[(i64, usize)]) {
    wait_until("all steps of all attempts are delivered", || {
        sizes(&traces(&world.delivered())) == expected
    });
}

fn assert_distinct(items: &Items) {
    let steps = steps(items);
    let all: BTreeSet<&String> = steps.iter().map(|(_, trace)| trace).collect();
    assert_eq!(all.len(), steps.len(), "each step is delivered once");
    assert_eq!(runs(items).len(), 1, "the attempts are of one run");
}

/// Returns two runs of Surogate that begin with the same records: the heads of the files are equal.
fn surogate_runs() -> [Vec<String>; 2] {
    let first = surogate_records(&corpus("surogate/training_dense.json"));
    let is_step = |record: &String| record.contains("\"log\": \"step\"");
    let steps = first.iter().position(is_step).expect("it has steps");
    let later = |(number, record): (usize, &String)| match number < steps {
        true => record.clone(),
        false => record.replace("2026-11-21 ", "2026-11-22 "),
    };
    let second = first.iter().enumerate().map(later).collect();
    [first, second]
}

fn steps_of(records: &[String]) -> usize {
    let durations = records
        .iter()
        .filter(|record| record.contains("\"log\": \"step\""));
    durations.count()
}

fn write(log: &Path, records: &[String]) {
    let mut writer = SurogateWriter::create(log);
    records.iter().for_each(|record| writer.append(record));
}

#[test]
fn truncated_log_with_the_same_first_record_is_the_next_attempt() {
    let [first, second] = surogate_runs();
    let steps = steps_of(&first);
    let world = World::new("training.json");
    let follower = world.follow();
    write(&world.path("training.json"), &first);
    wait_for_steps(&world, &[(0, steps)]);
    write(&world.path("training.json"), &second);
    wait_for_steps(&world, &[(0, steps), (1, steps)]);
    assert!(follower.stop().success());
    assert_distinct(&world.delivered());
}

#[test]
fn log_rewritten_while_not_followed_is_the_next_attempt() {
    let [first, second] = surogate_runs();
    let steps = steps_of(&first);
    // Shorter than the part that was read, and longer.
    for (read, written) in [(first.len(), second.len() - 5), (first.len() - 5, second.len())] {
        let world = World::new("training.json");
        let follower = world.follow();
        write(&world.path("training.json"), &first[..read]);
        let steps_read = steps_of(&first[..read]);
        wait_for_steps(&world, &[(0, steps_read)]);
        follower.stop();
        write(&world.path("training.json"), &second[..written]);
        let follower = world.follow();
        let expected = [(0, steps_read), (1, steps_of(&second[..written]))];
        wait_for_steps(&world, &expected);
        follower.kill();
        write_more(&world.path("training.json"), &second[written..]);
        let follower = world.follow();
        wait_for_steps(&world, &[(0, steps_read), (1, steps)]);
        assert!(follower.stop().success());
        assert_distinct(&world.delivered());
    }
}

/// Appends records to a log that is not being written.
fn write_more(log: &Path, records: &[String]) {
    let mut text = fs::read_to_string(log).expect("a log can be read");
    for record in records {
        text.truncate(text.len() - "\n]\n".len());
        text += &format!(",\n  {record}\n]\n");
    }
    let mut file = OpenOptions::new()
        .write(true)
        .open(log)
        .expect("a log can be opened");
    file.write_all(text.as_bytes()).expect("a log can be written");
}

/// Returns the lines of a script that logs its steps, starting at a time.
fn script(hour: u32, steps: u32) -> String {
    let line = |step| {
        format!(
            "time=2026-11-21T{hour:02}:00:{step:02}Z step={step} train.loss=2.5 train.step.duration=0.5s\n"
        )
    };
    (1..=steps).map(line).collect()
}

fn append(log: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log can be opened");
    file.write_all(text.as_bytes()).expect("a log can be written");
}

#[test]
fn restarted_script_that_truncates_its_log_is_the_next_attempt() {
    for steps in [1, 30] {
        let world = World::new("train.log").with("--format=keyvalue");
        let log = world.path("train.log");
        let follower = world.follow();
        fs::write(&log, script(1, steps)).expect("a log can be written");
        wait_for_steps(&world, &[(0, steps as usize)]);
        fs::write(&log, script(2, steps)).expect("a log can be written");
        wait_for_steps(&world, &[(0, steps as usize), (1, steps as usize)]);
        assert!(follower.stop().success());
        assert_distinct(&world.delivered());
    }
}

#[test]
fn restarted_script_that_appends_to_its_log_is_the_next_attempt_despite_kills() {
    let world = World::new("train.log").with("--format=keyvalue");
    let log = world.path("train.log");
    let mut expected = Vec::new();
    for attempt in 0..4 {
        let follower = world.follow();
        append(&log, &script(attempt, 20));
        expected.push((i64::from(attempt), 20));
        wait_for_steps(&world, &expected);
        follower.kill();
    }
    let follower = world.follow();
    append(
        &log,
        "time=2026-11-21T09:00:00Z step=21 train.loss=2.5 train.step.duration=0.5s\n",
    );
    expected[3].1 += 1;
    wait_for_steps(&world, &expected);
    assert!(follower.stop().success());
    assert_distinct(&world.delivered());
}

#[test]
fn rotated_log_remains_one_attempt() {
    let world = World::new("train.log").with("--format=keyvalue");
    let log = world.path("train.log");
    let (text, half) = (script(1, 40), script(1, 20));
    let (first, second) = text.split_at(half.len());
    let follower = world.follow();
    append(&log, first);
    wait_until("the first part is delivered", || {
        !traces(&world.delivered()).is_empty()
    });
    fs::copy(&log, world.path("train.log.1")).expect("a log can be copied");
    fs::write(&log, "").expect("a log can be emptied");
    append(&log, second);
    wait_for_steps(&world, &[(0, 40)]);
    assert!(follower.stop().success());
}

#[test]
fn import_of_a_log_with_two_runs_gives_them_distinct_attempts() {
    let folder = Folder::new();
    let log = folder.path("train.log");
    append(&log, &script(1, 10));
    append(&log, &script(2, 10));
    let items = Import::new(log).arg("--format=keyvalue").items();
    assert_eq!(sizes(&traces(&items)), [(0, 10), (1, 10)]);
    assert_distinct(&items);
}
