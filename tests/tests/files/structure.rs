//! Checks of the architecture: the allowed imports of each crate, and the names and lengths of files.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

/// The allowed imports of each crate; every other import inside the workspace is forbidden.
const MAY_IMPORT: &str = "\
agent: launcher conformance demo tail formats mapping receiver translate gpu backends derive to-perfetto trace-inputs sinks prometheus page record run net pipeline otlp semconv
demo: gpu record run pipeline otlp semconv
tail: formats record run pipeline otlp semconv
formats: mapping record run perfetto otlp semconv
mapping: record otlp semconv
receiver: run net pipeline otlp semconv
translate: mapping record run pipeline otlp semconv
gpu: record run pipeline otlp semconv
backends: net otlp semconv
conformance: otlp semconv
derive: record run pipeline otlp semconv
to-perfetto: perfetto run pipeline otlp semconv
trace-inputs: to-perfetto tail formats perfetto backends record run net pipeline otlp semconv
page: run net pipeline otlp semconv
prometheus: run net pipeline otlp semconv
sinks: to-perfetto prometheus run net pipeline otlp semconv
record: run otlp semconv
run: otlp semconv
pipeline: otlp
otlp: semconv
launcher:
net:
perfetto:
semconv:
codegen: semconv
grafana: semconv
fake-nvml:
tests: demo tail formats mapping receiver translate gpu backends conformance record run derive to-perfetto trace-inputs sinks prometheus page launcher net pipeline otlp perfetto semconv codegen grafana";

const BANNED_FILES: [&str; 7] = [
    "mod.rs",
    "utils.rs",
    "common.rs",
    "helpers.rs",
    "misc.rs",
    "manager.rs",
    "types.rs",
];
const MAX_LINES_OF_FILE: usize = 600;

#[test]
fn every_import_between_crates_is_in_the_table() {
    let violations = forbidden_imports(&cargo_metadata());
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn forbidden_crate_import_is_reported() {
    let metadata = workspace(&[("pulsetrain-otlp", "pulsetrain-sinks", None)]);
    assert_eq!(forbidden_imports(&metadata), ["otlp may not import sinks"]);
}

#[test]
fn crate_missing_from_the_dependency_table_is_reported() {
    let metadata = workspace(&[("pulsetrain-extra", "pulsetrain-otlp", None)]);
    assert_eq!(
        forbidden_imports(&metadata),
        ["extra has no row in the table of allowed imports"]
    );
}

#[test]
fn tests_may_import_only_crates_below_their_own() {
    let below = workspace(&[("pulsetrain-pipeline", "pulsetrain-semconv", Some("dev"))]);
    assert_eq!(forbidden_imports(&below), [""; 0]);
    let above = workspace(&[("pulsetrain-pipeline", "pulsetrain-sinks", Some("dev"))]);
    assert_eq!(
        forbidden_imports(&above),
        ["the tests of pipeline may not import sinks"]
    );
}

#[test]
fn source_files_follow_the_naming_and_size_rules() {
    let sources = rust_sources(workspace_root());
    assert!(sources.len() > 20, "only {} Rust files were found", sources.len());
    let faults: Vec<_> = sources
        .iter()
        .filter_map(|path| file_fault(path, line_count(path)))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Level and format of the log apply to every message of the program.
#[test]
fn program_messages_are_written_only_by_the_log_module() {
    let agent = workspace_root().join("exporter/agent/src");
    let is_log = |path: &PathBuf| *path == agent.join("log.rs");
    let writes = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("\"pulsetrain: {"));
    let (log, others): (Vec<_>, Vec<_>) = rust_sources(&agent).into_iter().partition(is_log);
    assert!(log.iter().all(writes), "the log writes them");
    let others: Vec<_> = others.into_iter().filter(writes).collect();
    assert!(others.is_empty(), "write through log.rs: {others:?}");
}

/// The rules for numbers, sums, state sets, ends and limits of series have one implementation.
#[test]
fn points_are_written_only_through_the_record_crate() {
    let exporter = workspace_root().join("exporter");
    // The SDK has aggregated the metrics of the agent.
    let writers = ["otlp", "record", "agent/src/agent/telemetry/exporter.rs"].map(|path| exporter.join(path));
    let writes = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("it can be read");
        let product = text.split("#[cfg(test)]\nmod tests {").next();
        product.is_some_and(|product| product.contains("MetricsWriter"))
    };
    let is_test = |path: &PathBuf| {
        let path = path.to_string_lossy();
        ["/tests", "/benches/", "/test_trainer.rs"]
            .iter()
            .any(|part| path.contains(part))
    };
    let (writing, others): (Vec<_>, Vec<_>) = rust_sources(&exporter)
        .into_iter()
        .filter(|path| !is_test(path) && writes(path))
        .partition(|path| writers.iter().any(|writer| path.starts_with(writer)));
    assert!(writing.len() > 3, "the writers are {writing:?}");
    assert!(others.is_empty(), "write through pulsetrain_record: {others:?}");
}

#[test]
fn banned_file_name_and_long_file_are_reported() {
    for (path, lines, fault) in [
        ("src/sinks/mod.rs", 10, "src/sinks/mod.rs: a name without meaning"),
        ("src/types.rs", 10, "src/types.rs: a name without meaning"),
        ("src/view.rs", 601, "src/view.rs: 601 lines, which is two files"),
    ] {
        assert_eq!(file_fault(Path::new(path), lines).as_deref(), Some(fault));
    }
    assert_eq!(file_fault(Path::new("src/view.rs"), 600), None);
    assert_eq!(file_fault(Path::new("src/generated/metric.rs"), 9_000), None);
}

