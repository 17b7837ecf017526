//! `pulsetrain run`: the trainer as it would be without us, whatever becomes of its telemetry.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use pulsetrain_tests::{Answer, FakeEndpoint, Import, Items, Terminal, command, corpus, on_terminal};
use tempfile::TempDir;

/// Bytes that no text has, colours, a progress bar without its end, and both streams.
const ODD_TRAINER: &str = r"printf 'a\000\377\r10%%\r20%%\033[1mb'; printf 'warning\n\376' >&2; exit 7";

#[test]
fn what_is_printed_and_the_exit_code_are_those_of_the_trainer() {
    let folder = folder();
    let bare = Command::new("sh").args(["-c", ODD_TRAINER]).output().unwrap();
    let run = run(&folder, "sh", &["-c", ODD_TRAINER])
        .arg_of_ours("--format=maxtext")
        .output();
    assert_eq!((run.status.code(), bare.status.code()), (Some(7), Some(7)));
    assert_eq!(run.stdout, bare.stdout);
    assert_eq!(run.stderr, bare.stderr);
}

#[test]
fn a_torrent_of_output_is_passed_on_whole() {
    let folder = folder();
    let script = "i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/zero; i=$((i+1)); done";
    let run = run(&folder, "sh", &["-c", script]).output();
    assert_eq!(run.status.code(), Some(0));
    assert_eq!(run.stdout.len(), 40_000_000);
    assert!(run.stdout.iter().all(|byte| *byte == 0));
}

#[test]
fn the_signal_that_ends_a_trainer_is_in_the_exit_code() {
    let run = run(&folder(), "sh", &["-c", "kill -TERM $$"]).output();
    assert_eq!((run.status.code(), run.status.signal()), (Some(128 + 15), None));
}

#[test]
fn a_trainer_that_cannot_be_started_is_told_as_a_shell_does() {
    let folder = folder();
    assert_eq!(
        run(&folder, "no-such-trainer", &[]).output().status.code(),
        Some(127)
    );
    assert_eq!(run(&folder, "/etc/passwd", &[]).output().status.code(), Some(126));
}

#[test]
fn signals_are_passed_on_to_the_trainer() {
    let folder = folder();
    for (signal, name) in [
        (Signal::SIGUSR1, "USR1"),
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGQUIT, "QUIT"),
        (Signal::SIGUSR2, "USR2"),
    ] {
        let script =
            format!("trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done");
        let mut child = run(&folder, "sh", &["-c", &script]).spawn();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut out), "ready\n");
        kill(pid(&child), signal).unwrap();
        assert_eq!(line(&mut out), format!("got {name}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(9));
    }
}

#[test]
fn a_trainer_that_is_to_outlive_its_terminal_does() {
    let folder = folder();
    let run = command(["run", "--to"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(run.get_program())
        .args(["run", "--to"]);
    shell
        .arg(sent(&folder))
        .args(["--", "sh", "-c", "kill -HUP $$; echo alive"]);
    assert_eq!(shell.output().unwrap().stdout, b"alive\n");
}

#[test]
fn a_trainer_whose_reader_has_gone_learns_it() {
    let folder = folder();
    let mut child = run(&folder, "yes", &[]).spawn();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(line(&mut out), "y\n");
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 13));
}

#[test]
fn a_dead_endpoint_changes_nothing_for_the_trainer() {
    let hanging = FakeEndpoint::start([], Answer::Hang);
    let log = fs::read(corpus("maxtext/demo.stderr")).unwrap();
    for endpoint in [
        "http://127.0.0.1:1",
        &hanging.url(),
        "http://no-such-host.invalid:4318",
    ] {
        let mut command = command([
            "run",
            "--format=maxtext",
            "--drain=2",
            "--to",
            endpoint,
            "--",
            "cat",
        ]);
        let output = command.arg(corpus("maxtext/demo.stderr")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{endpoint}");
        assert!(output.stdout == log, "{endpoint}: other bytes came out");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("lost"), "{endpoint}: the loss is not said: {said}");
    }
}

