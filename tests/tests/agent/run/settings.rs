//! A wrong variable, file or value of telemetry is a warning, and the trainer runs.

use std::process::Command;

use pulsetrain_tests::{Folder, command};

/// Runs a trainer that prints one line and exits with 3; returns its exit code and the messages.
fn outcome(ours: &mut Command) -> (Option<i32>, String) {
    let output = ours
        .args(["--", "sh", "-c", "echo hello; exit 3"])
        .output()
        .expect("pulsetrain can be started");
    assert_eq!(
        &output.stdout[..],
        b"hello\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn wrong_variable_is_a_warning() {
    const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
    for (name, value) in [
        (ENDPOINT, "collector:4317"),
        (ENDPOINT, "\"http://127.0.0.1:1\""),
        (ENDPOINT, "ftp://127.0.0.1"),
        (HEADERS, "\"authorization=Bearer abc\""),
        (HEADERS, "authorization: Bearer abc"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "thrift"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "lz4"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nonexistent.pem"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team"),
    ] {
        let mut ours = command(["run", "--no-gpu"]);
        // A certificate is read only for TLS.
        ours.env(ENDPOINT, "https://127.0.0.1:1").env(name, value);
        let (code, messages) = outcome(&mut ours);
        assert_eq!(code, Some(3), "{name}={value}: {messages}");
        assert!(messages.contains(name), "{name}={value}: {messages}");
    }
}

#[test]
fn wrong_file_or_target_is_a_warning() {
    let folder = Folder::new();
    let config = folder.file("config.yaml", "sinks: [1\n");
    let mapping = folder.file("mapping.yaml", "format: nothing\n");
    for (arguments, message) in [
        (
            ["--config", config.to_str().unwrap()],
            "continues without the configuration: ",
        ),
        (
            ["--config", "/nonexistent.yaml"],
            "continues without the configuration: ",
        ),
        (
            ["--mapping", mapping.to_str().unwrap()],
            "continues without the mapping: ",
        ),
        (["--to", "metrics.txt"], "continues without a target: "),
        (["--to", "http://[::1"], "continues without a target: "),
    ] {
        let mut ours = command(["run", "--no-gpu"]);
        let (code, messages) = outcome(ours.args(arguments));
        assert_eq!(code, Some(3), "{arguments:?}: {messages}");
        assert!(messages.contains(message), "{arguments:?}: {messages}");
        assert!(!messages.contains("--help"), "{arguments:?}: {messages}");
    }
}

#[test]
fn unknown_option_is_a_usage_error_before_the_trainer_starts() {
    let folder = Folder::new();
    let mut ours = command(["run", "--no-such-option", "--", "touch"]);
    let output = ours.arg(folder.path("started")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.path("started").exists());
}

#[test]
fn program_without_metrics_gets_one_line() {
    let folder = Folder::new();
    let mut ours = command(["run", "--no-gpu", "--to"]);
    let (_, messages) = outcome(ours.arg(folder.path("sent.jsonl")));
    assert_eq!(messages.lines().count(), 1, "{messages}");
    assert!(
        messages.len() < 120 && messages.contains("--format"),
        "{messages}"
    );
}
