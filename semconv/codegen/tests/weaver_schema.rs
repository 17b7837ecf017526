//! The registry follows OpenTelemetry Weaver's own grammar; tested if its JSON schema is available.
//!
//! The schema is `schemas/semconv.schema.v2.json` of the Weaver project; `PULSETRAIN_WEAVER_SCHEMA` is its path.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde_json::Value;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema() -> Option<Value> {
    let default = workspace().join("../shared/judges/weaver/semconv.schema.v2.json");
    let given = env::var_os("PULSETRAIN_WEAVER_SCHEMA").map(PathBuf::from);
    let path = given.clone().unwrap_or(default);
    if given.is_none() && !path.exists() {
        return None;
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Some(serde_json::from_str(&text).expect("the schema is JSON"))
}

fn registry_files() -> Vec<(PathBuf, Value)> {
    let folder = workspace().join("semconv/registry");
    let paths = fs::read_dir(folder)
        .expect("the registry")
        .map(|entry| entry.expect("an entry").path());
    let files = paths.filter(|path| path.file_name().is_some_and(|name| name != "manifest.yaml"));
    files
        .map(|path| {
            let text = fs::read_to_string(&path).expect("readable");
            let value = serde_saphyr::from_str(&text).expect("YAML");
            (path, value)
        })
        .collect()
}

#[test]
fn every_file_is_valid_against_weavers_schema() {
    let Some(schema) = schema() else {
        println!("SKIPPED: weaver schema not found");
        return;
    };
    let validator = jsonschema::validator_for(&schema).expect("the schema is a schema");
    let files = registry_files();
    assert!(!files.is_empty());
    for (path, file) in files {
        let errors: Vec<String> = validator
            .iter_errors(&file)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}:\n{}", path.display(), errors.join("\n"));
    }
    let nameless = serde_json::json!({ "file_format": "definition/2", "metrics": [{ "unit": "s" }] });
    assert!(!validator.is_valid(&nameless), "the schema lets everything pass");
}
