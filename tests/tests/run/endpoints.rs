//! Whatever becomes of where telemetry goes, the trainer runs on.

use std::{fs, net::TcpListener};

use pulsetrain_tests::{Answer, FakeEndpoint, Items, command, corpus};

use crate::world::{folder, run, sent};

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
fn a_file_that_another_program_writes_is_left_out_and_the_trainer_runs() {
    let folder = folder();
    let out = sent(&folder);
    let held = fs::File::create(&out).unwrap();
    held.try_lock().unwrap();
    let mut command = command(["run", "--format=maxtext", "--no-gpu", "--to"]);
    let log = corpus("maxtext/demo.stderr");
    let output = command.arg(&out).args(["--", "cat"]).arg(&log).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(output.stdout == fs::read(log).unwrap(), "other bytes came out");
    assert!(
        said.contains("continues without a target: ") && said.contains(out.to_str().unwrap()),
        "{said}"
    );
}
