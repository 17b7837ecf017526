//! The points of a trainer's output equal those of an import.

use std::fs;

use pulsetrain_tests::{Folder, Import, Items, corpus};

use crate::run::world::{run, sent};

#[test]
fn printed_output_gives_the_same_points_as_an_import() {
    let folder = Folder::new();
    let log = corpus("maxtext/demo.stderr");
    let imported = Import::new(&log).arg("--format=maxtext").items();
    let log = log.to_str().unwrap();
    // The log on standard error, other lines on standard output, with one line split in two.
    let script = format!("printf 'half a '; cat {log} >&2; echo line");
    let run = run(&folder, "sh", &["-c", &script]).output();
    assert_eq!(run.status.code(), Some(0));
    let ours = received(&folder);
    assert_eq!(ours.points_by_metric(), imported.points_by_metric());
    for metric in ["train.loss", "train.global_step"] {
        assert!(!ours.values(metric).is_empty(), "no {metric}");
        assert_eq!(ours.values(metric), imported.values(metric));
    }
}

/// The sample, and more steps of the same run.
#[test]
fn twenty_thousand_lines_per_second_give_every_point_of_an_import() {
    const LINES: usize = 1_200;
    let folder = Folder::new();
    let text = maxtext_log(LINES);
    let log = folder.file("log", &text);
    let import = Import::new(&log).arg("--format=maxtext").arg("--run-id=paced");
    let imported = import.items();
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
    let ours = received(&folder);
    assert_eq!(imported.values("train.loss").len(), 12 + LINES - 824);
    ours.assert_same(&imported);
}

/// MaxText prints the name of its run in its configuration, seconds after other lines.
#[test]
fn run_name_is_applied_however_late_the_trainer_prints_it() {
    let folder = Folder::new();
    let log = corpus("maxtext/demo.stderr");
    let imported = Import::new(&log).arg("--run-id=late").items();
    let log = log.display();
    for pause_after in [3, 590] {
        // An existing file would be appended to.
        let _ = fs::remove_file(sent(&folder));
        let rest = pause_after + 1;
        let script = format!("head -n {pause_after} {log} >&2; sleep 0.3; tail -n +{rest} {log} >&2");
        let run = run(&folder, "sh", &["-c", &script])
            .arg_of_ours("--format=maxtext")
            .arg_of_ours("--run-id=late")
            .output();
        assert_eq!(run.status.code(), Some(0));
        received(&folder).assert_same(&imported);
    }
}

#[test]
fn followed_log_of_a_trainer_is_read_to_its_end() {
    let folder = Folder::new();
    let log = corpus("surogate/training_dense.json");
    let imported = Import::new(&log).items();
    let written = folder.path("training.json");
    let run = run(&folder, "cp", &[log.to_str().unwrap(), written.to_str().unwrap()])
        .arg_of_ours("--follow")
        .arg_of_ours(written.to_str().unwrap())
        .output();
    assert_eq!(run.status.code(), Some(0));
    let ours = received(&folder);
    assert_eq!(ours.points_by_metric(), imported.points_by_metric());
    assert_eq!(ours.values("train.loss"), imported.values("train.loss"));
}

#[test]
fn the_trainer_and_its_telemetry_have_the_same_run_id() {
    let folder = Folder::new();
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

/// Returns the received items of the trainer's own telemetry: an import derives nothing.
fn received(folder: &Folder) -> Items {
    Items::read(&sent(folder)).without_derived()
}

/// Returns a log of a run of MaxText with `lines` lines: the sample, and its last step repeatedly with other numbers.
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
