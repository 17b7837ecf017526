//! Tests of `tests/run` itself: the second try of a failed test, the tests that get none, and the selection for changed files.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::structure::{rust_sources, workspace_root};

/// Tests that fail in the first run only, always, or never. `$MARKS` is a folder.
const FAKE_TESTS: &str = r#"
fn first_time(name: &str) -> bool {
    std::fs::create_dir(std::path::Path::new(&std::env::var("MARKS").unwrap()).join(name)).is_ok()
}
#[test] fn passes() {}
#[test] fn flaky() { assert!(!first_time("flaky"), "flaky fails with the others"); println!("flaky passes alone"); }
#[test] fn unlucky_1() { assert!(!first_time("1")); }
#[test] fn unlucky_2() { assert!(!first_time("2")); }
#[test] fn unlucky_3() { assert!(!first_time("3")); }
#[test] fn unlucky_4() { assert!(!first_time("4")); }
#[test] fn broken() { panic!("broken fails always"); }
#[test] fn fifty_kills_lose_nothing() { assert!(!first_time("kills"), "an item is lost"); }
"#;

/// A compiled test program, and the files of a run.
struct FakeRun {
    folder: TempDir,
}

impl FakeRun {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let run = Self { folder };
        fs::create_dir(run.path("deps")).expect("a folder can be made");
        fs::write(run.path("fake.rs"), FAKE_TESTS).expect("a file can be written");
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let status = Command::new(rustc)
            .args(["--test", "--edition=2024", "-o"])
            .args([run.path("deps/fake-0123"), run.path("fake.rs")])
            .status();
        assert!(status.expect("rustc can be started").success());
        run
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the tests with these words in their names, and then the summary of the run.
    fn run(&self, filters: &[&str]) -> (Output, Output) {
        let runner = Command::new(script("runner"))
            .arg(self.path("deps/fake-0123"))
            .args(filters)
            .env("MARKS", self.folder.path())
            .env("PULSETRAIN_FLAKY", self.path("flaky.txt"))
            .env_remove("PULSETRAIN_SELECTION")
            .output()
            .expect("the runner can be started");
        fs::write(self.path("log"), &runner.stdout).expect("a file can be written");
        let summary = Command::new(script("summary"))
            .args([self.path("log"), self.path("flaky.txt")])
            .output()
            .expect("the summary can be started");
        (runner, summary)
    }
}

