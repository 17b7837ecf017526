//! The OpenTelemetry SDK's own protobuf classes, in Python, parse both of our file formats with the same result.

use std::{fs, path::Path, process::Command};

use pulsetrain_tests::{Finished, Folder, Import, Items, Judge, corpus, some_or_return};

#[test]
fn python_otlp_classes_read_the_output_of_a_dense_model_log() {
    both_files_are_read("surogate/training_dense.json");
}

#[test]
fn python_otlp_classes_read_the_output_of_a_mixture_of_experts_log() {
    both_files_are_read("surogate/training_moe.json");
}

#[test]
fn python_otlp_classes_read_a_nan_loss_as_nan() {
    let python = some_or_return!(Judge::PythonSdk.require_or_skip());
    let folder = Folder::new();
    let [lines, frames] = ["out.jsonl", "out.binpb"].map(|name| folder.path(name));
    let text = fs::read_to_string(corpus("surogate/training_dense.json")).expect("the corpus can be read");
    let text = text.replacen(r#""loss": 4.23"#, r#""loss": nan"#, 1);
    let log = folder.file("training.json", text);
    Import::new(log).to(&lines).to(&frames).run().expect_code(0);
    assert!(fs::read_to_string(&lines).is_ok_and(|text| text.contains(r#""asDouble":"NaN""#)));
    for items in [Items::read(&lines), read(&python, &lines), read(&python, &frames)] {
        let losses = items.values("train.loss");
        assert!(losses[0].1.is_nan(), "{losses:?}");
        assert!(losses[1..].iter().all(|(_, loss)| loss.is_finite()), "{losses:?}");
    }
}

fn both_files_are_read(log: &str) {
    let python = some_or_return!(Judge::PythonSdk.require_or_skip());
    let folder = Folder::new();
    let [lines, frames] = ["out.jsonl", "out.binpb"].map(|name| folder.path(name));
    Import::new(corpus(log))
        .to(&lines)
        .to(&frames)
        .run()
        .expect_code(0);
    let ours = Items::read(&lines);
    assert!(!ours.is_empty());
    read(&python, &lines).assert_same(&ours);
    read(&python, &frames).assert_same(&ours);
}

fn read(python: &Path, file: &Path) -> Items {
    let script = Judge::PythonSdk.folder().join("read_otlp.py");
    let finished = Finished::run(Command::new(python).arg(script).arg(file));
    Items::parse(&finished.expect_code(0).stdout)
}
