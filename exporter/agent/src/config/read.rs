//! Reads one file of a configuration, and expands environment variables and references to files.

use std::{collections::HashMap, fs, io::Read, path::Path};

use pulsetrain_pipeline::Problem;
use serde::de::DeserializeOwned;
use serde_saphyr::{Options, PropertySyntax};

use super::{Fault, file_values, variables::unset_variable};

/// The limit on the size of a configuration file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the file at `path`, which holds a configuration or a part of one.
///
/// # Errors
/// Returns the first fault, with its place.
pub(super) fn load_part<T: DeserializeOwned>(
    path: &Path,
    variables: &HashMap<String, String>,
) -> Result<T, Fault> {
    let file = path.display().to_string();
    let cannot = |error: std::io::Error| {
        Fault::of_file(
            &file,
            Problem::new(format!("cannot be read: {error}"))
                .with_remedy("check the path and its permissions"),
        )
    };
    let mut bytes = Vec::new();
    let opened = fs::File::open(path).map_err(cannot)?;
    // A device has no size, so the limit is on what is read.
    let read = opened.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    if read.map_err(cannot)? as u64 > MAX_BYTES {
        return Err(Fault::of_file(
            &file,
            "is larger than 1 MiB, which no configuration is: check the path",
        ));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Fault::of_file(
            &file,
            format!("is not UTF-8 from byte {offset} on: convert it to UTF-8"),
        )
    })?;
    parse(&file, &text, variables)
}

/// Reads `text` from `file`.
///
/// # Errors
/// Returns the first fault, with its place.
pub(super) fn parse<T: DeserializeOwned>(
    file: &str,
    text: &str,
    variables: &HashMap<String, String>,
) -> Result<T, Fault> {
    if let Some((location, name)) = unset_variable(text, variables) {
        return Err(Fault::at(
            file,
            location,
            Problem::new(format!(
                "the variable {name} is not set (a dollar sign is written $$)"
            ))
            .with_remedy(format!("set it, or give a default as ${{{name}:-default}}")),
        ));
    }
    let (expanded, variables) = file_values::expand(file, text, variables)?;
    let mut options = Options::default().with_properties(variables);
    options.property_syntax = PropertySyntax::DockerCompose;
    serde_saphyr::from_str_with_options(&expanded, options)
        .map_err(|error| Fault::of_yaml(file, text, &error))
}