fn script(name: &str) -> PathBuf {
    workspace_root().join("tests").join(name)
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn flaky_test_is_reported_with_both_outputs_and_does_not_fail_the_run() {
    let fake = FakeRun::new();
    let (runner, summary) = fake.run(&["passes", "flaky"]);
    let (lines, end) = (printed(&runner), printed(&summary));
    assert!(runner.status.success(), "{lines}");
    assert!(
        lines.ends_with("FLAKY: fake::flaky failed, and passed alone\n"),
        "{lines}"
    );
    assert!(summary.status.success(), "{end}");
    assert!(end.contains("fake::flaky\n  failed with the others:\n"), "{end}");
    assert!(end.contains("flaky fails with the others"), "{end}");
    assert!(end.contains("    test flaky ... ok\n"), "{end}");
    assert!(end.contains("    flaky passes alone\n"), "{end}");
    assert!(end.ends_with("\n2 passed, 0 failed, 0 skipped\n"), "{end}");
}

#[test]
fn test_that_fails_twice_fails_the_run() {
    let fake = FakeRun::new();
    let (runner, summary) = fake.run(&["passes", "flaky", "broken"]);
    let (lines, end) = (printed(&runner), printed(&summary));
    assert_eq!(runner.status.code(), Some(101), "{lines}");
    assert!(
        lines.contains("\nFAILED TWICE: fake::broken; the second time, alone:\n"),
        "{lines}"
    );
    assert!(lines.contains("\nFLAKY: fake::flaky"), "{lines}");
    assert!(end.ends_with("\n2 passed, 1 failed, 0 skipped\n"), "{end}");
}

#[test]
fn test_of_loss_gets_no_second_try() {
    let fake = FakeRun::new();
    let (runner, summary) = fake.run(&["kills"]);
    let (lines, end) = (printed(&runner), printed(&summary));
    assert_eq!(runner.status.code(), Some(101), "{lines}");
    let line = "NO SECOND TRY: fake::fifty_kills_lose_nothing (tests/no-second-try: *_lose_no*)\n";
    assert!(lines.ends_with(line), "{lines}");
    assert!(end.ends_with("\n0 passed, 1 failed, 0 skipped\n"), "{end}");
}

#[test]
fn more_than_three_flaky_tests_fail_the_run() {
    let fake = FakeRun::new();
    let (runner, summary) = fake.run(&["passes", "unlucky"]);
    let (lines, end) = (printed(&runner), printed(&summary));
    assert!(runner.status.success(), "{lines}");
    assert_eq!(lines.matches("\nFLAKY: ").count(), 4, "{lines}");
    assert_eq!(summary.status.code(), Some(1), "{end}");
    assert!(
        end.contains("FAILED: 4 tests are FLAKY, and a run may have 3"),
        "{end}"
    );
    assert!(end.ends_with("\n1 passed, 4 failed, 0 skipped\n"), "{end}");
}

#[test]
fn every_pattern_without_a_second_try_matches_a_test() {
    let names: Vec<String> = rust_sources(workspace_root())
        .iter()
        .flat_map(|path| test_names(path))
        .collect();
    assert!(names.len() > 2_000, "only {} tests were found", names.len());
    let list = fs::read_to_string(script("no-second-try")).expect("it can be read");
    let patterns: Vec<&str> = rows(&list).collect();
    assert!(patterns.len() > 10, "{patterns:?}");
    let unused: Vec<_> = patterns
        .iter()
        .filter(|pattern| !names.iter().any(|name| matches(pattern, name)))
        .collect();
    assert!(unused.is_empty(), "no test matches {unused:?}");
    // Most tests get a second try: the list is no way around it.
    let excluded = names
        .iter()
        .filter(|name| patterns.iter().any(|pattern| matches(pattern, name)));
    assert!(excluded.count() * 5 < names.len());
}

#[test]
fn patterns_match_any_text_at_a_star() {
    assert!(matches("*_lose_*", "agent::kills::they_lose_nothing"));
    assert!(matches("agent::kills::*", "agent::kills::they_lose_nothing"));
    assert!(!matches(
        "agent::kills::*",
        "agent::archive_kills::they_lose_nothing"
    ));
    assert!(!matches("*_lose", "agent::kills::they_lose_nothing"));
}

#[test]
fn changed_files_select_their_crates_importers_and_subjects() {
    assert_eq!(
        selected("README.md\n"),
        ["program drift", "program files", "target drift", "target files"]
    );
    let of_tail = selected("exporter/tail/src/lib.rs\ntests/tests/agent/kills.rs\n");
    for line in [
        "package pulsetrain-tail",
        "package pulsetrain-agent",
        "program agent kills:: tail::",
        "target agent",
    ] {
        assert!(
            of_tail.iter().any(|selected| selected == line),
            "{line}: {of_tail:?}"
        );
    }
    assert!(
        !of_tail.contains(&"package pulsetrain-otlp".to_owned()),
        "{of_tail:?}"
    );
    let helper = selected("tests/tests/agent/tail/world.rs\n");
    assert!(helper.contains(&"program agent tail::".to_owned()), "{helper:?}");
}

#[test]
fn every_crate_has_a_subject_and_every_subject_exists() {
    let table = fs::read_to_string(script("subjects")).expect("it can be read");
    let mut folders = Vec::new();
    for row in rows(&table) {
        let mut words = row.split_whitespace();
        let folder = words.next().expect("a row begins with a folder");
        assert!(
            workspace_root().join(folder).is_dir(),
            "there is no folder {folder}"
        );
        folders.push(folder);
        for subject in words {
            let path = script("tests").join(subject.replace("::", "/"));
            let exists = path.join("main.rs").is_file() || path.with_extension("rs").is_file();
            assert!(exists, "{folder}: there is no {subject}");
        }
    }
    let is_crate = |path: &PathBuf| path.join("Cargo.toml").is_file() && !path.ends_with("agent");
    let crates = fs::read_dir(workspace_root().join("exporter")).expect("it can be read");
    let crates = crates.map(|entry| entry.expect("it can be read").path());
    for path in crates.filter(is_crate) {
        let folder = path
            .strip_prefix(workspace_root())
            .expect("it is in the workspace");
        let folder = folder.to_str().expect("it is in UTF-8");
        assert!(folders.contains(&folder), "{folder} has no row in tests/subjects");
    }
}

/// Returns the lines of `tests/changed` for these paths.
fn selected(paths: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let input = folder.path().join("paths");
    fs::write(&input, paths).expect("a file can be written");
    let output = Command::new(script("changed"))
        .stdin(fs::File::open(&input).expect("it can be read"))
        .output()
        .expect("the script can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut lines: Vec<String> = printed(&output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Returns the lines of a table without comments.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns whether a pattern of `no-second-try` matches a name, as in bash.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    (0..=name.len())
        .filter(|at| name.is_char_boundary(*at))
        .any(|at| matches(rest, &name[at..]))
}

/// Returns the tests of a source file, as PROGRAM::MODULE::TEST; a module inside the file is left out.
fn test_names(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let path = path
        .strip_prefix(workspace_root())
        .expect("it is in the workspace")
        .with_extension("");
    let path = path.to_str().expect("it is in UTF-8");
    let (folder, module) = match (path.rsplit_once("/src/"), path.split_once("tests/")) {
        (Some((folder, module)), _) => (folder, module),
        (None, Some((_, module))) => ("", module.strip_prefix("tests/").unwrap_or(module)),
        (None, None) => ("", path),
    };
    let program = match folder.rsplit('/').next().unwrap_or_default() {
        "" => String::new(),
        "agent" => "pulsetrain::".to_owned(),
        name => format!("pulsetrain_{}::", name.replace('-', "_")),
    };
    let module = module.trim_end_matches("/main").replace('/', "::");
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        is_test |= line.starts_with("#[test") || line.starts_with("#[tokio::test");
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if let (true, Some(function)) = (is_test, function) {
            let name = function.split(['(', '<']).next().unwrap_or_default();
            names.push(format!("{program}{module}::{name}"));
            is_test = false;
        }
    }
    names
}
