//! `include:` adds further files with sources and sinks, such as a folder `conf.d` that several packages write to.

use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    fs, io,
    path::{Path, PathBuf},
};

use pulsetrain_pipeline::Problem;

use super::{
    Config, Fault, Location, Named, SinkConfig, SourceConfig, faults,
    read::{load_part, parse},
    section::section,
    spanned::in_file,
};

section! {
    /// A file that is included: sources and sinks.
    pub(crate) struct Included {
        /// As in the configuration.
        sources: Named<SourceConfig> = Named::default(),
        /// As in the configuration.
        sinks: Named<SinkConfig> = Named::default(),
    }
}

/// Adds the contents of the files that `config` includes. Relative paths are relative to the folder of the configuration.
///
/// # Errors
/// Returns the first fault, with the file and the place.
pub(super) fn add(
    config: &mut Config,
    file: &Path,
    variables: &HashMap<String, String>,
) -> Result<(), Fault> {
    let name = file.display().to_string();
    let mut is_default = config.sinks == super::sinks::default() && !config.sinks.is_given();
    for path in paths(config, file)? {
        let included = in_file(&path.display().to_string(), || {
            load_part::<Included>(&path, variables)
        })?;
        if is_default && !included.sinks.0.is_empty() {
            config.sinks = Named::default();
            is_default = false;
        }
        merge(
            &mut config.sources.0,
            included.sources.0,
            "sources",
            SourceConfig::location,
        )
        .and_then(|()| {
            merge(
                &mut config.sinks.0,
                included.sinks.0,
                "sinks",
                SinkConfig::location,
            )
        })
        .map_err(|(location, message)| Fault::at(&name, location, message))?;
    }
    Ok(())
}

/// Returns all faults of the included files, if the configuration itself can be read.
pub(super) fn all_faults(file: &Path, variables: &HashMap<String, String>) -> Vec<Fault> {
    let Ok(config) = load_part::<Config>(file, variables) else {
        return Vec::new();
    };
    let paths = paths(&config, file).unwrap_or_default();
    let faults = paths.iter().flat_map(|path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let name = path.display().to_string();
        faults::all_by(&text, |text| parse::<Included>(&name, text, variables).err())
    });
    faults.collect()
}

/// Returns the included files, in order. A folder contributes the files whose names end in `.yaml` or `.yml`, sorted by
/// name.
fn paths(config: &Config, file: &Path) -> Result<Vec<PathBuf>, Fault> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut paths = Vec::new();
    for included in &config.include {
        let path = folder.join(&included.value);
        let found = files(&path).map_err(|error| {
            let message = Problem::new(format!("{} cannot be read: {error}", path.display()))
                .with_remedy("check the path and its permissions");
            Fault::at(&file.display().to_string(), included.location, message)
        })?;
        paths.extend(found);
    }
    Ok(paths)
}

fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.metadata()?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<PathBuf> = entries.collect::<Result<_, _>>()?;
    files.retain(is_yaml);
    files.sort();
    Ok(files)
}

fn merge<T>(
    into: &mut BTreeMap<String, T>,
    from: BTreeMap<String, T>,
    key: &str,
    location: impl Fn(&T) -> Location,
) -> Result<(), (Location, Problem)> {
    for (name, added) in from {
        match into.entry(name) {
            Entry::Vacant(free) => {
                free.insert(added);
            }
            Entry::Occupied(taken) => {
                let name = taken.key();
                let message = Problem::new(format!("{key}.{name} is in another file too"))
                    .with_remedy("give one of them another name");
                return Err((location(&added), message));
            }
        }
    }
    Ok(())
}

impl Named<SinkConfig> {
    /// Returns whether a file sets the sinks.
    fn is_given(&self) -> bool {
        self.iter()
            .any(|(_, sink)| sink.location() != Location::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{check, load, load_with_faults};

    fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn names(config: &Config) -> Vec<&str> {
        let sources = config.sources.iter().map(|(name, _)| name);
        sources.chain(config.sinks.iter().map(|(name, _)| name)).collect()
    }

    #[test]
    fn sources_and_sinks_of_included_files_are_added() {
        let folder = written(&[
            (
                "agent.yaml",
                "include: [conf.d, more.yaml]\nsources: {a: {logs: {paths: [a.log]}}}\n",
            ),
            ("conf.d/2.yaml", "sinks:\n  file:\n    file: {path: x.jsonl}\n"),
            ("conf.d/1.yml", "sources: {b: {logs: {paths: [b.log]}}}\n"),
            ("conf.d/note.txt", "no: yaml"),
            ("more.yaml", "sources: {c: {logs: {paths: [c.log]}}}\n"),
        ]);
        let config = load(&folder.path().join("agent.yaml"), &HashMap::new()).unwrap();
        assert_eq!(
            names(&config),
            ["a", "b", "c", "file"],
            "the default sink is replaced"
        );
        fs::remove_file(folder.path().join("conf.d/2.yaml")).unwrap();
        let config = load(&folder.path().join("agent.yaml"), &HashMap::new()).unwrap();
        assert_eq!(names(&config), ["a", "b", "c", "prometheus"]);
    }

    #[test]
    fn fault_in_an_included_file_names_file_and_location() {
        let main = "include: [more.yaml]\nsources: {a: {logs: {paths: [a.log]}}}\n";
        let cases = [
            (
                "sinks:\n  x:\n    otlq: {}\n",
                "more.yaml:3:5: unknown name \"otlq\"",
            ),
            ("limits: {}\n", "more.yaml:1:1: unknown key \"limits\""),
            (
                "sources:\n  a:\n    logs: {paths: [b.log]}\n",
                "more.yaml:3:11: sources.a is in another file too",
            ),
            (
                "sinks:\n  x:\n    file: {path: ${UNSET_HERE}}\n",
                "more.yaml:3:18: the variable UNSET_HERE is not set",
            ),
        ];
        for (text, expected) in cases {
            let folder = written(&[("agent.yaml", main), ("more.yaml", text)]);
            let faults = load_with_faults(&folder.path().join("agent.yaml"), &HashMap::new()).unwrap_err();
            let prefix = format!("{}/", folder.path().display());
            assert!(
                faults[0].to_string().starts_with(&format!("{prefix}{expected}")),
                "{faults:?}"
            );
        }
        let folder = written(&[("agent.yaml", "include: [gone.yaml]\n")]);
        let fault = load(&folder.path().join("agent.yaml"), &HashMap::new())
            .unwrap_err()
            .to_string();
        assert!(
            fault.contains("agent.yaml:1:11: ") && fault.contains("gone.yaml cannot be read"),
            "{fault}"
        );
    }

    #[test]
    fn the_check_names_the_included_file_too() {
        let folder = written(&[
            (
                "agent.yaml",
                "include: [more.yaml]\nsources: {a: {logs: {paths: [a.log]}}}\nhealth: {enabled: false}\n",
            ),
            ("more.yaml", "sinks:\n  x:\n    file: {path: x.txt}\n"),
        ]);
        let file = folder.path().join("agent.yaml");
        let config = load(&file, &HashMap::new()).unwrap();
        let faults = check(&file.display().to_string(), &config, &[]);
        let [fault] = &faults[..] else {
            panic!("{faults:?}")
        };
        assert!(fault.to_string().contains("more.yaml:3:18: sinks.x: "), "{fault}");
    }
}
