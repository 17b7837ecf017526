//! Pipes on both sides: one that ends within a record, one that only Ctrl-C ends, one with an endless line, and one whose
//! reader exits.

use std::{
    fs,
    io::Write,
    process::{Child, ChildStdin, Command, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use pulsetrain_tests::{Finished, Folder, Import, Items, corpus, wait_until};

const STEP: &str = r#"{"log": "step", "time": "2026-11-21 00:18:40.989663449", "step": 7, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": 2.5, "lr": 2e-05}"#;

#[test]
fn dash_means_stdin_and_stdout() {
    let log = fs::read(corpus("surogate/training_dense.json")).expect("the corpus can be read");
    let finished = Import::new("-").to("-").run_with_input(&log).expect_code(0);
    let items = Items::parse(&finished.stdout);
    assert_eq!(items.values("train.loss").len(), 30);
    assert_eq!(finished.summary()["delivered"], items.len());
}

#[test]
fn pipe_that_ends_within_a_record_delivers_earlier_records() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let torn = format!("[\n  {STEP},\n  {}", &STEP[..STEP.len() / 2]);
    let finished = Import::new("-")
        .to(&out)
        .run_with_input(torn.as_bytes())
        .expect_code(1);
    assert_eq!(finished.summary()["skipped"]["incomplete_record"], 1);
    assert_eq!(Items::read(&out).values("train.loss").len(), 1);
}

#[test]
fn interrupted_import_delivers_the_records_read() {
    let (finished, items) = interrupted(&format!("[\n  {STEP},\n  {STEP}"));
    finished.expect_code(0).expect_words(&[r#""records":2"#]);
    assert_eq!(items.values("train.loss").len(), 2);
}

#[test]
fn interrupt_within_a_record_reports_it_as_incomplete() {
    let (finished, items) = interrupted(&format!("[\n  {STEP},\n  {}", &STEP[..STEP.len() / 2]));
    let finished = finished.expect_code(1);
    assert_eq!(finished.summary()["skipped"]["incomplete_record"], 1);
    assert_eq!(items.values("train.loss").len(), 1);
}

#[test]
fn pipe_that_pauses_before_its_run_name_is_awaited() {
    let folder = Folder::new();
    let log = corpus("maxtext/demo.stderr");
    let [complete, paused] = ["complete", "paused"].map(|name| folder.path(name).with_extension("jsonl"));
    let import = Import::new(&log).arg("--run-id=paused").to(&complete);
    import.run().expect_code(0);
    let import = Import::new("-").arg("--run-id=paused").to(&paused).into_command();
    let script = "{ head -n 590 \"$0\"; sleep 0.3; tail -n +591 \"$0\"; } | \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(&log)
        .arg(import.get_program())
        .args(import.get_args())
        .output()
        .expect("a shell can be started");
    Finished::new(output).expect_code(0);
    Items::read(&paused).assert_same(&Items::read(&complete));
}

/// An endless line is skipped beyond a limit; the lines after it are parsed.
#[test]
fn a_line_of_a_gibibyte_is_skipped_in_bounded_memory() {
    const CHUNK: usize = 1 << 20;
    const CHUNKS: usize = 1024;
    const MAX_MEMORY_KIB: u64 = 200 * 1024;
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let mut fed = Fed::start(Import::new("-").to(&out));
    fed.write(&format!("[\n  {STEP},\n  {{\"log\": \"info\", \"message\": \""));
    let chunk = "a".repeat(CHUNK);
    for _ in 0..CHUNKS {
        fed.write(&chunk);
    }
    fed.write(&format!("\"}},\n  {STEP}\n]\n"));
    let most = fed.peak_memory_kib();
    let finished = fed.end().expect_code(1);
    assert!(most < MAX_MEMORY_KIB, "{most} KiB for a line of a GiB");
    assert_eq!(finished.summary()["skipped"]["record_too_long"], 1);
    assert_eq!(finished.total("skipped"), 1, "{}", finished.stderr);
    assert_eq!(Items::read(&out).values("train.loss").len(), 2);
}

#[test]
fn closed_output_pipe_is_reported_without_a_panic() {
    let mut command = Import::new(corpus("surogate/training_dense.json"))
        .to("-")
        .into_command();
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pulsetrain can be started");
    drop(child.stdout.take());
    let finished = Finished::new(child.wait_with_output().expect("a child can be waited for")).expect_code(1);
    finished.expect_words(&["roken pipe", "make the reader read to the end"]);
    assert!(finished.total("dropped") > 0);
}

/// Imports a pipe that stays open until the import has exited; an interrupt is sent after the first step is in the output.
fn interrupted(log: &str) -> (Finished, Items) {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let mut fed = Fed::start(Import::new("-").to(&out));
    fed.write(log);
    wait_until("the first step is in the file", || {
        fs::read_to_string(&out).is_ok_and(|text| text.contains("train.loss"))
    });
    kill(fed.pid(), Signal::SIGINT).expect("a running child can be signalled");
    let Fed { child, pipe } = fed;
    let finished = Finished::new(child.wait_with_output().expect("a child can be waited for"));
    drop(pipe);
    (finished, Items::read(&out))
}

/// An import that reads from the test.
struct Fed {
    child: Child,
    pipe: ChildStdin,
}

impl Fed {
    fn start(import: Import) -> Self {
        let mut child = import
            .into_command()
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pulsetrain can be started");
        let pipe = child.stdin.take().expect("invariant: standard input is piped");
        Self { child, pipe }
    }

    fn write(&mut self, text: &str) {
        self.pipe.write_all(text.as_bytes()).expect("pulsetrain reads on");
    }

    fn end(self) -> Finished {
        drop(self.pipe);
        Finished::new(self.child.wait_with_output().expect("a child can be waited for"))
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid fits"))
    }

    /// Returns the peak resident memory of the process so far.
    fn peak_memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("a running process has a status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok());
        peak.expect("Linux keeps the peak in KiB")
    }
}
