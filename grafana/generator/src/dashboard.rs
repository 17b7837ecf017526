//! Dashboards: one definition in YAML becomes a Grafana and a Perses dashboard with the same queries.
//!
//! [`definition`] has the format of `definitions/dashboards/*.yaml`, [`resolve`] checks it and fills in thresholds, states and
//! positions, [`grafana`] and [`perses`] write the result. [`coverage`] compares the metrics of all panels with the registry.

mod coverage;
mod definition;
mod grafana;
mod histogram;
mod layout;
mod model;
mod perses;
mod queries;
mod resolve;
mod traceql;
mod unit;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde::de::DeserializeOwned;

use crate::{DefinitionError, GeneratedFile, Thresholds, Vocabulary};
pub use definition::Data;
use definition::{Annotation, DashboardDefinition, Variable};
use model::Dashboard;
pub use queries::{DashboardQuery, Language};
use resolve::Resolver;

/// Reads `dashboards/*.yaml`, `variables.yaml`, `annotations.yaml` and `not_shown.yaml` below `definitions`, and returns a
/// Grafana and a Perses file for each dashboard.
///
/// # Errors
///
/// Returns every error of every definition, and every metric of the registry that no panel shows and no entry of
/// `not_shown.yaml` excuses.
pub(crate) fn generate(
    definitions: &Path,
    thresholds: &Thresholds,
    vocabulary: &Vocabulary,
) -> Result<Vec<GeneratedFile>, Vec<DefinitionError>> {
    let dashboards = load(definitions, thresholds, vocabulary)?;
    let files = dashboards.iter().flat_map(|dashboard| {
        [
            json_file("dashboards", &dashboard.name, &grafana::write(dashboard)),
            json_file("perses", &dashboard.name, &perses::write(dashboard)),
        ]
    });
    Ok(files.collect())
}

/// Returns every query of every dashboard below `definitions`.
///
/// # Errors
///
/// As [`generate`](crate::generate).
pub fn queries(definitions: &Path) -> Result<Vec<DashboardQuery>, Vec<DefinitionError>> {
    let thresholds = Thresholds::load(definitions).map_err(|error| vec![error])?;
    let dashboards = load(definitions, &thresholds, &Vocabulary::default())?;
    Ok(dashboards.iter().flat_map(queries::list).collect())
}

/// Reads and checks every dashboard.
fn load(
    definitions: &Path,
    thresholds: &Thresholds,
    vocabulary: &Vocabulary,
) -> Result<Vec<Dashboard>, Vec<DefinitionError>> {
    let one = |error| vec![error];
    let variables: BTreeMap<String, Variable> = read(definitions, "variables.yaml").map_err(one)?;
    let annotations: BTreeMap<String, Annotation> = read(definitions, "annotations.yaml").map_err(one)?;
    let not_shown: Vec<coverage::NotShown> = read(definitions, "not_shown.yaml").map_err(one)?;
    let files = read_dashboards(definitions)?;

    let uids = files
        .iter()
        .map(|(stem, file)| (stem.clone(), file.uid.clone()))
        .collect();
    let mut resolver = Resolver::new(thresholds, vocabulary, &variables, &annotations, &uids);
    let dashboards: Vec<Dashboard> = files
        .iter()
        .map(|(stem, file)| resolver.dashboard(stem, file))
        .collect();
    let mut errors = resolver.errors;
    errors.extend(repeated_uids(&files));
    errors.extend(coverage::check(&dashboards, &not_shown));
    if errors.is_empty() {
        Ok(dashboards)
    } else {
        Err(errors)
    }
}

fn json_file(folder: &str, name: &str, value: &serde_json::Value) -> GeneratedFile {
    GeneratedFile {
        path: format!("{folder}/{name}.json"),
        text: format!("{value:#}\n"),
    }
}

fn read<T: DeserializeOwned>(definitions: &Path, file: &str) -> Result<T, DefinitionError> {
    let error = |message: String| DefinitionError::new(file, "", message);
    let text = fs::read_to_string(definitions.join(file)).map_err(|source| error(source.to_string()))?;
    serde_saphyr::from_str(&text).map_err(|source| error(source.to_string()))
}

/// Reads every dashboard, in the order of the file names, with the name of its file without `.yaml`.
fn read_dashboards(
    definitions: &Path,
) -> Result<BTreeMap<String, DashboardDefinition>, Vec<DefinitionError>> {
    let folder = definitions.join("dashboards");
    let io = |source: std::io::Error| vec![DefinitionError::new("dashboards", "", source)];
    let mut files = BTreeMap::new();
    let mut errors = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".yaml") else {
            continue;
        };
        match read(definitions, &format!("dashboards/{name}")) {
            Ok(file) => drop(files.insert(stem.to_owned(), file)),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(files) } else { Err(errors) }
}

fn repeated_uids(files: &BTreeMap<String, DashboardDefinition>) -> Vec<DefinitionError> {
    let mut seen = BTreeSet::new();
    files
        .iter()
        .filter(|(_, file)| !seen.insert(&file.uid))
        .map(|(stem, file)| {
            let message = format!("another dashboard has the uid `{}`; a uid is unique", file.uid);
            DefinitionError::new(&format!("dashboards/{stem}.yaml"), "uid", message)
        })
        .collect()
}

#[cfg(test)]
mod tests;
