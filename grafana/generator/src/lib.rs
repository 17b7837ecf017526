//! Dashboards and alerts from one list of panels and rules.
//!
//! `grafana/definitions` has a YAML file for each dashboard and each group of alerts. [`generate`] checks every query against
//! the semantic conventions and returns the generated files: Grafana and Perses dashboards, rules for Prometheus and Mimir,
//! Grafana-managed alerts, and unit tests for `promtool`.

pub mod alert;
mod dashboard;
mod definition_error;
mod generated_file;
mod query;
mod thresholds;
mod yaml;

use std::path::Path;

pub use dashboard::{DashboardQuery, Data, Language, queries};
pub use definition_error::DefinitionError;
pub use generated_file::{GeneratedFile, out_of_date, stale, write};
pub use query::{Query, Vocabulary};
pub use thresholds::{ThresholdError, Thresholds};

/// Reads the folder of definitions and returns every file that is generated from it.
///
/// # Errors
///
/// Returns all errors of all files: unreadable YAML, unknown metrics, labels, units or thresholds, queries that do not parse.
pub fn generate(definitions: &Path) -> Result<Vec<GeneratedFile>, Vec<DefinitionError>> {
    let thresholds = Thresholds::load(definitions).map_err(|error| vec![error])?;
    let mut vocabulary = Vocabulary::default();
    for name in alert::Rules::recorded_names(definitions).map_err(|error| vec![error])? {
        vocabulary.add(&name);
    }
    let mut files = Vec::new();
    let mut errors = Vec::new();
    for generated in [
        dashboard::generate(definitions, &thresholds, &vocabulary),
        alert::generate(definitions, &thresholds, &vocabulary),
    ] {
        match generated {
            Ok(generated) => files.extend(generated),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(files) } else { Err(errors) }
}
