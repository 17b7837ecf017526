//! Rules, unit tests and runbooks of the alerts: promtool runs every rule file and every test.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    thread,
};

use pulsetrain_grafana::{Thresholds, Vocabulary, alert::Rules};
use pulsetrain_tests::{Folder, Judge, promtool, some_or_return};
use serde_json::Value;

/// The sections of a runbook, in this order.
const SECTIONS: [&str; 4] = ["Meaning", "How to check", "Likely causes", "What to do"];

pub(crate) fn grafana() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../grafana")
}

/// Returns the definitions.
pub(crate) fn rules() -> Rules {
    let definitions = grafana().join("definitions");
    let thresholds = Thresholds::load(&definitions).expect("the thresholds can be read");
    Rules::load(&definitions, &thresholds, &vocabulary()).expect("the definitions are right")
}

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    for name in Rules::recorded_names(&grafana().join("definitions")).expect("there are recording rules") {
        vocabulary.add(&name);
    }
    vocabulary
}

/// Returns the files of a folder with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

#[test]
fn promtool_accepts_every_rule_file() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let paths = files(&grafana().join("alerts"), "yaml");
    assert_eq!(paths.len(), 2, "{paths:?}");
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let checked = promtool(
        &program,
        &["check", "rules", "--lint=all", "--lint-fatal"],
        &paths,
    );
    assert!(checked.status.success(), "{checked:?}");
}

/// Each alert fires with its labels and annotations, is silent, and resolves: the generator rejects an alert without such
/// tests.
#[test]
fn every_alert_passes_its_unit_tests() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let paths = files(&grafana().join("alerts/tests"), "yaml");
    assert_eq!(paths.len(), rules().groups.len());
    thread::scope(|scope| {
        for path in &paths {
            let program = &program;
            scope.spawn(move || {
                let tested = promtool(program, &["test", "rules"], &[path]);
                let errors = String::from_utf8_lossy(&tested.stderr);
                assert!(tested.status.success(), "{}: {errors}", path.display());
            });
        }
    });
}

#[test]
fn alert_rule_that_never_fires_fails_its_unit_tests() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let alerts = folder.path("alerts");
    fs::create_dir_all(alerts.join("tests")).expect("a folder can be made");
    let copy = |name: &str, change: fn(String) -> String| {
        let text = fs::read_to_string(grafana().join("alerts").join(name)).expect("it is generated");
        fs::write(alerts.join(name), change(text)).expect("a file can be written");
    };
    copy("pulsetrain.recording.yaml", |text| text);
    copy("tests/rl.yaml", |text| text);
    let test = alerts.join("tests/rl.yaml");
    copy("pulsetrain.alerts.yaml", |text| text);
    assert!(promtool(&program, &["test", "rules"], &[&test]).status.success());
    copy("pulsetrain.alerts.yaml", |text| {
        text.replace(
            "train_verdict_kind=\"inference_bound\"",
            "train_verdict_kind=\"none\"",
        )
    });
    let tested = promtool(&program, &["test", "rules"], &[&test]);
    assert!(!tested.status.success(), "{tested:?}");
}

/// Grafana-managed alerts have the same expressions, and names that Grafana accepts. Grafana does not expand variables in
/// queries and annotations; newer versions replace `${NAME}` in annotations by an environment variable.
#[test]
fn grafana_managed_alerts_are_the_same_alerts() {
    let path = grafana().join("provisioning/alerting/pulsetrain.yaml");
    let text = fs::read_to_string(path).expect("it is generated");
    let file: Value = serde_saphyr::from_str(&text).expect("it is YAML");
    assert_eq!(file["apiVersion"], 1);
    let rules = rules();
    let mut uids = BTreeSet::new();
    let groups = file["groups"].as_array().expect("there are groups");
    assert_eq!(groups.len(), rules.groups.len());
    for (group, expected) in groups.iter().zip(&rules.groups) {
        let managed = group["rules"].as_array().expect("a group has rules");
        assert_eq!(managed.len(), expected.alerts.len());
        for (rule, alert) in managed.iter().zip(&expected.alerts) {
            assert_eq!(rule["title"], alert.name);
            let uid = rule["uid"].as_str().expect("a rule has a uid");
            assert!(uid.len() <= 40 && uids.insert(uid.to_owned()), "{uid}");
            let nodes = rule["data"].as_array().expect("a rule has nodes");
            let expr = nodes[0]["model"]["expr"].as_str().expect("a query");
            assert_eq!(expr.trim(), alert.expr.trim());
            let ids: Vec<&Value> = nodes.iter().map(|node| &node["refId"]).collect();
            assert!(ids.contains(&&rule["condition"]), "{ids:?}");
            for (name, annotation) in rule["annotations"].as_object().expect("annotations") {
                let text = annotation.as_str().expect("an annotation is text");
                let is_raw = !text.contains("$$") && !text.contains("${");
                assert!(is_raw, "{}: {name}: {text}", alert.name);
            }
        }
    }
}

#[test]
fn every_alert_links_to_a_dashboard() {
    let uid = |path: PathBuf| {
        let text = fs::read_to_string(path).expect("a dashboard can be read");
        let dashboard: Value = serde_json::from_str(&text).expect("a dashboard is JSON");
        dashboard["uid"]
            .as_str()
            .expect("a dashboard has a uid")
            .to_owned()
    };
    let dashboards = files(&grafana().join("dashboards"), "json");
    let dashboards: BTreeSet<String> = dashboards.into_iter().map(uid).collect();
    for alert in rules().alerts() {
        let uid = &alert.dashboard;
        assert!(
            dashboards.contains(uid),
            "{}: {uid} is not in {dashboards:?}",
            alert.name
        );
    }
}

#[test]
fn every_alert_has_a_runbook_and_every_runbook_an_alert() {
    let alerts: BTreeSet<String> = rules().alerts().map(|alert| alert.name.clone()).collect();
    let name = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    let runbooks = files(&grafana().join("alerts/runbooks"), "md");
    let runbooks: BTreeSet<String> = runbooks.into_iter().map(name).collect();
    let missing: Vec<_> = alerts.difference(&runbooks).collect();
    let extra: Vec<_> = runbooks.difference(&alerts).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing: {missing:?}, without an alert: {extra:?}"
    );
}

#[test]
fn every_runbook_has_all_sections_and_queries_known_metrics() {
    let vocabulary = vocabulary();
    for path in files(&grafana().join("alerts/runbooks"), "md") {
        let text = fs::read_to_string(&path).expect("a runbook can be read");
        let name = path.file_stem().expect("a name").to_string_lossy();
        assert!(
            text.starts_with(&format!("# {name}\n")),
            "{name}: the title is its name"
        );
        let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, SECTIONS, "{name}");
        let queries: Vec<&str> = text
            .split("```promql\n")
            .skip(1)
            .map(|rest| rest.split("\n```").next().expect("a part"))
            .collect();
        assert!(!queries.is_empty(), "{name} has a query to check with");
        for query in queries.iter().flat_map(|block| block.split("\n\n")) {
            let checked = vocabulary.check(query);
            assert!(checked.is_ok(), "{name}: `{query}`: {:?}", checked.err());
        }
    }
}
