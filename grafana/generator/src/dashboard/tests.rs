//! The definitions of the repository, and copies of them with one thing changed.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::*;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../definitions")
}

/// A copy of the definitions of the repository.
struct Copy(TempDir);

impl Copy {
    fn new() -> Self {
        let copy = tempfile::tempdir().unwrap();
        fs::create_dir(copy.path().join("dashboards")).unwrap();
        for folder in ["", "dashboards"] {
            for entry in fs::read_dir(repository().join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    fs::copy(&path, copy.path().join(folder).join(path.file_name().unwrap())).unwrap();
                }
            }
        }
        Self(copy)
    }

    /// Replaces the first occurrence of a text in a file; panics if it does not occur.
    fn replace(self, file: &str, old: &str, new: &str) -> Self {
        let path = self.0.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{file} has no `{old}`");
        fs::write(path, text.replacen(old, new, 1)).unwrap();
        self
    }

    fn load(&self) -> Result<Vec<Dashboard>, Vec<DefinitionError>> {
        let thresholds = Thresholds::load(self.0.path()).unwrap();
        load(self.0.path(), &thresholds, &Vocabulary::default())
    }
}

/// Returns the errors after replacing `old` by `new` in the definition of the mixture of experts.
fn errors_of_moe(old: &str, new: &str) -> String {
    errors(&Copy::new().replace("dashboards/moe.yaml", old, new))
}

fn errors(copy: &Copy) -> String {
    let errors = copy.load().map_or_else(|errors| errors, |_| Vec::new());
    errors.iter().map(|error| format!("{error}\n")).collect()
}

#[test]
fn the_dashboards_of_the_repository_have_no_errors() {
    let dashboards = Copy::new().load().unwrap();
    assert!(dashboards.len() >= 8);
    assert!(dashboards.iter().flat_map(Dashboard::panels).count() >= 80);
}

#[test]
fn invalid_panel_is_rejected_with_its_location() {
    let panel = "dashboards/moe.yaml: Load imbalance: ";
    for (old, new, message) in [
        (
            "title: Load imbalance\n",
            "title: \"\"\n",
            "dashboards/moe.yaml: `title` is empty",
        ),
        (
            "unit: \"{imbalance}\"",
            "unit: none",
            &format!("{panel}`unit` is `none` for text"),
        ),
        (
            "unit: \"{imbalance}\"",
            "unit: furlong",
            &format!("{panel}no unit `furlong`"),
        ),
        (
            "title: Load imbalance over time",
            "title: Load imbalance",
            "another panel of the dashboard has this title",
        ),
        (
            "${threshold.moe_imbalance}",
            "${threshold.moe}",
            &format!("{panel}no threshold `moe`"),
        ),
        ("warning: 2", "warning: 9", &format!("{panel}`thresholds` need")),
        (
            "link: run-overview",
            "link: nowhere",
            "`link`: no file dashboards/nowhere.yaml",
        ),
        ("max: 1\n", "\n", "Experts in use: a gauge needs `max`"),
        ("kind: stat\n", "kind: dial\n", "unknown variant `dial`"),
        (
            "kind: stat\n",
            "kind: stat\n        colour: red\n",
            "unknown field `colour`",
        ),
        (
            "legend: \"{{train_run_id}}\"}",
            "fallback: true}",
            &format!("{panel}the first query cannot be a `fallback`"),
        ),
        (
            "{expr: 'max",
            "{mean: 'max",
            &format!("{panel}`max by (train_run_id)"),
        ),
    ] {
        let errors = errors_of_moe(old, new);
        assert!(
            errors.contains(message),
            "`{old}` as `{new}` gives {errors}, not {message}"
        );
    }
}

#[test]
fn invalid_panel_query_is_rejected_with_the_reason() {
    for (old, new, message) in [
        (
            "moe_load_imbalance{",
            "moe_imbalance{",
            "no metric `moe_imbalance`",
        ),
        (
            "(train_run_id) (moe_load",
            "(run) (moe_load",
            "no metric of the query has a label `run`",
        ),
        ("moe_load_imbalance{", "1 / moe_load_imbalance{", "can be 0"),
        (
            "train_attempt=~\"$attempt\"",
            "train_attempt=~\"$restart\"",
            "a query uses `$restart`",
        ),
    ] {
        let errors = errors_of_moe(old, new);
        assert!(
            errors.contains(message),
            "`{old}` as `{new}` gives {errors}, not {message}"
        );
    }
}

#[test]
fn names_in_a_dashboard_exist_and_are_used() {
    for (new, message) in [
        ("[project, run, attempt, node]", "no variable `node`"),
        ("[project, run, attempt, sink]", "no query uses `$sink`"),
        ("[project, run]", "a query uses `$attempt`"),
    ] {
        let errors = errors_of_moe("[project, run, attempt]", new);
        assert!(errors.contains(message), "{new} gives {errors}, not {message}");
    }
    assert!(errors_of_moe("[restart, ", "[reboot, ").contains("no annotation `reboot`"));
    assert!(
        errors_of_moe("uid: pulsetrain-moe", "uid: pulsetrain-rl").contains("another dashboard has the uid")
    );
}

#[test]
fn state_timeline_expands_to_the_registry_states() {
    let file = "dashboards/run-overview.yaml";
    let wrong = errors(&Copy::new().replace(file, "states: train.phase", "states: train.phases"));
    assert!(wrong.contains("no attribute `train.phases`"), "{wrong}");

    let dashboards = Copy::new().load().unwrap();
    let phase = dashboards
        .iter()
        .flat_map(Dashboard::panels)
        .find(|panel| panel.title == "Phase")
        .unwrap();
    let expr = &phase.queries[0].expr;
    assert_eq!(expr.matches(" or ").count() + 1, phase.states.len());
    assert!(
        expr.contains("train_phase=\"diverging\"") && !expr.contains("$state"),
        "{expr}"
    );
}

