//! The Perses dashboards in a real Chromium, on the fleet's Prometheus and Tempo.
//!
//! With `PULSETRAIN_PICTURES=1` it draws the pictures in `grafana/pictures` instead: the upper panels of each dashboard.

#![allow(clippy::print_stdout, reason = "the test prints what it found of each panel")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{Folder, Judge, RecordedTempo, otlp::list};
use serde_json::{Value, json};

use crate::grafana::{alerts::grafana, fleet::Fleet, queries::text};

/// The height of a picture, in rows of the grid.
const PICTURED_HEIGHT: u64 = 24;

/// Returns an error for each panel without marks or with an error text, in the light and in the dark theme. It stops the fleet,
/// so that the browser has all CPU time; all queries are about earlier times.
pub(crate) fn check(fleet: &mut Fleet) -> Vec<String> {
    let Some(judge) = Judge::Perses.require_or_skip() else {
        return Vec::new();
    };
    let folder = Folder::new();
    let times = (fleet.start, fleet.end());
    let mut looks = Vec::new();
    for path in dashboards() {
        if env::var_os("PULSETRAIN_PICTURES").is_some() {
            let upper = upper_panels(&folder, &path);
            for theme in ["light", "dark"] {
                let mut look = look(times, &upper, theme);
                look["shot"] = json!(picture(&path, theme));
                looks.push(look);
            }
        } else {
            let mut look = look(times, &path, "light");
            look["then"] = json!("dark");
            looks.push(look);
        }
    }
    // Without a live Tempo, panels of traces show what one answered: `recorded_traces` checks their queries.
    let recorded = RecordedTempo::start_with_any_search();
    let tempo = fleet
        .tempo
        .as_ref()
        .map_or_else(|| recorded.url(), pulsetrain_tests::Tempo::url);
    let wanted = json!({"prometheus": fleet.scraped.url(), "tempo": tempo, "looks": looks});
    let output = Command::new(judge).arg(wanted.to_string()).output();
    let output = output.expect("the judge can be started");
    let problems = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{problems}");
    let lines = String::from_utf8_lossy(&output.stdout);
    let seen: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("the judge prints JSON"))
        .collect();
    assert_eq!(seen.len(), looks.len());
    seen.iter()
        .zip(&looks)
        .flat_map(|(seen, look)| problems_of(seen, look))
        .collect()
}

fn dashboards() -> Vec<PathBuf> {
    let entries = fs::read_dir(grafana().join("perses")).expect("there are dashboards");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn look((start, end): (u64, u64), dashboard: &Path, theme: &str) -> Value {
    json!({
        "dashboard": dashboard,
        "start": start * 1_000,
        "end": end * 1_000,
        "theme": theme,
    })
}

/// Writes a copy of a dashboard with only the rows of the grid that fit into a picture.
fn upper_panels(folder: &Folder, path: &Path) -> PathBuf {
    let bytes = fs::read(path).expect("a dashboard can be read");
    let mut dashboard: Value = serde_json::from_slice(&bytes).expect("a dashboard is JSON");
    let layouts = dashboard["spec"]["layouts"].as_array_mut().expect("rows");
    let mut above = 0;
    for layout in &mut *layouts {
        let items = layout["spec"]["items"].as_array_mut().expect("places of panels");
        let end = |item: &Value| item["y"].as_u64().unwrap_or(0) + item["height"].as_u64().unwrap_or(0);
        let height = items.iter().map(end).max().unwrap_or(0);
        items.retain(|item| above + end(item) <= PICTURED_HEIGHT);
        above += height;
    }
    layouts.retain(|layout| !list(&layout["spec"]["items"]).is_empty());
    folder.file(&format!("{}.json", name(path)), dashboard.to_string())
}

fn picture(dashboard: &Path, theme: &str) -> PathBuf {
    let folder = grafana().join("pictures");
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder.join(format!("{}-{theme}.png", name(dashboard)))
}

fn name(path: &Path) -> String {
    path.file_stem().expect("a name").to_string_lossy().into_owned()
}

/// Returns the errors of a rendered dashboard.
fn problems_of(seen: &Value, look: &Value) -> Vec<String> {
    let dashboard = name(Path::new(look["dashboard"].as_str().expect("a path")));
    let errors = list(&seen["errors"]).iter();
    let mut problems: Vec<String> = errors
        .map(|error| format!("{dashboard}: the page throws {error}"))
        .collect();
    problems.extend(undrawn(&dashboard, &text(look, "theme"), &seen["panels"]));
    if let Some(theme) = look["then"].as_str() {
        problems.extend(undrawn(&dashboard, theme, &seen["then"]));
    }
    problems
}

/// Returns an error for each panel without marks.
fn undrawn(dashboard: &str, theme: &str, panels: &Value) -> Vec<String> {
    let (place, panels) = (format!("{dashboard} in {theme}"), list(panels));
    println!("{place}: {} panels", panels.len());
    if panels.is_empty() {
        return vec![format!("{place}: no panels")];
    }
    let is_bad = |panel: &&Value| panel["drawn"] != true || !panel["error"].is_null();
    let bad = panels.iter().filter(is_bad);
    bad.map(|panel| format!("{place}: not drawn: {panel}")).collect()
}
