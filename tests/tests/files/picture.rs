//! The pictures in the documentation equal the current output of their script for the traces that they name.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{Finished, Folder, TraceProcessor, command, corpus};

fn picture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/picture")
        .join(name)
}

#[test]
fn the_picture_is_drawn_from_the_trace() {
    let mut convert = command(["convert"]);
    convert.arg(corpus(
        "tunix/rollout1_actor2/trace/perfetto_trace_v2_1795219968.pb",
    ));
    let title = "A GRPO step of Tunix: rollouts on one device, the actor on the other";
    expect_drawn(
        "step.svg",
        convert.arg("-o"),
        &["--step", "4", "--milliseconds", "350", "--title", title],
    );
}

#[test]
fn the_picture_of_ranks_is_drawn_from_their_logs() {
    let mut import = command(["import"]);
    import
        .arg(picture("ranks"))
        .env("OTEL_SERVICE_NAME", "trainer")
        .args([
            "--format=keyvalue",
            r"--rank-pattern=rank_(\d+)",
            "--run-id=job7",
            "--to",
        ]);
    let title = "Three steps of four ranks: all wait for rank 2";
    expect_drawn(
        "ranks.svg",
        &mut import,
        &["--step", "100..102", "--slow", "1.3", "--title", title],
    );
}

#[test]
fn the_picture_of_a_request_is_drawn_from_its_trace() {
    let mut convert = command(["convert", "--by", "trace"]);
    convert.arg(picture("shop.otlp.jsonl"));
    expect_drawn(
        "shop.svg",
        convert.arg("-o"),
        &[
            "--trace-id",
            "4f1c2d3e9a7b48c6b1d05e2f8c3a6d90",
            "--title",
            "A checkout through 15 services",
        ],
    );
}

/// Panics unless the picture of the trace that the command writes to its last argument equals the checked-in one.
#[track_caller]
fn expect_drawn(name: &str, make_trace: &mut Command, arguments: &[&str]) {
    if TraceProcessor::require_or_skip().is_none() {
        return;
    }
    let folder = Folder::new();
    let trace = folder.path("steps.pftrace");
    Finished::run(make_trace.arg(&trace)).expect_code(0);
    let mut check = Command::new("python3");
    check.arg(picture("draw.py")).arg(&trace).args(arguments);
    // docs/picture/README.md has the command that draws it.
    Finished::run(check.arg("--check").arg(picture(name))).expect_code(0);
}
