//! The energy of steps from an agent that is killed repeatedly: each step exactly once.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use fastrand::Rng;
use pulsetrain_tests::{FakeNvml, Items, Process, SurogateRun, otlp::text_of, wait_until};
use serde_json::Value;

use crate::{
    kills::{KILLS, kill_while_a_record_is_torn, kill_while_logs_grow},
    world::{Setup, World, imported},
};

const LOGS: [&str; 2] = ["first.json", "second.json"];

/// Two runs on one host, each with its own GPU. Their steps wait for the next reading of their GPU, so that they are delivered
/// after later readings.
#[test]
fn fifty_kills_report_the_energy_of_each_step_once() {
    let mut random = Rng::with_seed(20_261_123);
    let world = World::new();
    let logs = LOGS.map(|log| world.path(log));
    let mut runs = [0, 1].map(|run: usize| SurogateRun::begin_now(&logs[run]));
    let trainers = [0, 1].map(|run: usize| trainer(&logs[run]));
    let driver = driver_of(&trainers);
    configure(&world, &driver);
    let agent = world.spawn();
    wait_until("it is known whose the GPUs are", || claims(&world) == 2);
    drop(agent);
    for kill in 0..KILLS {
        if kill % 5 == 4 {
            kill_while_a_record_is_torn(&world, &mut runs[kill % 2], &mut random);
        } else {
            kill_while_logs_grow(&world, &mut runs, &mut random);
        }
    }
    let expected = imported(&logs);
    let steps = steps(&expected);
    assert!(steps.len() > 10 * KILLS, "{} steps", steps.len());
    let agent = world.spawn();
    wait_until("every step is reported", || {
        steps_reported(&world).len() >= steps.len()
    });
    assert!(agent.stop().success());

    let out = world.written("out.jsonl").1;
    let reported = reported(&out);
    assert_eq!(reported.len(), steps.len(), "one point for each step");
    assert_eq!(reported.into_iter().collect::<BTreeSet<_>>(), steps);
    let each = ["gpu.steps", "gpu.step.energy", "gpu.step.mean_power"];
    assert_eq!(
        each.map(|name| out.points_by_metric()[name]),
        [steps.len(); 3],
        "all of them are complete"
    );
    without_energy(out).assert_same(&expected);
}

/// Starts a process with the environment of the run of a log.
fn trainer(log: &Path) -> Process {
    let run = imported(&[log]);
    let id = text_of(&run.of_kind("point")[0]["resource"], "train.run.id").expect("a log has a run");
    Process::start(
        "trainer",
        Command::new("sleep").arg("3600").env("PULSETRAIN_RUN_ID", id),
    )
}

/// Creates a driver with one GPU for each of the trainers, without other processes.
fn driver_of(trainers: &[Process; 2]) -> FakeNvml {
    let [first, second] = trainers.each_ref().map(Process::pid);
    let driver = FakeNvml::with(
        "h100x8",
        &format!(
            "gpus: {{count: 2, each: {{\"0\": {{processes: [{{pid: {first}, memory_bytes: 1000}}]}}, \"1\": {{processes: [{{pid: {second}, memory_bytes: 1000}}]}}}}}}"
        ),
    );
    driver.run_from(0.0);
    driver
}

fn configure(world: &World, driver: &FakeNvml) {
    let library = driver.library();
    world.configure_as(&Setup {
        logs: &LOGS,
        sinks: &world.file_sink("archive", "out.jsonl"),
        energy: "wait: 20s",
        rest: &format!("gpu: {{interval: 200ms, library: \"{}\"}}\n", library.display()),
        ..Setup::default()
    });
}

/// Returns the number of runs to which a GPU is attributed so far.
fn claims(world: &World) -> usize {
    let out = lines_with(world, "\"gpu.energy\"");
    let energies = out.points_of("gpu.energy").into_iter();
    let runs = energies.filter_map(|item| text_of(&item["point"], "train.run.id"));
    runs.collect::<BTreeSet<_>>().len()
}

/// Returns the run and the end time of each step.
fn steps(items: &Items) -> BTreeSet<(String, String)> {
    let steps = items.spans_of("train.step").into_iter();
    steps
        .map(|item| of_run(item, &item["span"]["endTimeUnixNano"]))
        .collect()
}

/// Returns the run and the end time of each step whose energy is reported as complete.
fn reported(items: &Items) -> Vec<(String, String)> {
    let reported = items.points_of("gpu.steps").into_iter();
    reported
        .map(|item| {
            let status = text_of(&item["point"], "gpu.step.energy_status");
            assert!(matches!(status, Some("complete" | "coarse")), "{item}");
            of_run(item, &item["point"]["timeUnixNano"])
        })
        .collect()
}

fn steps_reported(world: &World) -> Vec<(String, String)> {
    reported(&lines_with(world, "\"gpu.steps\""))
}

/// Returns the items of the lines with these words; parsing the complete file would be slow.
fn lines_with(world: &World, words: &str) -> Items {
    let text = fs::read_to_string(world.path("out.jsonl")).unwrap_or_default();
    let uncut = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..uncut].lines().filter(|line| line.contains(words));
    Items::parse(&lines.collect::<Vec<_>>().join("\n"))
}

fn of_run(item: &Value, time: &Value) -> (String, String) {
    let run = text_of(&item["resource"], "train.run.id").expect("an item of a run");
    (
        run.to_owned(),
        time.as_str().expect("an item has a time").to_owned(),
    )
}

/// Returns the items of the logs without everything that was derived from them.
fn without_energy(items: Items) -> Items {
    let is_of_log = |item: &Value| {
        text_of(&item["resource"], "train.run.id").is_some() && item["scope"]["name"] != "pulsetrain.derive"
    };
    items.changed(is_of_log, |item| {
        let attributes = item.pointer_mut("/span/attributes");
        if let Some(attributes) = attributes.and_then(Value::as_array_mut) {
            attributes.retain(|attribute| {
                let key = attribute["key"].as_str().unwrap_or_default();
                !key.starts_with("gpu.")
            });
        }
    })
}
