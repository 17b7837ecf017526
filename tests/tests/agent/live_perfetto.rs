//! Perfetto traces of a running agent: files that can be opened at any time and after a kill, and the flight recorder.

use std::{fs, net::Ipv4Addr, path::PathBuf};

use pulsetrain_perfetto::{EventKind, Item, TraceReader, TrackKind};
use pulsetrain_tests::{
    Process, SurogateWriter, TraceProcessor, command, corpus, http::request, some_or_return,
    surogate_records, wait_until,
};

use crate::world::{Setup, World, check};

/// The number of steps in the log.
const STEPS: usize = 30;

/// Creates a world with these sinks and sections; `FOLDER` in the sinks is its folder.
fn world(sinks: &str, rest: &str) -> World {
    let world = World::new();
    let folder = world.path("").display().to_string();
    world.configure_as(&Setup {
        sinks: &sinks.replace("FOLDER/", &folder),
        telemetry: "enabled: false",
        rest,
        ..Setup::default()
    });
    world
}

/// Returns the traces in a folder, oldest first.
fn traces(world: &World, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.path(folder)).map_or_else(|_| Vec::new(), Iterator::collect);
    let mut paths: Vec<PathBuf> = entries
        .into_iter()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "pftrace"))
        .collect();
    paths.sort_by_key(|path| path.with_extension(""));
    paths
}

/// Returns the status and the body of a response from the health address; status 0 without a response.
fn get(world: &World, path: &str) -> (u16, Vec<u8>) {
    request(world.health(), "GET", path, "", &[]).unwrap_or_default()
}

/// Returns the total number of steps in traces; panics if trace_processor reports a problem.
fn steps(judge: &TraceProcessor, traces: &[PathBuf]) -> usize {
    let of_trace = |trace: &PathBuf| {
        let [rows] = judge.query(
            trace,
            ["select count(*) as steps from slice where name = 'train.step'"],
        );
        rows[0]["steps"].as_u64().expect("a count is a number") as usize
    };
    traces.iter().map(of_trace).sum()
}

/// The same with our own reader, which is fast enough for polling.
fn shown(traces: &[PathBuf]) -> usize {
    let of_trace = |trace: &PathBuf| {
        let file = fs::File::open(trace).expect("a trace that is there can be opened");
        let is_step = |item: &Item| match item {
            Item::Event(event) => event.kind == EventKind::Begin && event.name == "train.step",
            _ => false,
        };
        let items = TraceReader::new(file).map(|item| item.expect("a trace is complete at every moment"));
        items.filter(is_step).count()
    };
    traces.iter().map(of_trace).sum()
}

/// Returns whether a record of the log is a step.
fn is_step(record: &str) -> bool {
    record.contains("\"log\": \"step\"")
}

const FILES: &str =
    "  traces: {perfetto: {path: FOLDER/traces/run.pftrace, flush_every: 50ms, bytes: 1MiB}}\n";
const RECORDER: &str = "  recorder: {flight_recorder: {path: FOLDER/recorded/flight.pftrace}}\n";

#[test]
fn a_file_can_be_opened_while_spans_arrive_and_after_a_kill() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let world = world(FILES, "");
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let mut log = SurogateWriter::create(&world.path("training.json"));
    let agent = world.start();
    let mut seen = Vec::new();
    for part in records.chunks(records.len().div_ceil(3)) {
        let before = shown(&traces(&world, "traces"));
        part.iter().for_each(|record| log.append(record));
        if part.iter().any(|record| is_step(record)) {
            wait_until("the trace shows more steps", || {
                shown(&traces(&world, "traces")) > before
            });
        }
        seen.push(steps(&judge, &traces(&world, "traces")));
    }
    assert!(seen.is_sorted() && seen[0] < STEPS, "{seen:?}");
    wait_until("the trace shows every step", || {
        shown(&traces(&world, "traces")) == STEPS
    });
    agent.kill();
    assert_eq!(steps(&judge, &traces(&world, "traces")), STEPS);
    let [nested] = judge.query(
        &traces(&world, "traces")[0],
        ["select count(*) as odd from slice where dur < 0"],
    );
    assert_eq!(nested[0]["odd"], 0);
}

#[test]
fn rotated_trace_files_together_contain_every_step_once() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let few_bytes = FILES
        .replace("1MiB", "2KiB")
        .replace("flush_every", "keep: 1000, flush_every");
    let world = world(&few_bytes, "");
    let mut log = SurogateWriter::create(&world.path("training.json"));
    let agent = world.start();
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    for part in records.chunks(records.len().div_ceil(4)) {
        let before = shown(&traces(&world, "traces"));
        part.iter().for_each(|record| log.append(record));
        if part.iter().any(|record| is_step(record)) {
            wait_until("the traces show more steps", || {
                shown(&traces(&world, "traces")) > before
            });
        }
    }
    assert!(agent.stop().success());
    let traces = traces(&world, "traces");
    assert!(traces.len() > 2, "{traces:?}");
    assert_eq!(shown(&traces), STEPS, "{traces:?}");
    let some = &traces[traces.len() - 2..];
    assert_eq!(steps(&judge, some), shown(some));
}

