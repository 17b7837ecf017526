//! OpenTelemetry's `hw.*` conventions, read from copies of their own files in `corpus/hw-conventions`.

use std::collections::{BTreeMap, BTreeSet};

use pulsetrain_tests::{corpus, otlp::list};
use serde_json::Value;

/// The upstream conventions.
pub(crate) struct Conventions {
    metrics: BTreeMap<String, Definition>,
    /// The values of an enumerated attribute; `None` if any value is allowed.
    attributes: BTreeMap<String, Option<BTreeSet<String>>>,
}

/// An upstream metric.
pub(crate) struct Definition {
    pub(crate) instrument: String,
    pub(crate) value_type: String,
    pub(crate) unit: String,
    /// The attributes, and whether each is required.
    pub(crate) attributes: BTreeMap<String, bool>,
}

impl Conventions {
    pub(crate) fn read() -> Self {
        let files = files();
        let groups: BTreeMap<&str, &Value> = entries(&files, "attribute_groups")
            .map(|group| (str_of(&group["id"]), group))
            .collect();
        let metrics = entries(&files, "metrics").map(|metric| {
            let attributes = attributes_of(metric, &groups);
            (str_of(&metric["name"]).to_owned(), definition(metric, attributes))
        });
        let attributes = entries(&files, "groups")
            .flat_map(|group| list(&group["attributes"]))
            .map(|attribute| (str_of(&attribute["id"]).to_owned(), members(attribute)));
        Self {
            metrics: metrics.collect(),
            attributes: attributes.collect(),
        }
    }

    /// Returns the names of all metrics.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        self.metrics.keys().map(String::as_str).collect()
    }

    /// Returns a metric by its name; panics if upstream has none of that name.
    pub(crate) fn metric(&self, name: &str) -> &Definition {
        let found = self.metrics.get(name);
        found.unwrap_or_else(|| panic!("{name}: no such metric upstream"))
    }

    /// Returns whether upstream has an attribute.
    pub(crate) fn has(&self, attribute: &str) -> bool {
        self.attributes.contains_key(attribute)
    }

    /// Returns whether upstream lists a value of an attribute, or lists no values of it.
    pub(crate) fn lists(&self, attribute: &str, value: &str) -> bool {
        match self.attributes.get(attribute) {
            Some(Some(values)) => values.contains(value),
            _ => true,
        }
    }
}

fn definition(metric: &Value, attributes: BTreeMap<String, bool>) -> Definition {
    let text = |value: &Value| str_of(value).to_owned();
    Definition {
        instrument: text(&metric["instrument"]),
        value_type: text(&metric["annotations"]["code_generation"]["metric_value_type"]),
        unit: text(&metric["unit"]),
        attributes,
    }
}

/// Returns the attributes of a metric or a group, with those of the groups that it refers to.
fn attributes_of(entry: &Value, groups: &BTreeMap<&str, &Value>) -> BTreeMap<String, bool> {
    let mut all = BTreeMap::new();
    for used in list(&entry["attributes"]) {
        match used["ref_group"].as_str() {
            Some(group) => all.extend(attributes_of(groups[group], groups)),
            None => {
                let is_required = used["requirement_level"] == "required";
                all.insert(str_of(&used["ref"]).to_owned(), is_required);
            }
        }
    }
    all
}

/// Returns the listed values of an attribute.
fn members(attribute: &Value) -> Option<BTreeSet<String>> {
    let members = attribute["type"]["members"].as_array()?;
    Some(
        members
            .iter()
            .map(|member| str_of(&member["value"]).to_owned())
            .collect(),
    )
}

fn files() -> Vec<Value> {
    let folder = std::fs::read_dir(corpus("hw-conventions")).expect("the conventions are there");
    let paths = folder.map(|entry| entry.expect("the folder can be read").path());
    paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("the file can be read");
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect()
}

fn entries<'a>(files: &'a [Value], of: &'a str) -> impl Iterator<Item = &'a Value> {
    files.iter().flat_map(move |file| list(&file[of]))
}

fn str_of(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("expected text, found {value}"))
}
