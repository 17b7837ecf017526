//! One folder of fixtures per rule: it breaks that rule and no other, and the finding equals `expected.txt`.
//!
//! `UPDATE_GOLDEN=1 cargo test --workspace --all-features --locked --test rules` rewrites the expected texts; read the difference
//! before it is kept.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pulsetrain_codegen::{Registry, check, generate, rule_ids};

const CLEAN: &str = "clean";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn folders(parent: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(parent)
        .expect("the folder of fixtures")
        .map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| entry.file_name().into_string().expect("a readable name"))
        .collect()
}

fn assert_golden(path: &Path, actual: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, actual).expect("the expected text can be written");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        actual,
        expected,
        "{} is out of date; write it with `UPDATE_GOLDEN=1 cargo test --workspace --all-features --locked --test rules`",
        path.display()
    );
}

#[test]
fn every_rule_has_a_fixture_that_breaks_it_alone() {
    let rules: BTreeSet<String> = rule_ids().map(str::to_owned).collect();
    let mut covered = folders(&fixtures());
    assert!(covered.remove(CLEAN));
    assert_eq!(covered, rules);
    for rule in rules {
        let folder = fixtures().join(&rule);
        let registry = Registry::load(&folder).expect("the fixture is in the grammar");
        let violations = check(&registry);
        assert!(!violations.is_empty(), "{rule}: nothing is broken");
        assert!(
            violations.iter().all(|violation| violation.rule == rule),
            "{rule}: {violations:#?}"
        );
        let text: String = violations
            .iter()
            .map(|violation| format!("{violation}\n"))
            .collect();
        assert_golden(&folder.join("expected.txt"), &text);
    }
}

#[test]
fn valid_registry_passes_all_rules_and_generates_code() {
    let registry = Registry::load(&fixtures().join(CLEAN)).expect("the fixture is in the grammar");
    assert_eq!(check(&registry), []);
    let outputs = generate(&registry).expect("generated");
    let metrics = outputs
        .iter()
        .find(|output| output.path.ends_with("metric.rs"))
        .expect("the metrics");
    assert!(metrics.contents.contains("\n    TRAIN_STEP_DURATION {\n"));
}
