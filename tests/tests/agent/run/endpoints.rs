//! The trainer continues, also if its telemetry cannot be delivered.

use std::{
    fs,
    io::Write,
    net::TcpListener,
    process::{Command, Stdio},
};

use pulsetrain_tests::{
    Answer, FakeEndpoint, Folder, Import, Items, command, corpus, free_port, http::request, wait_until,
};

use crate::{
    disk_queue::segments,
    run::world::{run, sent},
};

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
        let last = stderr_text.lines().last().unwrap_or_default();
        assert!(
            last.contains("items stay on disk in") && !stderr_text.contains("lost"),
            "{endpoint}: {stderr_text}"
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

/// Runs a trainer that prints the log `maxtext/demo.stderr` through `ours`, or one that prints nothing; returns the messages.
fn messages_of(mut ours: Command, prints_log: bool) -> String {
    ours.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    let trainer = if prints_log { "cat" } else { "true" };
    let trainer = ours.args(["--", trainer]).arg(corpus("maxtext/demo.stderr"));
    let output = trainer.output().expect("pulsetrain can be started");
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The losses of the log `maxtext/demo.stderr`.
fn losses_of_log() -> Vec<(u64, f64)> {
    let imported = Import::new(corpus("maxtext/demo.stderr")).items();
    imported.values("train.loss")
}

/// The first run has a dead receiver; the next run has no metrics of its own.
#[test]
fn metrics_of_a_dead_receiver_are_sent_by_the_next_run() {
    for target in ["--config", "--to", "environment"] {
        let folder = Folder::new();
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let config = folder.file(
            "run.yaml",
            format!("sinks: {{o: {{otlp: {{endpoint: \"{url}\"}}}}}}\n"),
        );
        let ours = |drain: &str| {
            let mut ours = command(["run", "--no-gpu", "--drain", drain]);
            ours.env("XDG_STATE_HOME", folder.path("state"));
            match target {
                "--config" => ours.arg(target).arg(&config),
                "--to" => ours.args([target, &url]),
                _ => ours.env("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
            };
            ours
        };
        let printed = messages_of(ours("5"), true);
        assert!(
            printed.contains("stay on disk") && !printed.contains("lost"),
            "{target}: {printed}"
        );
        let endpoint = FakeEndpoint::start_at(port, [], Answer::Accept);
        let printed = messages_of(ours("60"), false);
        assert!(!printed.contains("stay on disk"), "{target}: {printed}");
        let received = endpoint.items_answered(&Answer::Accept);
        assert_eq!(received.values("train.loss"), losses_of_log(), "{target}");
    }
}

/// Three runs send to one dead receiver at the same time.
#[test]
fn one_run_sends_what_several_concurrent_ones_left() {
    let folder = Folder::new();
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}");
    let ours = |drain: &str| {
        let mut ours = command(["run", "--no-gpu", "--drain", drain, "--to", &url]);
        ours.env("XDG_STATE_HOME", folder.path("state"));
        ours
    };
    let script = format!("cat {}; read line", corpus("maxtext/demo.stderr").display());
    let runs: Vec<_> = (0..3)
        .map(|_| {
            let mut run = ours("2");
            run.args(["--", "sh", "-c", &script]).stdin(Stdio::piped());
            run.stdout(Stdio::null()).stderr(Stdio::piped());
            run.spawn().unwrap()
        })
        .collect();
    let queues = folder.path(&format!(
        "state/pulsetrain/run-queue/http%3A%2F%2F127.0.0.1%3A{port}"
    ));
    wait_until("each run has a queue of its own", || {
        (0..3).all(|queue| !segments(&queues.join(queue.to_string())).is_empty())
    });
    for mut run in runs {
        drop(run.stdin.take());
        let output = run.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(
            printed.contains("stay on disk")
                && !printed.contains("lost")
                && !printed.contains("continues without"),
            "{printed}"
        );
    }
    let endpoint = FakeEndpoint::start_at(port, [], Answer::Accept);
    let printed = messages_of(ours("60"), false);
    assert!(!printed.contains("stay on disk"), "{printed}");
    let received = endpoint.items_answered(&Answer::Accept);
    let thrice = received.values("train.loss").len();
    assert_eq!(thrice, 3 * losses_of_log().len());
}

#[test]
fn run_without_a_usable_state_folder_warns_and_delivers() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let ours = command(["run", "--no-gpu", "--to", &endpoint.url()]);
    // The files of the trainer and of the queue may have 2 blocks.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 2 && exec \"$@\"", "sh"]);
    limited.arg(ours.get_program()).args(ours.get_args());
    limited.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut without_folder = command(["run", "--no-gpu", "--to", &endpoint.url()]);
    without_folder.env("XDG_STATE_HOME", "/proc");
    for (times, ours) in [(1, limited), (2, without_folder)] {
        let printed = messages_of(ours, true);
        assert!(
            printed.contains("continues without its disk queue: ") && !printed.contains("lost"),
            "{printed}"
        );
        let received = endpoint.items_answered(&Answer::Accept);
        assert_eq!(received.values("train.loss").len(), times * losses_of_log().len());
    }
}
