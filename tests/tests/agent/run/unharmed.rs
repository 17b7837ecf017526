//! The trainer continues when a process of ours is killed or hangs, and when its output cannot be written.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
};

use nix::sys::signal::{Signal, kill};
use pulsetrain_tests::{Folder, Items, SmallDisk, command, wait_until};

use crate::run::{
    processes::{Processes, comm, has_ended, kill_now},
    world::{line, pid, run, sent},
};

/// Prints a step at a time until the file `go` exists.
const STEPS: &str = "cd \"$0\"; i=0; while [ ! -e go ]; do i=$((i+1)); echo \"step $i loss=0.5\"; sleep 0.02; done; \
                     touch done; echo end; exit 4";

/// A trainer that prints until it is released.
struct Steps {
    folder: Folder,
    child: Child,
    out: BufReader<ChildStdout>,
    processes: Processes,
}

impl Steps {
    fn start() -> Self {
        let folder = Folder::new();
        let root = folder.root().to_str().expect("the path is text").to_owned();
        let mut run = run(&folder, "sh", &["-c", STEPS, &root]).arg_of_ours("--no-gpu");
        let stderr = File::create(folder.path("stderr"));
        run.ours.stderr(stderr.expect("a file can be made"));
        let mut child = run.spawn();
        let out = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        let processes = Processes::started_by(pid(&child));
        let mut steps = Self {
            folder,
            child,
            out,
            processes,
        };
        steps.assert_prints_on();
        steps
    }

    /// Reads until a line that the trainer has not printed yet.
    fn assert_prints_on(&mut self) {
        let mut printed = line(&mut self.out);
        // The lines in the pipe may be older.
        for _ in 0..3 {
            printed = line(&mut self.out);
        }
        assert!(printed.starts_with("step "), "{printed:?}");
    }

    /// Releases the trainer; it must print its last line and exit with its own code.
    fn end(self) -> (Option<i32>, String, Folder) {
        let Self {
            folder,
            mut child,
            out,
            ..
        } = self;
        fs::write(folder.path("go"), "").expect("a file can be made");
        let last = out.lines().map(|line| line.expect("the output is text")).last();
        assert_eq!(last.as_deref(), Some("end"));
        let code = child.wait().expect("a child can be waited for").code();
        wait_until("the trainer has ended", || folder.path("done").exists());
        let stderr = fs::read_to_string(folder.path("stderr")).expect("it was made");
        (code, stderr, folder)
    }
}

#[test]
fn trainer_survives_the_kill_of_its_copiers_and_of_the_witness() {
    let mut steps = Steps::start();
    for _ in 0..2 {
        let processes = Processes::started_by(steps.processes.keeper);
        for victim in processes.copiers.iter().chain([&processes.witness]) {
            kill_now(*victim);
        }
        wait_until("they have ended", || {
            processes
                .copiers
                .iter()
                .chain([&processes.witness])
                .all(|pid| has_ended(*pid))
        });
        steps.processes = Processes::started_by(steps.processes.keeper);
        steps.assert_prints_on();
    }
    // The new witness answers.
    let (code, stderr, _) = steps.end();
    assert_eq!((code, stderr.as_str()), (Some(4), ""));
}

#[test]
fn trainer_survives_the_kill_of_the_exporter() {
    let mut steps = Steps::start();
    kill_now(steps.processes.exporter);
    wait_until("the exporter has ended", || has_ended(steps.processes.exporter));
    steps.assert_prints_on();
    let (code, stderr, _) = steps.end();
    assert_eq!(code, Some(4));
    assert_eq!(
        stderr,
        "pulsetrain: continues without the exporter: signal 9 ended it\n"
    );
}

#[test]
fn trainer_and_its_telemetry_survive_the_kill_of_run() {
    let mut steps = Steps::start();
    let exporter = steps.processes.exporter;
    kill_now(steps.processes.keeper);
    wait_until("run has ended", || has_ended(steps.processes.keeper));
    steps.assert_prints_on();
    let (code, _, folder) = steps.end();
    assert_eq!(code, None, "a signal ended it");
    wait_until("the exporter has ended", || has_ended(exporter));
    assert!(Items::read(&sent(&folder)).values("train.loss").len() > 4);
}

#[test]
fn trainer_is_not_delayed_by_an_exporter_that_hangs() {
    let folder = Folder::new();
    let script = "read go; head -c 5000000 /dev/zero; exit 3";
    let mut run = run(&folder, "sh", &["-c", script])
        .arg_of_ours("--no-gpu")
        .arg_of_ours("--drain=0");
    run.ours.stdin(Stdio::piped());
    let mut child = run.spawn();
    let processes = Processes::started_by(pid(&child));
    kill(processes.exporter, Signal::SIGSTOP).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 5_000_000));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("the exporter did not end in time and was killed"),
        "{stderr}"
    );
}

/// `pkill -HUP -x pulsetrain` is for agents.
#[test]
fn processes_of_run_have_another_name_than_agents_and_the_exporter_is_the_first_victim() {
    let steps = Steps::start();
    let ours = steps
        .processes
        .all()
        .into_iter()
        .filter(|pid| *pid != steps.processes.trainer);
    for process in ours {
        assert_eq!(comm(process), "pulsetrain-run");
    }
    let victim = fs::read_to_string(format!("/proc/{}/oom_score_adj", steps.processes.exporter));
    assert_eq!(victim.unwrap(), "1000\n", "the kernel ends it first");
    assert_eq!(steps.end().0, Some(4));
}

