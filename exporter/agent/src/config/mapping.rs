//! The mapping of the keys of a log without a known format: a part of the configuration, or a separate file for
//! `--mapping`.

use std::{path::Path, sync::Arc};

use pulsetrain_mapping::{Mapping, MappingFile};
use pulsetrain_pipeline::Problem;
use serde::{Deserialize, Deserializer};

use super::{
    Fault, Location,
    read::load_part,
    section::{Setting, Shown},
    spanned,
    variables::environment,
};

/// A mapping in a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct MappingSection {
    written: MappingFile,
    /// The included file that holds the mapping; empty for the configuration itself.
    file: &'static str,
}

impl MappingSection {
    /// Builds the mapping.
    ///
    /// # Errors
    /// Returns every fault, with its place.
    pub(crate) fn build(&self) -> Result<Arc<Mapping>, Vec<(Location, Problem)>> {
        self.written.build().map(Arc::new).map_err(|faults| {
            let spanned = faults.into_iter().map(|fault| {
                let location = Location {
                    file: self.file,
                    line: fault.line,
                    column: fault.column,
                };
                let problem = Problem {
                    remedy: fault.remedy.map(Into::into),
                    ..Problem::new(fault.message)
                };
                (location, problem)
            });
            spanned.collect()
        })
    }
}

impl PartialEq for MappingSection {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl<'de> Deserialize<'de> for MappingSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self {
            written: MappingFile::deserialize(deserializer)?,
            file: spanned::file(),
        })
    }
}

/// Loads a mapping from a separate file.
///
/// # Errors
/// Returns every fault, each with its place.
pub(crate) fn load_mapping(path: &Path) -> Result<Arc<Mapping>, Vec<Fault>> {
    let section: MappingSection = load_part(path, &environment()).map_err(|fault| vec![fault])?;
    let file = path.display().to_string();
    section.build().map_err(|faults| {
        let spanned = faults.into_iter();
        spanned
            .map(|(location, problem)| Fault::at(&file, location, problem))
            .collect()
    })
}

impl Setting for MappingSection {
    /// A mapping is specific to one log, so the example has none.
    fn shown(&self) -> Shown {
        Shown::Unset
    }
}
