//! `--mapping FILE` and `--suggest-mapping LOG`: the meaning of the keys of a log without a known format.

use std::{path::Path, process::ExitCode, sync::Arc};

use pulsetrain_formats::{LogFormat, format_by_name};
use pulsetrain_mapping::Mapping;
use pulsetrain_tail::suggest_mapping_of;

use crate::{
    cli::FormatChoice,
    config::{load_mapping, mapped},
    failure::Failure,
    terminal,
};

/// Returns the format and the mapping of the command line, or the default mapping.
///
/// # Errors
/// Returns an error for a format that accepts no mapping, and every fault of the file, each with its place.
pub(crate) fn read(
    format: FormatChoice,
    file: Option<&Path>,
) -> Result<(Option<&'static LogFormat>, Arc<Mapping>), Failure> {
    let Some(file) = file else {
        return Ok((format.0, Arc::default()));
    };
    if format.0.is_some_and(|format| !format.takes_mapping()) {
        return Err(Failure::usage(format!(
            "--mapping is for the formats {}: name one of them with --format, or leave --format out",
            mapped()
        )));
    }
    let mapping = load_mapping(file).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::usage(lines.join("\n"))
    })?;
    let named = || format_by_name(mapping.format()?.name());
    let Some(format) = format.0.or_else(named) else {
        return Err(Failure::usage(format!(
            "{}: the mapping does not name the format of the log; add `format: text` to it (or {})",
            file.display(),
            mapped()
        )));
    };
    Ok((Some(format), mapping))
}

/// Prints a suggested mapping for a log.
///
/// # Errors
/// Returns an error if the log cannot be read, or has no labelled numbers.
pub(crate) fn suggest(log: &Path) -> Result<ExitCode, Failure> {
    let mapping = suggest_mapping_of(log).map_err(|error| Failure::failed(error.to_string()))?;
    terminal::print(&mapping)?;
    Ok(ExitCode::SUCCESS)
}
