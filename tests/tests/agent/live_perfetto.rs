//! Perfetto traces of a running agent: files that can be opened at any time and after a kill, and the flight recorder.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
};

use pulsetrain_perfetto::{EventKind, Item, TraceReader, TrackKind};
use pulsetrain_tests::{
    Process, SurogateWriter, TraceProcessor, command, corpus, free_port, some_or_return, surogate_records,
    wait_until,
};
use tempfile::TempDir;

/// The number of steps in the log.
const STEPS: usize = 30;

struct World {
    folder: TempDir,
    health: u16,
}

impl World {
    /// Creates a world with these sinks; `FOLDER` in them is its folder.
    fn new(sinks: &str) -> Self {
        let world = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            health: free_port(),
        };
        let folder = world.folder.path().display();
        let config = format!(
            "state_folder: {folder}/state\n\
             sources: {{trainer: {{logs: {{paths: [{folder}/training.json], poll_interval: 100ms}}}}}}\n\
             sinks: {sinks}\ntelemetry: {{enabled: false}}\nderive: {{signals: {{enabled: false}}}}\nhealth: {{listen: '127.0.0.1:{}'}}\n",
            world.health
        );
        fs::write(
            world.path("agent.yaml"),
            config.replace("FOLDER", &folder.to_string()),
        )
        .expect("a temporary file can be written");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a sample as the log of the trainer.
    fn write_log(&self, sample: &str) {
        fs::copy(corpus(sample), self.path("training.json")).expect("the corpus can be copied");
    }

    fn start(&self) -> Process {
        let mut command = command(["agent", "--config"]);
        let mut agent = Process::start("pulsetrain agent", command.arg(self.path("agent.yaml")));
        agent.wait_until_ready(|| self.get("/readyz").0 == 200);
        agent
    }

    /// Returns the traces in a folder, oldest first.
    fn traces(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(folder)).map_or_else(|_| Vec::new(), Iterator::collect);
        let mut paths: Vec<PathBuf> = entries
            .into_iter()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "pftrace"))
            .collect();
        paths.sort_by_key(|path| path.with_extension(""));
        paths
    }

    /// Returns the status and the body of a response from the health address; status 0 without a response.
    fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let mut answer = Vec::new();
        let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, self.health)).and_then(|mut stream| {
            write!(
                stream,
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )?;
            stream.read_to_end(&mut answer)
        });
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let (Ok(_), Some(head)) = (asked, head) else {
            return (0, Vec::new());
        };
        let status = String::from_utf8_lossy(&answer[9..12])
            .parse()
            .expect("an answer has a status");
        (status, answer.split_off(head + 4))
    }
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

const FILES: &str = "{traces: {perfetto: {path: FOLDER/traces/run.pftrace, flush_every: 50ms, bytes: 1MiB}}}";

#[test]
fn a_file_can_be_opened_while_spans_arrive_and_after_a_kill() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let world = World::new(FILES);
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let mut log = SurogateWriter::create(&world.path("training.json"));
    let agent = world.start();
    let mut seen = Vec::new();
    for part in records.chunks(records.len().div_ceil(3)) {
        let before = shown(&world.traces("traces"));
        part.iter().for_each(|record| log.append(record));
        if part.iter().any(|record| is_step(record)) {
            wait_until("the trace shows more steps", || {
                shown(&world.traces("traces")) > before
            });
        }
        seen.push(steps(&judge, &world.traces("traces")));
    }
    assert!(seen.is_sorted() && seen[0] < STEPS, "{seen:?}");
    wait_until("the trace shows every step", || {
        shown(&world.traces("traces")) == STEPS
    });
    agent.kill();
    assert_eq!(steps(&judge, &world.traces("traces")), STEPS);
    let [nested] = judge.query(
        &world.traces("traces")[0],
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
    let world = World::new(&few_bytes);
    let mut log = SurogateWriter::create(&world.path("training.json"));
    let agent = world.start();
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    for part in records.chunks(records.len().div_ceil(4)) {
        let before = shown(&world.traces("traces"));
        part.iter().for_each(|record| log.append(record));
        if part.iter().any(|record| is_step(record)) {
            wait_until("the traces show more steps", || {
                shown(&world.traces("traces")) > before
            });
        }
    }
    assert!(agent.stop().success());
    let traces = world.traces("traces");
    assert!(traces.len() > 2, "{traces:?}");
    assert_eq!(shown(&traces), STEPS, "{traces:?}");
    let some = &traces[traces.len() - 2..];
    assert_eq!(steps(&judge, some), shown(some));
}