#[test]
fn a_port_that_another_program_has_is_said_with_its_name_and_the_trainer_runs() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = folder.path().join("run.yaml");
    let sinks = format!(
        "sinks:\n  page:\n    prometheus:\n      listen: {}\n  archive:\n    file:\n      path: {}\n",
        taken.local_addr().unwrap(),
        sent(&folder).display()
    );
    fs::write(&config, sinks).unwrap();
    let mut command = command(["run", "--format=maxtext", "--no-gpu", "--config"]);
    let log = corpus("maxtext/demo.stderr");
    let output = command.arg(config).args(["--", "cat"]).arg(log).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stderr);
    let who = format!("(process {}) has it", std::process::id());
    assert!(
        said.contains("goes on without the sink page: cannot listen on") && said.contains(&who),
        "{said}"
    );
    assert!(!Items::read(&sent(&folder)).values("train.loss").is_empty());
}

#[test]
fn every_target_gets_everything() {
    let folder = folder();
    let other = folder.path().join("other.jsonl");
    let log = corpus("maxtext/demo.stderr");
    let output = run(&folder, "cat", &[log.to_str().unwrap()])
        .arg_of_ours("--to")
        .arg_of_ours(other.to_str().unwrap())
        .output();
    assert_eq!(output.status.code(), Some(0));
    let first = Items::read(&sent(&folder));
    assert!(!first.is_empty());
    first.assert_same(&Items::read(&other));
}

#[test]
fn what_a_trainer_prints_comes_to_the_points_of_an_import() {
    let folder = folder();
    let log = corpus("maxtext/demo.stderr");
    let imported = folder.path().join("imported.jsonl");
    Import::of(&log)
        .arg("--format=maxtext")
        .to(&imported)
        .run()
        .expect_code(0);
    let log = log.to_str().unwrap();
    // The log on the standard error, other lines on the standard output, with a line torn in two.
    let script = format!("printf 'half a '; cat {log} >&2; echo line");
    let run = run(&folder, "sh", &["-c", &script]).output();
    assert_eq!(run.status.code(), Some(0));
    let (ours, imported) = (Items::read(&sent(&folder)), Items::read(&imported));
    assert_eq!(ours.points_by_metric(), imported.points_by_metric());
    for metric in ["train.loss", "train.global_step"] {
        assert!(!ours.values(metric).is_empty(), "no {metric}");
        assert_eq!(ours.values(metric), imported.values(metric));
    }
}

/// The sample, and more steps of the same run.
#[test]
fn twenty_thousand_lines_a_second_come_to_every_point_of_an_import() {
    const LINES: usize = 1_200;
    let folder = folder();
    let log = folder.path().join("log");
    let text = maxtext_log(LINES);
    fs::write(&log, &text).unwrap();
    let imported = folder.path().join("imported.jsonl");
    Import::of(&log)
        .arg("--format=maxtext")
        .arg("--run-id=paced")
        .to(&imported)
        .run()
        .expect_code(0);
    let trainer = env!("CARGO_BIN_EXE_fake-trainer");
    let run = run(&folder, trainer, &[log.to_str().unwrap(), "20000", "9"])
        .arg_of_ours("--format=maxtext")
        .arg_of_ours("--run-id=paced")
        .arg_of_ours("--drain=60")
        .output();
    assert_eq!(run.status.code(), Some(9));
    assert!(run.stdout.is_empty());
    let more = run.stderr.strip_prefix(text.as_bytes());
    assert_eq!(more.map(String::from_utf8_lossy).as_deref(), Some(""));
    let (ours, imported) = (Items::read(&sent(&folder)), Items::read(&imported));
    assert_eq!(imported.values("train.loss").len(), 12 + LINES - 824);
    ours.assert_same(&imported);
}

#[test]
fn a_log_that_is_written_besides_is_read_to_its_end() {
    let folder = folder();
    let imported = folder.path().join("imported.jsonl");
    let log = corpus("surogate/training_dense.json");
    Import::of(&log).to(&imported).run().expect_code(0);
    let written = folder.path().join("training.json");
    let run = run(&folder, "cp", &[log.to_str().unwrap(), written.to_str().unwrap()])
        .arg_of_ours("--follow")
        .arg_of_ours(written.to_str().unwrap())
        .output();
    assert_eq!(run.status.code(), Some(0));
    let (ours, imported) = (Items::read(&sent(&folder)), Items::read(&imported));
    let mut points = ours.points_by_metric();
    // What is computed from GPUs and steps on the way; an import computes nothing.
    points.retain(|name, _| !name.starts_with("gpu.step"));
    assert_eq!(points, imported.points_by_metric());
    assert_eq!(ours.values("train.loss"), imported.values("train.loss"));
}

