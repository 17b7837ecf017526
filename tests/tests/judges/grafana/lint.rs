//! The files themselves: Grafana's linter and types, provisioning, and links between the files.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{Judge, otlp::list, some_or_return};
use serde_json::Value;

use crate::grafana::{
    alerts::{grafana, rules},
    queries::{dashboards, text},
};

fn dashboard_files() -> Vec<PathBuf> {
    let path = |(name, _)| grafana().join(format!("dashboards/{name}.json"));
    dashboards().into_iter().map(path).collect()
}

fn yaml(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The exceptions are in `grafana/dashboards/.lint` with their reasons.
#[test]
fn dashboard_linter_reports_no_problems() {
    let linter = some_or_return!(Judge::DashboardLinter.require_or_skip());
    for file in dashboard_files() {
        let mut lint = Command::new(&linter);
        let linted = lint.args(["lint", "--strict"]).arg(&file).output();
        let linted = linted.expect("the linter can be started");
        let findings = String::from_utf8_lossy(&linted.stdout);
        assert!(linted.status.success(), "{}:\n{findings}", file.display());
    }
}

#[test]
fn dashboards_conform_to_the_grafana_schema() {
    let checker = some_or_return!(Judge::GrafanaSchema.require_or_skip());
    let checked = Command::new(checker).args(dashboard_files()).output();
    let checked = checked.expect("the checker can be started");
    let errors = String::from_utf8_lossy(&checked.stdout);
    assert!(
        checked.status.success(),
        "{errors}{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}

/// Data sources refer to each other by uid, and every environment variable has a value in `grafana.env`.
#[test]
fn provisioning_references_existing_data_sources_and_variables() {
    let folder = grafana().join("provisioning");
    let sources = yaml(&folder.join("datasources/pulsetrain.yaml"));
    let uids: BTreeSet<String> = list(&sources["datasources"])
        .iter()
        .map(|source| text(source, "uid"))
        .collect();
    assert!(uids.contains("prometheus") && uids.contains("tempo"), "{uids:?}");
    for reference in references(&sources) {
        assert!(uids.contains(&reference), "no data source {reference}");
    }
    let environment = fs::read_to_string(grafana().join("grafana.env")).expect("there are values");
    for file in ["datasources", "dashboards"] {
        let provisioned = fs::read_to_string(folder.join(file).join("pulsetrain.yaml")).expect("a file");
        for rest in provisioned.split("${").skip(1) {
            let variable = rest.split('}').next().expect("a name");
            assert!(
                environment.contains(&format!("\n{variable}=")),
                "{file}: {variable} has no value"
            );
        }
    }
    let providers = yaml(&folder.join("dashboards/pulsetrain.yaml"));
    assert_eq!(list(&providers["providers"]).len(), 1);
}

/// Returns the values of all keys `datasourceUid`.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(
                |(key, value)| match value.as_str().filter(|_| key == "datasourceUid") {
                    Some(uid) => vec![uid.to_owned()],
                    None => references(value),
                },
            )
            .collect(),
        Value::Array(values) => values.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn alerts_and_panels_link_to_dashboards_that_exist() {
    let uids: BTreeSet<String> = dashboards()
        .iter()
        .map(|(_, dashboard)| text(dashboard, "uid"))
        .collect();
    let links = dashboards()
        .into_iter()
        .map(|(name, dashboard)| (name, dashboard.to_string()));
    let alerts =
        fs::read_to_string(grafana().join("alerts/pulsetrain.alerts.yaml")).expect("there are alerts");
    let mut found = 0;
    for (place, text) in links.chain([("alerts".to_owned(), alerts)]) {
        for rest in text.split("/d/").skip(1) {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let uid = &rest[..end.unwrap_or(rest.len())];
            assert!(uids.contains(uid), "{place} links to {uid}");
            found += 1;
        }
    }
    assert!(found > rules().alerts().count(), "{found} links");
}

/// Both dashboards of a definition have the same panels, and every PromQL query in Perses is also in Grafana.
#[test]
fn perses_dashboard_has_the_queries_of_its_grafana_dashboard() {
    for (name, dashboard) in dashboards() {
        let path = grafana().join(format!("perses/{name}.json"));
        let twin: Value =
            serde_json::from_slice(&fs::read(path).expect("there is a twin")).expect("it is JSON");
        let own: BTreeSet<String> = list(&dashboard["panels"])
            .iter()
            .flat_map(|panel| list(&panel["targets"]))
            .filter_map(|target| target["expr"].as_str().map(str::to_owned))
            .collect();
        let panels = twin["spec"]["panels"].as_object().expect("panels");
        let own_panels = list(&dashboard["panels"])
            .iter()
            .filter(|panel| panel["type"] != "row")
            .count();
        assert_eq!(panels.len(), own_panels, "{name}");
        let queries = panels.values().flat_map(|panel| list(&panel["spec"]["queries"]));
        for query in queries.filter_map(|query| query["spec"]["plugin"]["spec"]["query"].as_str()) {
            assert!(own.contains(query) || query.starts_with('{'), "{name}: {query}");
        }
    }
}
