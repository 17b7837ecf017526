//! `--mapping FILE`: what the keys of a log of no known format mean.

use std::{path::Path, sync::Arc};

use pulsetrain_sources::logs::Mapping;

use crate::{
    cli::FormatChoice,
    config::{load_mapping, mapped},
    failure::Failure,
};

/// The mapping of the command line; the default one where there is none.
///
/// # Errors
/// A format that takes no mapping, and everything that is wrong with the file, each with its place.
pub(crate) fn of(format: FormatChoice, file: Option<&Path>) -> Result<Arc<Mapping>, Failure> {
    let Some(file) = file else {
        return Ok(Arc::default());
    };
    if !format.0.is_some_and(|format| format.takes_mapping()) {
        return Err(Failure::usage(format!(
            "--mapping is for the formats {}: name one of them with --format",
            mapped()
        )));
    }
    load_mapping(file).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::usage(lines.join("\n"))
    })
}
