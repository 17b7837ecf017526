//! Loads a configuration: its file, the files that it includes, and all faults of those.

use std::{collections::HashMap, fs, path::Path};

use super::{Config, Fault, faults, include, read::load_part};

/// Reads the configuration at `path`, with the files that it includes.
///
/// # Errors
/// Returns the first fault, with its place.
pub(crate) fn load(path: &Path, variables: &HashMap<String, String>) -> Result<Config, Fault> {
    let mut config = load_part(path, variables)?;
    include::add(&mut config, path, variables)?;
    Ok(config)
}

/// Reads the configuration at `path`.
///
/// # Errors
/// Returns all faults that could be found.
pub(crate) fn load_with_faults(
    path: &Path,
    variables: &HashMap<String, String>,
) -> Result<Config, Vec<Fault>> {
    load(path, variables).map_err(|first| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut all = faults::all(&path.display().to_string(), &text, variables);
        all.extend(include::all_faults(path, variables));
        if all.is_empty() { vec![first] } else { all }
    })
}
