//! The sources of metrics that the mappings of trainers name: `exporter/mapping/mappings/<trainer>.yaml`.
//!
//! Only rows with a metric matter here; `exporter/mapping` reads the complete grammar.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;

use crate::{
    error::Error,
    registry::{Registry, parse, yaml_files},
};

/// The part of a mapping file that the registry uses.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MappingRows {
    framework: Option<String>,
    values: Vec<Row>,
    records: BTreeMap<String, Vec<Row>>,
    scalars: Scalars,
}

/// Tags of TensorBoard and wandb.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Scalars {
    values: Vec<Row>,
}

/// A row: a key or a pattern, and the metric that its values become.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row {
    key: Option<String>,
    pattern: Option<String>,
    metric: Option<String>,
}

/// The framework of the mapping of common keys, which belong to no trainer.
const CUSTOM: &str = "custom";

impl Registry {
    /// Adds the keys of the mappings in `folder` to the sources of their metrics.
    ///
    /// # Errors
    /// A file that cannot be read or is not a mapping; a metric whose own annotation names a trainer that has rows for it.
    pub fn with_trainers(mut self, folder: &Path) -> Result<Self, Error> {
        for path in yaml_files(folder)? {
            let text = fs::read_to_string(&path).map_err(|source| Error::Read {
                path: path.clone(),
                source,
            })?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let mapping: MappingRows = parse(&name, &text)?;
            let Some(framework) = mapping.framework.as_deref().filter(|name| *name != CUSTOM) else {
                continue;
            };
            self.add_sources(&name, framework, mapping.keys())?;
        }
        Ok(self)
    }

    fn add_sources(
        &mut self,
        file: &str,
        framework: &str,
        mut keys: BTreeMap<String, Vec<String>>,
    ) -> Result<(), Error> {
        for entry in &mut self.metrics {
            let metric = &entry.def.name.value;
            let Some(keys) = keys.remove(metric) else { continue };
            let sources = &mut entry.def.annotations.pulsetrain.sources;
            if sources.insert(framework.to_owned(), keys).is_some() {
                return Err(Error::SourceTwice {
                    metric: metric.clone(),
                    framework: framework.to_owned(),
                    file: file.to_owned(),
                });
            }
        }
        Ok(())
    }
}

impl MappingRows {
    /// Returns the keys by metric, in the order of the file.
    fn keys(&self) -> BTreeMap<String, Vec<String>> {
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut add = |kind: Option<&str>, row: &Row| {
            let (Some(metric), Some(key)) = (&row.metric, row.text()) else {
                return;
            };
            let key = kind.map_or_else(|| key.clone(), |kind| format!("{kind}: {key}"));
            let known = keys.entry(metric.clone()).or_default();
            if !known.contains(&key) {
                known.push(key);
            }
        };
        for (kind, rows) in &self.records {
            let kind = (self.records.len() > 1).then_some(kind.as_str());
            rows.iter().for_each(|row| add(kind, row));
        }
        let others = self.values.iter().chain(&self.scalars.values);
        others.for_each(|row| add(None, row));
        keys
    }
}

impl Row {
    /// Returns the key as the docs show it: `{attribute}` for a part that varies.
    fn text(&self) -> Option<String> {
        let text = self.key.clone().or_else(|| self.pattern.as_deref().map(form))?;
        // A dollar sign is doubled in a mapping.
        Some(text.replace("$$", "$"))
    }
}

/// Returns a regular expression with `{name}` in place of each named group.
fn form(pattern: &str) -> String {
    let (mut text, mut rest) = (String::new(), pattern);
    while let Some((before, group)) = rest.split_once("(?<") {
        let Some((name, inner)) = group.split_once('>') else {
            break;
        };
        let mut depth = 1_usize;
        let end = inner.char_indices().find_map(|(index, letter)| {
            depth += usize::from(letter == '(');
            depth -= usize::from(letter == ')');
            (depth == 0).then_some(index + 1)
        });
        text.push_str(before);
        text.push_str(&format!("{{{name}}}"));
        rest = &inner[end.unwrap_or(inner.len())..];
    }
    text.push_str(rest);
    text.replace('\\', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_keys_include_record_kinds_and_pattern_attributes() {
        let yaml = "framework: x
records: {step: [{key: loss, metric: train.loss}], eval: [{key: loss, metric: eval.loss}]}
values: [{pattern: 'score/(?<rl.statistic>mean|max)@\\d+', metric: rl.score}, {key: other, keep: true}]
";
        let mapping: MappingRows = parse("x.yaml", yaml).unwrap();
        let keys = mapping.keys();
        assert_eq!(keys["train.loss"], ["step: loss"]);
        assert_eq!(keys["eval.loss"], ["eval: loss"]);
        assert_eq!(keys["rl.score"], ["score/{rl.statistic}@d+"]);
        assert_eq!(keys.len(), 3);
    }
}
