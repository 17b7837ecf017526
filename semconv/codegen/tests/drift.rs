//! The checked-in files equal the generated ones: none is edited by hand, none is missing.

use std::fs;
use std::path::{Path, PathBuf};

use pulsetrain_codegen::{Registry, check, generate, out_of_date, stale, write};

fn semconv() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn registry() -> Registry {
    let registry = Registry::load(&semconv().join("registry")).expect("the registry is in the grammar");
    let mappings = semconv().join("../exporter/mapping/mappings");
    registry
        .with_trainers(&mappings)
        .expect("the mappings can be read")
}

#[test]
fn checked_in_registry_violates_no_rule() {
    let violations: Vec<String> = check(&registry()).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn generated_files_are_up_to_date_with_the_registry() {
    let outputs = generate(&registry()).expect("generated");
    let stale = stale(&semconv(), &outputs).expect("the files can be read");
    let stale: Vec<String> = stale.iter().map(|path| out_of_date(path)).collect();
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}

#[test]
fn changed_missing_and_leftover_files_are_reported_as_stale() {
    let folder = tempfile::tempdir().expect("a folder");
    let outputs = generate(&registry()).expect("generated");
    write(folder.path(), &outputs).expect("written");
    assert_eq!(
        stale(folder.path(), &outputs).expect("read"),
        Vec::<PathBuf>::new()
    );

    fs::write(folder.path().join("src/generated/metric.rs"), "changed").expect("changed");
    fs::remove_file(folder.path().join("docs/train.md")).expect("removed");
    fs::write(folder.path().join("docs/gone.md"), "left over").expect("added");
    let found = stale(folder.path(), &outputs).expect("read");
    assert_eq!(
        found,
        ["docs/gone.md", "docs/train.md", "src/generated/metric.rs"].map(PathBuf::from)
    );

    write(folder.path(), &outputs).expect("written");
    assert_eq!(
        stale(folder.path(), &outputs).expect("read"),
        Vec::<PathBuf>::new()
    );
}
