//! `--to openmetrics:FILE`, converted to blocks by promtool, in a Prometheus that is started on the blocks.

use std::fs;

use pulsetrain_tests::{Folder, Import, Judge, Prometheus, corpus, promtool, some_or_return};

use crate::history::world::Run;

#[test]
fn every_loss_has_its_own_timestamp_in_promtool_blocks() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let run = Run::finished(&folder);
    let file = folder.path("run.om");
    let target = format!("openmetrics:{}", file.display());
    Import::new(&run.log).to(target).run().expect_code(0);

    let data = folder.path("data");
    let made = promtool(
        &program,
        &["tsdb", "create-blocks-from", "openmetrics"],
        &[&file, &data],
    );
    assert!(made.status.success(), "{made:?}");

    let prometheus = Prometheus::start_on(&program, &data, "");
    run.expect_losses(&prometheus);
    let at_end = |expression: &str| {
        let value = prometheus.value_at(expression, run.end_seconds());
        value.unwrap_or_else(|| panic!("{expression} has no value"))
    };
    let steps = run.losses.len() as f64;
    assert_eq!(
        at_end("last_over_time(train_step_duration_seconds_count[1h])"),
        steps
    );
    assert_eq!(
        at_end("last_over_time(train_step_duration_seconds_bucket{le=\"+Inf\"}[1h])"),
        steps
    );
    assert_eq!(at_end("count(last_over_time(target_info[1h]))"), 1.0);
    let file = fs::read_to_string(file).expect("the file can be read");
    let lines = file.lines().filter(|line| !line.starts_with('#')).count();
    let stored = prometheus.stored("{__name__=~\".+\"}", run.end_seconds());
    let samples: usize = stored.iter().map(Vec::len).sum();
    assert_eq!(samples, lines, "every line is a sample");
}

/// The shipped sample has 30 steps in 0.2 ms, which Prometheus cannot distinguish.
#[test]
fn of_points_in_one_millisecond_the_last_is_kept_and_the_rest_counted() {
    let folder = Folder::new();
    let file = folder.path("run.om");
    let finished = Import::for_people(corpus("surogate/training_dense.json"))
        .to(format!("openmetrics:{}", file.display()))
        .run()
        .expect_code(1);
    finished.expect_words(&["points are left out", "milliseconds", "run.om"]);
    let text = fs::read_to_string(file).expect("the file can be read");
    let losses = text.lines().filter(|line| line.starts_with("train_loss{"));
    assert_eq!(losses.count(), 1);
}

#[test]
fn failed_output_leaves_no_file() {
    let folder = Folder::new();
    let log = folder.file("notes.txt", "nothing of any format\n");
    for name in ["run.om", "run.pftrace", "run.pftrace.gz"] {
        let output = folder.path(name);
        let prefix = if name == "run.om" { "openmetrics:" } else { "" };
        let target = format!("{prefix}{}", output.display());
        Import::for_people(&log).to(&target).run().expect_code(1);
        let names: Vec<String> = fs::read_dir(output.parent().expect("a folder"))
            .expect("a folder can be read")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        assert_eq!(names, ["notes.txt"], "{name}");
        let nowhere = format!("{prefix}{}/missing/{name}", folder.path("none").display());
        let failed = Import::for_people(&log).to(nowhere).run().expect_code(1);
        failed.expect_words(&["missing", "cannot write"]);
    }
}