#[test]
fn flight_recorder_serves_local_requests_and_writes_on_a_signal() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let world =
        World::new("{recorder: {flight_recorder: {last: 10m, path: FOLDER/recorded/flight.pftrace}}}");
    world.write_log("surogate/training_dense.json");
    let agent = world.start();
    let trace = world.path("got.pftrace");
    wait_until("the recorder has every step", || {
        let (status, body) = world.get("/trace?last=5m");
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        fs::write(&trace, body).unwrap();
        shown(std::slice::from_ref(&trace)) == STEPS
    });
    assert_eq!(steps(&judge, &[trace]), STEPS);
    agent.record();
    wait_until("the recording is written", || world.traces("recorded").len() == 1);
    assert_eq!(steps(&judge, &world.traces("recorded")), STEPS);
    wait_until("the agent logs the path", || agent.log().contains("wrote "));

    assert_eq!(world.get("/trace?sink=other").0, 404);
    assert_eq!(world.get("/trace?last=soon").0, 400);
    assert_eq!(world.get("/trace?last=1ms").0, 200);
    assert!(agent.stop().success());
    assert_eq!(world.traces("recorded").len(), 1);
}

#[test]
fn trace_files_and_recordings_follow_the_perfetto_config_section() {
    let world = World::new(
        "{traces: {perfetto: {path: FOLDER/traces/run.pftrace, flush_every: 50ms}}, \
         recorder: {flight_recorder: {path: FOLDER/recorded/flight.pftrace}}}\n\
         perfetto: {attributes: [train.step], process_names: [train.framework]}",
    );
    world.write_log("surogate/training_dense.json");
    let agent = world.start();
    let trace = world.path("got.pftrace");
    wait_until("both have every step", || {
        fs::write(&trace, world.get("/trace").1).unwrap();
        shown(std::slice::from_ref(&trace)) == STEPS && shown(&world.traces("traces")) == STEPS
    });
    assert!(agent.stop().success());
    for trace in [trace, world.traces("traces").remove(0)] {
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
    let world = World::new("{recorder: {flight_recorder: {path: FOLDER/recorded/flight.pftrace}}}");
    world.write_log("surogate/training_dense.json");
    let script = "trap 'echo preempted > $0; exit 3' USR1; while :; do sleep 0.05; done";
    let mut command = command(["run", "--drain=10", "--config"]);
    command.arg(world.path("agent.yaml"));
    command.arg("--follow").arg(world.path("training.json"));
    command.args(["--", "sh", "-c", script]).arg(world.path("signal"));
    let run = Process::start("pulsetrain run", &mut command);
    let trace = world.path("got.pftrace");
    wait_until("the recorder has every step", || {
        let (status, body) = world.get("/trace?last=5m");
        fs::write(&trace, body).unwrap();
        status == 200 && shown(std::slice::from_ref(&trace)) == STEPS
    });
    assert_eq!(steps(&judge, &[trace]), STEPS);
    run.record();
    let mut run = run;
    wait_until("the run has ended", || run.exit_status().is_some());
    assert_eq!(run.exit_status().unwrap().code(), Some(3));
    assert_eq!(fs::read_to_string(world.path("signal")).unwrap(), "preempted\n");
    assert_eq!(steps(&judge, &world.traces("recorded")), STEPS);
    assert!(run.log().contains("recorder: wrote "), "{}", run.log());
}

#[test]
fn run_with_a_used_health_port_continues_and_records_nothing_on_success() {
    let world = World::new("{recorder: {flight_recorder: {path: FOLDER/recorded/flight.pftrace}}}");
    let _taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, world.health)).unwrap();
    let mut command = command(["run", "--config"]);
    command.arg(world.path("agent.yaml")).args(["--", "true"]);
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("continues without GET /trace") && printed.contains("health.listen"),
        "{printed}"
    );
    assert!(world.traces("recorded").is_empty());
}

#[test]
fn an_agent_without_a_recorder_reports_it() {
    let world = World::new(FILES);
    let agent = world.start();
    let (status, body) = world.get("/trace");
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
    let world = World::new("{traces: {perfetto: {path: FOLDER/run.json}}}");
    let mut command = command(["agent", "--check", "--config"]);
    let output = command.arg(world.path("agent.yaml")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        printed.contains("agent.yaml:3:") && printed.contains("name it .pftrace"),
        "{printed}"
    );
}
