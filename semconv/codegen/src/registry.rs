//! The registry in memory: every YAML file of a folder, merged and sorted by name.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::grammar::{AttributeDef, EntityDef, EventDef, File, GroupDef, Manifest, MetricDef, SpanDef};

/// The file that describes the registry to Weaver; it defines nothing.
const MANIFEST: &str = "manifest.yaml";

/// Everything that the registry defines, each kind sorted by name.
#[derive(Debug, Default)]
pub struct Registry {
    /// The address of this version of the vocabulary, from the manifest.
    pub(crate) schema_url: Option<String>,
    pub(crate) attributes: Vec<Entry<AttributeDef>>,
    pub(crate) groups: Vec<Entry<GroupDef>>,
    pub(crate) entities: Vec<Entry<EntityDef>>,
    pub(crate) events: Vec<Entry<EventDef>>,
    pub(crate) metrics: Vec<Entry<MetricDef>>,
    pub(crate) spans: Vec<Entry<SpanDef>>,
}

/// A definition and its file.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    /// The file's stem: `train` for `train.yaml`.
    pub(crate) domain: String,
    pub(crate) def: T,
}

impl Registry {
    /// Reads every `*.yaml` of `folder`.
    ///
    /// # Errors
    /// A file that cannot be read, or does not follow the grammar; the error has the line.
    pub fn load(folder: &Path) -> Result<Self, Error> {
        let mut registry = Self {
            schema_url: schema_url(&folder.join(MANIFEST))?,
            ..Self::default()
        };
        for path in yaml_files(folder)? {
            let text = fs::read_to_string(&path).map_err(|source| Error::Read {
                path: path.clone(),
                source,
            })?;
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            registry.add(name.trim_end_matches(".yaml"), parse(&name, &text)?);
        }
        registry.sort();
        Ok(registry)
    }

    fn add(&mut self, domain: &str, file: File) {
        extend(&mut self.attributes, domain, file.attributes);
        extend(&mut self.groups, domain, file.attribute_groups);
        extend(&mut self.entities, domain, file.entities);
        extend(&mut self.events, domain, file.events);
        extend(&mut self.metrics, domain, file.metrics);
        extend(&mut self.spans, domain, file.spans);
    }

    fn sort(&mut self) {
        self.attributes
            .sort_by(|a, b| a.def.key.value.cmp(&b.def.key.value));
        self.groups.sort_by(|a, b| a.def.id.value.cmp(&b.def.id.value));
        self.entities
            .sort_by(|a, b| a.def.name.value.cmp(&b.def.name.value));
        self.events
            .sort_by(|a, b| a.def.name.value.cmp(&b.def.name.value));
        self.metrics
            .sort_by(|a, b| a.def.name.value.cmp(&b.def.name.value));
        self.spans.sort_by(|a, b| a.def.name.value.cmp(&b.def.name.value));
    }

    pub(crate) fn attribute(&self, key: &str) -> Option<&AttributeDef> {
        self.attributes
            .iter()
            .map(|entry| &entry.def)
            .find(|attribute| attribute.key.value == key)
    }

    pub(crate) fn group(&self, id: &str) -> Option<&GroupDef> {
        self.groups
            .iter()
            .map(|entry| &entry.def)
            .find(|group| group.id.value == id)
    }
}

/// Returns the schema URL of a manifest, or `None` if there is no manifest.
fn schema_url(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(parse::<Manifest>(MANIFEST, &text)?.schema_url)),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn extend<T>(entries: &mut Vec<Entry<T>>, domain: &str, defs: Vec<T>) {
    entries.extend(defs.into_iter().map(|def| Entry {
        domain: domain.to_owned(),
        def,
    }));
}

pub(crate) fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = |source: io::Error| Error::Read {
        path: folder.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(read)? {
        let path = entry.map_err(read)?.path();
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml");
        if is_yaml && path.file_name().is_some_and(|name| name != MANIFEST) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

pub(crate) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Error> {
    serde_saphyr::from_str(text).map_err(|error| {
        let error = error.without_snippet();
        let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
        let text = error.to_string();
        let place = format!(" at line {line}, column {column}");
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        Error::Parse {
            file: name.to_owned(),
            line,
            column,
            message,
        }
    })
}
