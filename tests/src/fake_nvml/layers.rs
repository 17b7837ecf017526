//! The files of a scenario as JSON, for programs that simulate it without the library: `tests/fake-nvml/tools`.

use std::{fs, path::Path};

use serde_json::Value;

/// Returns the scenario at `path` and the files that it extends, base first, unmerged.
pub(super) fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a scenario can be read");
    let mut layer: Value = serde_saphyr::from_str(&text).expect("a scenario is YAML");
    let below = layer.as_object_mut().and_then(|map| map.remove("extends"));
    let mut layers = below
        .as_ref()
        .and_then(Value::as_str)
        .map(|below| read(&path.with_file_name("").join(below)))
        .unwrap_or_default();
    layers.push(layer);
    layers
}
