//! The picture in the README is what its script draws today of the trace that it names.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{Finished, TraceProcessor, command, corpus};

fn picture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/picture")
        .join(name)
}

#[test]
fn the_picture_is_drawn_from_the_trace() {
    if TraceProcessor::require_or_skip().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("step.pftrace");
    let mut convert = command(["convert", "-o"]);
    convert.arg(&trace).arg(corpus(
        "tunix/rollout1_actor2/trace/perfetto_trace_v2_1795219968.pb",
    ));
    Finished::new(convert.output().unwrap()).expect_code(0);
    let drawn = Command::new("python3")
        .arg(picture("draw.py"))
        .arg(&trace)
        .args(["--step", "4", "--milliseconds", "350", "--title"])
        .arg("A GRPO step of Tunix: rollouts on one device, the actor on the other")
        .output()
        .unwrap();
    let drawn = Finished::new(drawn).expect_code(0);
    let kept = fs::read_to_string(picture("step.svg")).unwrap();
    assert_eq!(
        drawn.stdout, kept,
        "docs/picture/README.md says how to draw it again"
    );
}
