//! The trainer continues, also if its telemetry cannot be delivered.

use std::{fs, io::Write, net::TcpListener, process::Stdio};

use pulsetrain_tests::{
    Answer, FakeEndpoint, Folder, Import, Items, command, corpus, free_port, http::request, wait_until,
};

use crate::run::world::{run, sent};

#[test]
fn dead_endpoint_does_not_affect_the_trainer() {
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
        let stderr_text = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr_text.contains("lost"),
            "{endpoint}: the loss is not reported: {stderr_text}"
        );
    }
}

#[test]
fn used_port_is_reported_with_its_owner_and_the_trainer_runs() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let sinks = format!(
        "sinks:\n  page:\n    prometheus:\n      listen: {}\n  archive:\n    file:\n      path: {}\n",
        taken.local_addr().unwrap(),
        sent(&folder).display()
    );
    let config = folder.file("run.yaml", sinks);
    let mut command = command(["run", "--format=maxtext", "--no-gpu", "--config"]);
    let log = corpus("maxtext/demo.stderr");
    let output = command.arg(config).args(["--", "cat"]).arg(log).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stderr_text = String::from_utf8_lossy(&output.stderr);
    let who = format!("(process {}) has it", std::process::id());
    assert!(
        stderr_text.contains("continues without the sink page: cannot listen on")
            && stderr_text.contains(&who),
        "{stderr_text}"
    );
    assert!(!Items::read(&sent(&folder)).values("train.loss").is_empty());
}

#[test]
fn the_page_and_the_metrics_are_served_without_a_configuration() {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let mut ours = command(["run", "--format=maxtext", "--no-gpu", "--listen", &address, "--"]);
    for variable in [
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    ] {
        ours.env_remove(variable);
    }
    // The trainer waits for input after its output, so that the page can be requested.
    let script = format!("cat {}; read line", corpus("maxtext/demo.stderr").display());
    ours.args(["sh", "-c", &script]).stdin(Stdio::piped());
    ours.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = ours.spawn().unwrap();
    let get = |path: &str| {
        let (_, body) = request(port, "GET", path, "", &[])?;
        String::from_utf8(body).ok()
    };
    wait_until("the metrics have the loss", || {
        get("/metrics").is_some_and(|text| text.contains("\ntrain_loss{"))
    });
    wait_until("the page has the run", || {
        get("/api/overview").is_some_and(|text| text.contains("\"framework\":\"maxtext\""))
    });
    child.stdin.take().unwrap().write_all(b"end\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    // Nothing was sent to the default endpoint, which does not listen.
    assert_eq!(
        printed.trim(),
        format!("pulsetrain: serving the page at http://{address}/")
    );
}

#[test]
fn used_page_address_is_reported_and_the_trainer_runs() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = command(["run", "--no-gpu", "--listen", &address, "--", "echo", "done"]).output();
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(0), &b"done\n"[..])
    );
    assert!(
        printed.contains(&format!("continues without the page: cannot listen on {address}"))
            && printed.contains("name another address with --listen"),
        "{printed}"
    );
    let refused = command(["run", "--listen", "0.0.0.0:9464", "--", "echo", "done"]).output();
    let refused = refused.unwrap();
    assert_eq!((refused.status.code(), &refused.stdout[..]), (Some(2), &b""[..]));
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(
        printed.contains("other machines could read the telemetry"),
        "{printed}"
    );
}

#[test]
fn every_target_gets_everything() {
    let folder = Folder::new();
    let other = folder.path("other.jsonl");
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
fn locked_output_file_is_skipped_and_the_trainer_runs() {
    let folder = Folder::new();
    let out = sent(&folder);
    let held = fs::File::create(&out).unwrap();
    held.try_lock().unwrap();
    let mut command = command(["run", "--format=maxtext", "--no-gpu", "--to"]);
    let log = corpus("maxtext/demo.stderr");
    let output = command.arg(&out).args(["--", "cat"]).arg(&log).output().unwrap();
    let stderr_text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr_text}");
    assert!(output.stdout == fs::read(log).unwrap(), "other bytes came out");
    assert!(
        stderr_text.contains("continues without a target: ") && stderr_text.contains(out.to_str().unwrap()),
        "{stderr_text}"
    );
}

/// The first run has a dead receiver; the next run has no metrics of its own.
#[test]
fn metrics_of_a_dead_receiver_are_sent_by_the_next_run() {
    let folder = Folder::new();
    let port = free_port();
    let config = format!(
        "state_folder: {}\nsinks:\n  o:\n    otlp:\n      endpoint: http://127.0.0.1:{port}\n",
        folder.path("state").display()
    );
    let config = folder.file("run.yaml", config);
    let ours = |drain: &str, trainer: &[&str]| {
        let mut ours = command(["run", "--no-gpu", "--drain", drain, "--config"]);
        ours.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        let output = ours.arg(&config).arg("--").args(trainer).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let log = corpus("maxtext/demo.stderr");
    let printed = ours("5", &["cat", log.to_str().unwrap()]);
    assert!(
        printed.contains("stay on disk") && !printed.contains("lost"),
        "{printed}"
    );
    let endpoint = FakeEndpoint::start_at(port, [], Answer::Accept);
    ours("60", &["true"]);
    let received = endpoint.items_answered(&Answer::Accept);
    let imported = Import::new(&log).items();
    assert_eq!(received.values("train.loss"), imported.values("train.loss"));
}