#[test]
fn trainer_survives_an_output_that_is_full() {
    let folder = Folder::new();
    let survived = folder.path("survived");
    let script = format!("echo a; echo b; touch {}; exit 3", survived.display());
    let mut run = run(&folder, "sh", &["-c", &script]);
    run.ours
        .stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let output = run.output();
    assert!(survived.exists());
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains(
            "4 bytes of the output were lost, because they could not be written: No space left on device"
        ),
        "{stderr}"
    );
}

#[test]
fn output_to_a_disk_that_is_full_for_a_while_is_written_later() {
    let folder = Folder::new();
    fs::create_dir(folder.path("disk")).unwrap();
    let Some(disk) = SmallDisk::mount(&folder.path("disk"), "64k") else {
        return;
    };
    let log = disk.path().join("log");
    let script = "echo first; read go; echo second; touch \"$0\"; read go; echo third; exit 5";
    let printed = folder.path("printed");
    let mut run = run(&folder, "sh", &["-c", script, printed.to_str().unwrap()]).arg_of_ours("--no-gpu");
    run.ours
        .stdin(Stdio::piped())
        .stdout(OpenOptions::new().append(true).create(true).open(&log).unwrap());
    let mut child = run.spawn();
    let mut keys = child.stdin.take().unwrap();
    let content = || fs::read_to_string(&log).unwrap();
    wait_until("the first line is written", || content() == "first\n");
    disk.fill();
    // The last page of the file must not have room for another line.
    let mut page = OpenOptions::new().append(true).open(&log).unwrap();
    page.write_all(&[b'-'; 4096 - 6]).unwrap();
    keys.write_all(b"go\n").unwrap();
    wait_until("the second line is printed", || printed.exists());
    disk.make_room();
    keys.write_all(b"go\n").unwrap();
    drop(keys);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(5),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let content = content();
    assert!(content.contains("second\nthird\n"), "{content:?}");
}

/// Runs `run` under a shell with this limit, and the output in a file.
fn limited(limit: &str, trainer: &[&str]) -> (Option<i32>, String, String) {
    let folder = Folder::new();
    let ours = command([]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"]);
    shell
        .arg(ours.get_program())
        .args(["run", "--no-gpu", "--to"])
        .arg(sent(&folder));
    shell.arg("--").args(trainer).stdin(Stdio::null());
    shell.stdout(File::create(folder.path("out")).expect("a file can be made"));
    let output = shell.output().expect("there is a shell");
    let out = fs::read_to_string(folder.path("out")).expect("it was made");
    (
        output.status.code(),
        out,
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn trainer_survives_the_limits_of_its_shell() {
    let script = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo step $i loss=0.5; done; exit 6";
    let all: String = (1..=200).map(|step| format!("step {step} loss=0.5\n")).collect();
    // A file may have 2 blocks of 512 bytes.
    let (code, out, stderr) = limited("-f 2", &["sh", "-c", script]);
    assert_eq!((code, out.len()), (Some(6), 1_024), "{stderr}");
    assert!(stderr.contains("File too large"), "{stderr}");
    // The exporter fits into 20 descriptors only if few are inherited; 12 are never enough.
    for (limit, copied) in [("-v 300000", Some(true)), ("-n 12", Some(false)), ("-n 20", None)] {
        let (code, out, stderr) = limited(limit, &["sh", "-c", script]);
        assert_eq!((code, out.as_str()), (Some(6), all.as_str()), "{limit}: {stderr}");
        match copied {
            Some(true) => assert_eq!(stderr, "", "{limit}"),
            Some(false) => assert!(stderr.contains("without a copy of the output"), "{stderr}"),
            None => {}
        }
    }
}

#[test]
fn trainer_has_the_signal_actions_and_the_mask_of_a_bare_one() {
    let state = ["grep", "^Sig[BI]", "/proc/self/status"];
    let bare = Command::new(state[0]).args(&state[1..]).output().unwrap();
    let (code, out, _) = limited("-n 1000", &state);
    assert_eq!((code, out), (Some(0), String::from_utf8(bare.stdout).unwrap()));
}

#[test]
fn run_as_process_1_reaps_orphans() {
    let folder = Folder::new();
    let ours = command([]);
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--pid", "--fork", "--mount-proc"]);
    unshare
        .arg(ours.get_program())
        .args(["run", "--no-gpu", "--to"])
        .arg(sent(&folder));
    // The orphan of the inner shell; as a zombie it would keep its folder in /proc.
    let script = "p=$(sh -c 'true & echo $!'); until [ ! -e /proc/$p ]; do :; done; echo reaped; exit 7";
    let output = unshare
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unshare: ") {
        writeln!(
            std::io::stderr(),
            "SKIPPED: right to create a namespace not found: {stderr}"
        )
        .unwrap();
        return;
    }
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(7), &b"reaped\n"[..]),
        "{stderr}"
    );
}
