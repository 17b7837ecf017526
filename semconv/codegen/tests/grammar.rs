//! Input outside the grammar is rejected with its file and line.

use std::fs;

use pulsetrain_codegen::{Error, Registry};

fn refusal(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("train.yaml"), text).expect("a file");
    Registry::load(folder.path())
        .expect_err("not in the grammar")
        .to_string()
}

#[test]
fn file_with_another_format_version_is_rejected() {
    let message = refusal("file_format: definition/1\n");
    assert!(message.starts_with("train.yaml:1:"), "{message}");
    assert!(message.contains("definition/2"), "{message}");
}

#[test]
fn file_without_file_format_is_rejected() {
    let message = refusal("metrics: []\n");
    assert!(message.starts_with("train.yaml:"), "{message}");
    assert!(message.contains("file_format"), "{message}");
}

#[test]
fn an_unknown_key_is_refused_at_its_line() {
    let message = refusal("file_format: definition/2\nmetrics:\n  - name: train.loss\n    units: s\n");
    assert!(message.starts_with("train.yaml:4:"), "{message}");
    assert!(message.contains("units"), "{message}");
}

#[test]
fn missing_unit_is_reported_at_its_entry() {
    let message =
        refusal("file_format: definition/2\nmetrics:\n  - name: train.loss\n    instrument: gauge\n");
    assert!(message.starts_with("train.yaml:4:"), "{message}");
    assert!(message.contains("unit"), "{message}");
}

#[test]
fn broken_yaml_is_refused_at_its_line() {
    let message = refusal("file_format: definition/2\nmetrics: [\n");
    assert!(message.starts_with("train.yaml:"), "{message}");
}

#[test]
fn missing_registry_folder_is_named_in_the_error() {
    let error = Registry::load(std::path::Path::new("no/such/folder")).expect_err("the folder is missing");
    assert!(
        matches!(&error, Error::Read { path, .. } if path.ends_with("no/such/folder")),
        "{error}"
    );
}