#[test]
fn flight_recorder_serves_local_requests_and_writes_on_a_signal() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let world = world(&RECORDER.replace("{path", "{last: 10m, path"), "");
    world.write_log("surogate/training_dense.json");
    let agent = world.start();
    let trace = world.path("got.pftrace");
    wait_until("the recorder has every step", || {
        let (status, body) = get(&world, "/trace?last=5m");
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        fs::write(&trace, body).unwrap();
        shown(std::slice::from_ref(&trace)) == STEPS
    });
    assert_eq!(steps(&judge, &[trace]), STEPS);
    agent.record();
    wait_until("the recording is written", || {
        traces(&world, "recorded").len() == 1
    });
    assert_eq!(steps(&judge, &traces(&world, "recorded")), STEPS);
    wait_until("the agent logs the path", || agent.log().contains("wrote "));

    assert_eq!(get(&world, "/trace?sink=other").0, 404);
    assert_eq!(get(&world, "/trace?last=soon").0, 400);
    assert_eq!(get(&world, "/trace?last=1ms").0, 200);
    assert!(agent.stop().success());
    assert_eq!(traces(&world, "recorded").len(), 1);
}

#[test]
fn trace_files_and_recordings_follow_the_perfetto_config_section() {
    let world = world(
        &format!("{FILES}{RECORDER}"),
        "perfetto: {attributes: [train.step], process_names: [train.framework]}",
    );
    world.write_log("surogate/training_dense.json");
    let agent = world.start();
    let trace = world.path("got.pftrace");
    wait_until("both have every step", || {
        fs::write(&trace, get(&world, "/trace").1).unwrap();
        shown(std::slice::from_ref(&trace)) == STEPS && shown(&traces(&world, "traces")) == STEPS
    });
    assert!(agent.stop().success());
    for trace in [trace, traces(&world, "traces").remove(0)] {
        let items = TraceReader::new(fs::File::open(&trace).unwrap());
        let (mut steps, mut processes) = (0, 0);
        for item in items.map(Result::unwrap) {
            match item {
                Item::Event(event) if event.name == "train.step" && event.kind == EventKind::Begin => {
                    let keys: Vec<&str> = event.annotations.iter().map(|(key, _)| key.as_str()).collect();
                    assert_eq!(keys, ["train.step"], "{}", trace.display());
                    steps += 1;
                }
                Item::Track(track) => {
                    if let TrackKind::Process { name, .. } = track.kind {
                        assert!(name.contains("surogate"), "{name}");
                        processes += 1;
                    }
                }
                _ => {}
            }
        }
        assert_eq!((steps, processes), (STEPS, 1), "{}", trace.display());
    }
}

#[test]
fn run_serves_the_recorder_forwards_signals_and_records_a_failure() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let world = world(RECORDER, "");
    world.write_log("surogate/training_dense.json");
    let script = "trap 'echo preempted > $0; exit 3' USR1; while :; do sleep 0.05; done";
    let mut command = command(["run", "--drain=10", "--config"]);
    command
        .arg(world.path("agent.yaml"))
        .env("STATE", world.path("state"));
    command.arg("--follow").arg(world.path("training.json"));
    command.args(["--", "sh", "-c", script]).arg(world.path("signal"));
    let run = Process::start("pulsetrain run", &mut command);
    let trace = world.path("got.pftrace");
    wait_until("the recorder has every step", || {
        let (status, body) = get(&world, "/trace?last=5m");
        fs::write(&trace, body).unwrap();
        status == 200 && shown(std::slice::from_ref(&trace)) == STEPS
    });
    assert_eq!(steps(&judge, &[trace]), STEPS);
    run.record();
    let mut run = run;
    wait_until("the run has ended", || run.exit_status().is_some());
    assert_eq!(run.exit_status().unwrap().code(), Some(3));
    assert_eq!(fs::read_to_string(world.path("signal")).unwrap(), "preempted\n");
    assert_eq!(steps(&judge, &traces(&world, "recorded")), STEPS);
    assert!(run.log().contains("recorder: wrote "), "{}", run.log());
}

#[test]
fn run_with_a_used_health_port_continues_and_records_nothing_on_success() {
    let world = world(RECORDER, "");
    let _taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, world.health())).unwrap();
    let mut command = command(["run", "--config"]);
    command
        .arg(world.path("agent.yaml"))
        .env("STATE", world.path("state"));
    command.args(["--", "true"]);
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("continues without GET /trace") && printed.contains("health.listen"),
        "{printed}"
    );
    assert!(traces(&world, "recorded").is_empty());
}

#[test]
fn an_agent_without_a_recorder_reports_it() {
    let world = world(FILES, "");
    let agent = world.start();
    let (status, body) = get(&world, "/trace");
    assert_eq!(status, 404);
    assert!(String::from_utf8_lossy(&body).contains("flight_recorder"));
    agent.record();
    wait_until("the agent logs that there is no recorder", || {
        agent.log().contains("no sink of the kind flight_recorder")
    });
    assert!(agent.stop().success());
}

#[test]
fn config_check_rejects_a_trace_path_without_a_trace_extension() {
    let world = world("  traces: {perfetto: {path: FOLDER/run.json}}\n", "");
    let printed = check(&world).expect_code(2).stderr;
    assert!(
        printed.contains("agent.yaml:11:") && printed.contains("name it .pftrace"),
        "{printed}"
    );
}
