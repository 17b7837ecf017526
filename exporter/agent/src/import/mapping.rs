//! `--mapping FILE` and `--suggest-mapping LOG`: the meaning of the keys of a log without a known format.

use std::{path::Path, process::ExitCode, sync::Arc};

use pulsetrain_formats::{LogFormat, format_by_name, format_names};
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
    let loaded = load_mapping(file);
    let extended = loaded.as_ref().ok().and_then(|mapping| mapping.extended());
    let is_usable = |format: &LogFormat| extended.map_or(format.takes_mapping(), |name| name == format.name);
    if format.0.is_some_and(|format| !is_usable(format)) {
        return Err(Failure::usage(format!(
            "--mapping is for the formats {}, or for the format that it extends: name one of them with --format, or leave --format out",
            mapped()
        )));
    }
    let mapping = loaded.map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::usage(lines.join("\n"))
    })?;
    let named = || format_by_name(mapping.format_name()?);
    if let Some(extended) = mapping.extended()
        && named().is_none()
    {
        return Err(Failure::usage(format!(
            "{}: there is no format {extended:?} to extend; use one of {}",
            file.display(),
            format_names()
        )));
    }
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
