//! Alerts and recording rules: from `definitions/alerts/*.yaml` and `definitions/recording.yaml` to rules for Prometheus and
//! Mimir, Grafana-managed alerts and unit tests for promtool.
//!
//! `definition` has the format of the files, `rules` reads and checks all files, and `prometheus`, `grafana` and `promtool`
//! write.

mod definition;
pub(crate) mod duration;
mod grafana;
mod prometheus;
mod promql;
mod promtool;
mod rules;
mod template;

use std::path::Path;

pub use definition::{Alert, AlertTest, Demo, Fires, Group, Links, Recording, Severity};
pub use rules::Rules;

use crate::{DefinitionError, GeneratedFile, Thresholds, Vocabulary};

/// Head comment of every generated file.
const GENERATED: &str =
    "Generated from grafana/definitions by `cargo run -p pulsetrain-grafana`. Do not edit.";

/// Returns the rules of Prometheus, the alerts of Grafana and the tests of promtool.
///
/// # Errors
///
/// Returns all errors of all files.
pub fn generate(
    definitions: &Path,
    thresholds: &Thresholds,
    vocabulary: &Vocabulary,
) -> Result<Vec<GeneratedFile>, Vec<DefinitionError>> {
    let rules = Rules::load(definitions, thresholds, vocabulary)?;
    let mut files = rules.prometheus_files();
    files.extend(promtool::files(&rules)?);
    files.push(grafana::file(&rules));
    Ok(files)
}