#[test]
fn every_test_named_in_a_behaviour_table_exists() {
    let sources = rust_sources(workspace_root()).into_iter();
    let text: String = sources
        .map(|path| fs::read_to_string(path).expect("it can be read"))
        .collect();
    for (page, at_least) in [
        ("exporter/DELIVERY.md", 50),
        ("exporter/to-perfetto/PERFETTO.md", 25),
        ("exporter/gpu/BEHAVIOURS.md", 50),
    ] {
        let document = fs::read_to_string(workspace_root().join(page)).expect("it can be read");
        let table = document
            .split("<!-- behaviours -->")
            .nth(1)
            .expect("it has the mark");
        let table = table
            .split("<!-- end of behaviours -->")
            .next()
            .unwrap_or_default();
        let cells = table
            .lines()
            .filter_map(|line| line.strip_suffix(" |")?.rsplit(" | ").next());
        let named: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        assert!(named.len() > at_least, "{page} names only {} tests", named.len());
        let missing: Vec<_> = named.iter().filter(|name| !has_test(&text, name)).collect();
        assert!(missing.is_empty(), "{page}: {missing:#?}");
    }
}

#[test]
fn function_without_a_test_attribute_is_not_counted_as_a_test() {
    assert!(has_test(
        "#[tokio::test(start_paused = true)]\nasync fn waits() {}",
        "waits"
    ));
    assert!(has_test("    #[test]\n    fn law(x in any()) {}", "law"));
    assert!(!has_test("#[test]\nfn other() {}\n\nfn waits() {}", "waits"));
}

/// Returns whether a function of this name has a test attribute.
fn has_test(text: &str, name: &str) -> bool {
    text.match_indices(&format!("fn {name}(")).any(|(at, _)| {
        let before = &text[..at];
        let attributes = before.rfind(['}', ';']).map_or(before, |end| &before[end..]);
        attributes.contains("#[test]") || attributes.contains("#[tokio::test")
    })
}

/// Returns the imports in `cargo metadata` that the table forbids, one line each.
fn forbidden_imports(metadata: &Value) -> Vec<String> {
    let row = |row: &'static str| {
        let (importer, imports) = row.split_once(':').expect("a row begins with a crate");
        (importer, imports.split_whitespace().collect())
    };
    let table: BTreeMap<&str, Vec<&str>> = MAY_IMPORT.lines().map(row).collect();
    assert_eq!(table.len(), MAY_IMPORT.lines().count(), "a crate has two rows");
    let mut imports = table.values().flatten();
    assert!(
        imports.all(|imported| table.contains_key(imported)),
        "an import has no row"
    );
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().expect("metadata lists packages") {
        let importer = crate_name(package["name"].as_str().expect("a package has a name"));
        let Some(direct) = table.get(importer) else {
            faults.push(format!("{importer} has no row in the table of allowed imports"));
            continue;
        };
        for dependency in package["dependencies"]
            .as_array()
            .expect("a package lists dependencies")
        {
            let Some(imported) = workspace_crate(dependency) else {
                continue;
            };
            let for_tests = dependency["kind"] == "dev";
            if for_tests && !reachable_crates(importer, &table).contains(&imported) {
                faults.push(format!("the tests of {importer} may not import {imported}"));
            } else if !for_tests && !direct.contains(&imported) {
                faults.push(format!("{importer} may not import {imported}"));
            }
        }
    }
    faults
}

/// Returns the name of a dependency without its prefix, if it is a crate of this workspace.
fn workspace_crate(dependency: &Value) -> Option<&str> {
    dependency["path"].as_str()?;
    dependency["name"].as_str().map(crate_name)
}

fn crate_name(package: &str) -> &str {
    package.strip_prefix("pulsetrain-").unwrap_or(package)
}

/// Returns the crate itself and all crates that it may import, directly or through others.
fn reachable_crates<'a>(importer: &'a str, table: &BTreeMap<&'a str, Vec<&'a str>>) -> Vec<&'a str> {
    let mut reached = vec![importer];
    let mut next = 0;
    while let Some(reached_crate) = reached.get(next) {
        let below: &[&str] = table.get(reached_crate).map_or(&[], Vec::as_slice);
        let new: Vec<_> = below
            .iter()
            .copied()
            .filter(|imported| !reached.contains(imported))
            .collect();
        reached.extend(new);
        next += 1;
    }
    reached
}

fn cargo_metadata() -> Value {
    let cargo = env::var_os("CARGO").expect("cargo sets CARGO for its tests");
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(workspace_root())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

/// Returns the metadata of a workspace with these imports: (importer, imported, kind).
fn workspace(imports: &[(&str, &str, Option<&str>)]) -> Value {
    let packages = imports.iter().map(|(importer, imported, kind)| {
        json!({"name": importer, "dependencies": [{"name": imported, "kind": kind, "path": "/workspace"}]})
    });
    json!({"packages": packages.collect::<Vec<_>>()})
}

pub(crate) fn workspace_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are in a folder of the workspace")
}

/// Returns the violation of a file with that path and length, or `None`.
fn file_fault(path: &Path, lines: usize) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    if BANNED_FILES.contains(&name) {
        return Some(format!("{}: a name without meaning", path.display()));
    }
    let generated = path.components().any(|part| part.as_os_str() == "generated") || name == "generated.rs";
    (lines > MAX_LINES_OF_FILE && !generated)
        .then(|| format!("{}: {lines} lines, which is two files", path.display()))
}

fn line_count(path: &Path) -> usize {
    fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .lines()
        .count()
}

pub(crate) fn rust_sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("a folder can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(rust_sources(&path));
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    found
}