#[test]
fn the_trainer_and_its_telemetry_have_the_same_run_id() {
    let folder = folder();
    let script = format!(
        "echo $PULSETRAIN_RUN_ID; cat {} >&2",
        corpus("maxtext/demo.stderr").display()
    );
    let new = run(&folder, "sh", &["-c", &script]).output();
    let id = String::from_utf8(new.stdout).unwrap().trim().to_owned();
    assert_eq!(id.len(), 16, "{id:?}");
    assert!(fs::read_to_string(sent(&folder)).unwrap().contains(&id));
    let given = run(&folder, "sh", &["-c", "echo $PULSETRAIN_RUN_ID"])
        .env("PULSETRAIN_RUN_ID", "mine")
        .output();
    assert_eq!(given.stdout, b"mine\n");
}

#[test]
fn a_trainer_on_a_terminal_has_a_terminal_of_the_same_size() {
    let script = r"test -t 0 && test -t 1 && test -t 2 && stty size; printf '\033[1mbold\rbar\n'; exit 3";
    let (code, printed) = script_on_terminal(script, |_, _| {});
    assert_eq!(code, Some(3));
    assert_eq!(printed, "40 100\r\n\u{1b}[1mbold\rbar\r\n");
}

#[test]
fn a_window_that_gets_another_size_is_told_to_the_trainer() {
    let script = "trap 'stty size; exit 6' WINCH; stty size; echo ready; while :; do sleep 0.05; done";
    let (code, printed) = script_on_terminal(script, |terminal, printed| {
        if printed.ends_with("ready\r\n") {
            terminal.resize(50, 132);
        }
    });
    assert_eq!(code, Some(6));
    assert_eq!(printed, "40 100\r\nready\r\n50 132\r\n");
}

#[test]
fn a_key_that_interrupts_reaches_the_trainer_once() {
    let script = "n=0; trap 'n=$((n+1))' INT; echo ready; while [ $n -eq 0 ]; do sleep 0.05; done; sleep 0.2; echo $n times; exit 5";
    let (code, printed) = script_on_terminal(script, |keys, printed| {
        if printed.ends_with("ready\r\n") {
            keys.write_all(b"\x03").unwrap();
        }
    });
    assert_eq!(code, Some(5));
    assert!(printed.ends_with("1 times\r\n"), "{printed:?}");
}

/// A shell starts us, Ctrl-Z is typed, the shell looks at everything, lets the trainer come to its end, and fetches us back.
#[test]
fn a_key_that_suspends_stops_the_trainer_until_the_shell_fetches_it_back() {
    const SHELL: &str = r#"set -m; "$@"; echo "suspended $?"; stty -a | grep -ow -e -icanon -e icanon
        until grep -q 'State:.T' /proc/$(cat "$DIR"/pid)/status; do sleep 0.05; done
        touch "$DIR"/go; fg > /dev/null; echo "ended $?""#;
    const TRAINER: &str = r#"echo $$ > "$DIR"/pid; echo ready; while [ ! -e "$DIR"/go ]; do sleep 0.05; done; stty size; exit 4"#;
    let folder = folder();
    let run = command([]);
    let mut shell = Command::new("env");
    shell.arg(format!("DIR={}", folder.path().display()));
    shell.args(["sh", "-c", SHELL, "sh"]).arg(run.get_program());
    shell
        .args(["run", "--format=maxtext", "--no-gpu", "--to"])
        .arg(sent(&folder));
    shell.args(["--", "sh", "-c", TRAINER]);
    let (_, printed) = on_terminal(&shell, |keys, printed| {
        if printed.ends_with("ready\r\n") {
            keys.write_all(b"\x1a").unwrap();
        }
    });
    for said in ["suspended 148\r\nicanon\r\n", "40 100\r\nended 4\r\n"] {
        assert!(printed.contains(said), "{said:?} is missing in {printed:?}");
    }
}