#[test]
fn every_metric_is_shown_or_listed_with_a_reason() {
    let no_longer_shown = errors_of_moe("moe_load_cv{", "moe_z_loss{");
    assert!(
        no_longer_shown.contains("moe.load_cv: no panel shows this metric"),
        "{no_longer_shown}"
    );

    let list = |old, new| errors(&Copy::new().replace("not_shown.yaml", old, new));
    assert!(list("- train.perplexity", "- train.loss").contains("train.loss: a panel shows this metric"));
    assert!(list("- train.perplexity", "- train.loss").contains("train.perplexity: no panel shows"));
    assert!(
        list("- train.perplexity", "- train.perplexity\n    - train.nothing").contains("has no such metric")
    );
    assert!(list("reason: Only MIG devices have it, which", "reason: \"\"\n  #").contains("has no reason"));
}

/// Returns every string value under a key, at any depth.
fn texts<'a>(json: &'a Value, key: &str, found: &mut BTreeSet<&'a str>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| texts(item, key, found)),
        Value::Object(map) => {
            found.extend(map.get(key).and_then(Value::as_str));
            map.values().for_each(|value| texts(value, key, found));
        }
        _ => {}
    }
}

#[test]
fn perses_and_grafana_dashboards_have_the_same_queries() {
    for dashboard in Copy::new().load().unwrap() {
        let (grafana, perses) = (grafana::write(&dashboard), perses::write(&dashboard));
        let (mut of_grafana, mut of_perses) = (BTreeSet::new(), BTreeSet::new());
        texts(&grafana["panels"], "expr", &mut of_grafana);
        texts(&perses["spec"]["panels"], "query", &mut of_perses);
        // A heatmap of Perses has no fallback, and TraceQL queries have values in place of variables.
        let fallbacks = dashboard
            .panels()
            .flat_map(|panel| &panel.queries)
            .filter(|query| query.fallback);
        fallbacks.for_each(|query| assert!(of_grafana.remove(query.expr.as_str())));
        of_perses.retain(|query| !query.starts_with("{ name"));
        assert_eq!(of_grafana, of_perses, "{}", dashboard.name);
    }
}

#[test]
fn a_traceql_query_of_perses_has_no_variables() {
    let dashboards = Copy::new().load().unwrap();
    let overview = dashboards
        .iter()
        .find(|dashboard| dashboard.name == "run-overview")
        .unwrap();
    let perses = perses::write(overview);
    let mut queries = BTreeSet::new();
    texts(&perses["spec"]["panels"]["slow_steps"], "query", &mut queries);
    let query = queries.first().unwrap();
    assert!(
        query.contains("=~ \".*\"") && query.contains("duration > 100ms") && !query.contains('$'),
        "{query}"
    );
}

#[test]
fn a_link_of_a_series_narrows_the_selection_to_its_labels() {
    let dashboards = Copy::new().load().unwrap();
    let ranks = dashboards
        .iter()
        .find(|dashboard| dashboard.name == "stragglers")
        .unwrap();
    let grafana = grafana::write(ranks);
    let panels = grafana["panels"].as_array().unwrap();
    let panel = panels
        .iter()
        .find(|panel| panel["title"] == "Straggler score by rank")
        .unwrap();
    let url = panel["fieldConfig"]["defaults"]["links"][0]["url"]
        .as_str()
        .unwrap();
    assert!(url.starts_with("/d/pulsetrain-gpu?${__url_time_range}&"), "{url}");
    assert!(url.contains("var-rank=${__field.labels.train_rank}"), "{url}");
    assert!(url.contains("${attempt:queryparam}"), "{url}");
}

/// Returns the lines that the README adds to the overview of a run.
fn entry_of_readme() -> String {
    let readme = fs::read_to_string(repository().join("../README.md")).unwrap();
    let (_, section) = readme.split_once("## A new panel is one entry").unwrap();
    let (_, diff) = section.split_once("```diff").unwrap();
    let (diff, _) = diff.split_once("```").unwrap();
    let added = diff
        .lines()
        .filter(|line| !line.starts_with("+++"))
        .filter_map(|line| line.strip_prefix('+'));
    added.map(|line| format!("{line}\n")).collect()
}

#[test]
fn readme_example_panel_appears_in_grafana_and_perses() {
    let row = "  - title: Is it learning?\n    panels:\n";
    let with_entry = format!("{row}{}", entry_of_readme());
    let dashboards = Copy::new()
        .replace("dashboards/run-overview.yaml", row, &with_entry)
        .load()
        .unwrap();
    let overview = dashboards
        .iter()
        .find(|dashboard| dashboard.name == "run-overview")
        .unwrap();
    let title = "Time of evaluations by attempt";
    let (grafana, perses) = (grafana::write(overview), perses::write(overview));
    let (mut titles, mut names) = (BTreeSet::new(), BTreeSet::new());
    texts(&grafana["panels"], "title", &mut titles);
    texts(&perses["spec"]["panels"], "name", &mut names);
    assert!(titles.contains(title) && names.contains(title));
}

#[test]
fn provisioned_tempo_queries_use_only_known_names() {
    let path = repository().join("../provisioning/datasources/pulsetrain.yaml");
    let text = fs::read_to_string(path).unwrap();
    let queries: Vec<_> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("query: "))
        .collect();
    assert!(!queries.is_empty());
    for query in queries {
        // Grafana puts the tags of the span in place of `$__tags`.
        let query = query.replace("{$$__tags}", "{train_run_id=\"a\",train_rank=\"0\"}");
        assert!(Vocabulary::default().check(&query).is_ok(), "{query}");
    }
}