/// What is typed is the trainer's own, where its terminal gives it the keys as they are.
#[test]
fn a_trainer_that_takes_every_key_is_not_suspended() {
    let script = "stty raw -echo; echo ready; dd bs=1 count=1 2>/dev/null | od -An -tx1; exit 2";
    let (code, printed) = script_on_terminal(script, |keys, printed| {
        if printed.trim_end().ends_with("ready") {
            keys.write_all(b"\x1a").unwrap();
        }
    });
    assert_eq!(code, Some(2));
    assert!(printed.contains("1a"), "{printed:?}");
}

#[test]
fn the_standard_input_is_that_of_the_trainer() {
    let folder = folder();
    let mut run = run(
        &folder,
        "sh",
        &["-c", "read line; echo got $line; read more || echo end"],
    );
    run.ours.stdin(Stdio::piped());
    let mut child = run.spawn();
    child.stdin.take().unwrap().write_all(b"a line\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"got a line\nend\n");
    // And where it is closed, it is closed.
    let ours = command([]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec \"$@\" <&-", "sh"])
        .arg(ours.get_program());
    shell.args(["run", "--no-gpu", "--to"]).arg(sent(&folder));
    let output = shell
        .args(["--", "sh", "-c", "echo out; exit 3"])
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(3), &b"out\n"[..])
    );
}

#[test]
fn without_a_question_nothing_is_said_of_a_run_that_went_well() {
    let folder = folder();
    let log = corpus("maxtext/demo.stderr");
    let quiet = run(&folder, "cat", &[log.to_str().unwrap()]).output();
    assert_eq!(String::from_utf8_lossy(&quiet.stderr), "");
    let asked = run(&folder, "cat", &[log.to_str().unwrap()])
        .arg_of_ours("--summary")
        .output();
    assert!(String::from_utf8_lossy(&asked.stderr).contains("delivered"));
}

/// A `pulsetrain run` into a file.
struct Run {
    ours: Command,
    trainer: Vec<String>,
}

fn run(folder: &TempDir, program: &str, arguments: &[&str]) -> Run {
    let mut ours = command(["run", "--to"]);
    ours.arg(sent(folder))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let trainer = [program]
        .iter()
        .chain(arguments)
        .map(|argument| (*argument).to_owned())
        .collect();
    Run { ours, trainer }
}

impl Run {
    fn arg_of_ours(mut self, argument: &str) -> Self {
        self.ours.arg(argument);
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.ours.env(name, value);
        self
    }

    fn spawn(mut self) -> Child {
        self.ours
            .arg("--")
            .args(self.trainer)
            .spawn()
            .expect("pulsetrain can be started")
    }

    fn output(self) -> Output {
        self.spawn()
            .wait_with_output()
            .expect("a child can be waited for")
    }
}

/// Runs a script under `pulsetrain run` on a terminal; `react` sees what was printed so far and may type.
fn script_on_terminal(script: &str, react: impl FnMut(&mut Terminal, &str)) -> (Option<i32>, String) {
    let folder = folder();
    let mut command = command(["run", "--format=maxtext", "--to"]);
    command.arg(sent(&folder)).args(["--", "sh", "-c", script]);
    on_terminal(&command, react)
}

/// The log of a run of MaxText with so many lines: the sample, and its last step again and again with other numbers.
fn maxtext_log(lines: usize) -> String {
    let sample = fs::read_to_string(corpus("maxtext/demo.stderr")).expect("the corpus can be read");
    let steps = (12..).take(lines - sample.lines().count()).map(|step| {
        let micros = step * 50;
        let (seconds, micros) = (14 + micros / 1_000_000, micros % 1_000_000);
        format!(
            "I1121 00:33:{seconds:02}.{micros:06} 140413477075840 metric_logger.py:230] completed step: {step}, seconds: 0.012, \
             TFLOP/s/device: 0.001, Tokens/s/device: 5208.333, total_weights: 128, loss: {step}.5, lm_loss: 6.008, \
             perplexity: 406.752\n"
        )
    });
    let steps: String = steps.collect();
    sample + &steps
}

fn line(out: &mut impl BufRead) -> String {
    let mut line = String::new();
    out.read_line(&mut line).expect("the output is text");
    line
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(
        child
            .id()
            .try_into()
            .expect("invariant: Linux pids fit in an i32"),
    )
}

fn sent(folder: &TempDir) -> PathBuf {
    Path::join(folder.path(), "sent.jsonl")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}
