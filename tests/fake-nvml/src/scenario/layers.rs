//! Layered scenarios: `extends` names the base file, and the file patches it.
//!
//! A patch is a JSON merge patch (RFC 7396): maps are merged, everything else is replaced, and null removes a key. A function
//! of time replaces one of another shape. The same kind of patch applies to a single GPU. Inside a GPU's readings, a name
//! refers to the reading of that name.

use std::{fs, path::Path};

use serde_json::{Map, Value};

/// The maximum depth of `extends`; a deeper chain is assumed to be a cycle.
const DEEPEST: usize = 8;
/// The functions of time that are written as a map with one key.
const SHAPES: [&str; 4] = ["ramp", "sine", "steps", "counter"];

/// Reads a file, merged with the files that it extends.
pub(crate) fn read(path: &Path, depth: usize) -> Result<Value, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if depth > DEEPEST {
        return Err(wrong(&"it extends a file that extends it"));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let mut value: Value = serde_saphyr::from_str(&text).map_err(|error| wrong(&error))?;
    let below = value
        .as_object_mut()
        .ok_or_else(|| wrong(&"a scenario is a map"))?
        .remove("extends");
    let Some(below) = below else {
        return Ok(value);
    };
    let below = below.as_str().ok_or_else(|| wrong(&"extends names a file"))?;
    let mut merged = read(&path.with_file_name("").join(below), depth + 1)?;
    patch(&mut merged, value);
    Ok(merged)
}

/// Returns the entry of one GPU: the common entry patched with its own, with its index filled in and names resolved.
pub(crate) fn gpu(all: &Value, own: Option<&Value>, place: usize) -> Result<Value, String> {
    let mut gpu = all.clone();
    if let Some(own) = own {
        patch(&mut gpu, own.clone());
    }
    without_nulls(&mut gpu);
    write_place(&mut gpu, place);
    let mut holders = vec![&mut gpu];
    while let Some(holder) = holders.pop() {
        let Some(map) = holder.as_object_mut() else {
            continue;
        };
        if let Some(readings) = map.get_mut("readings").and_then(Value::as_object_mut) {
            resolve(readings)?;
        }
        holders.extend(
            map.get_mut("mig")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten(),
        );
    }
    Ok(gpu)
}

/// Merges a patch. A removed key stays as a null, so that the patch of a single GPU is complete when it is applied.
fn patch(target: &mut Value, patch_with: Value) {
    let Value::Object(changes) = patch_with else {
        *target = patch_with;
        return;
    };
    if !target.is_object() || is_another_shape(target, &changes) {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (name, change) in changes {
        patch(map.entry(name).or_insert(Value::Null), change);
    }
}

/// Returns whether both are functions of time with different shapes, which cannot be merged.
fn is_another_shape(target: &Value, changes: &Map<String, Value>) -> bool {
    let shape = |map: &Map<String, Value>| {
        SHAPES
            .into_iter()
            .find(|shape| map.len() == 1 && map.contains_key(*shape))
    };
    let (old, new) = (target.as_object().and_then(shape), shape(changes));
    old.is_some() && new.is_some() && old != new
}

/// Removes the nulls, except those in the patches of single GPUs, which are applied later.
pub(crate) fn without_nulls(value: &mut Value) {
    let Value::Object(map) = value else { return };
    map.retain(|_, value| !value.is_null());
    for (_, value) in map.iter_mut().filter(|(name, _)| *name != "each") {
        without_nulls(value);
    }
}

/// Replaces `{place}` in strings by the index of the GPU, and `{place:02x}` by the index in hexadecimal.
fn write_place(value: &mut Value, place: usize) {
    match value {
        Value::String(text) => {
            *text = text
                .replace("{place}", &place.to_string())
                .replace("{place:02x}", &format!("{place:02x}"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| write_place(item, place)),
        Value::Object(map) => map.values_mut().for_each(|item| write_place(item, place)),
        _ => {}
    }
}

/// Replaces the names of readings by those readings: `power.average_mw: power.instant_mw`, `rate: power.instant_mw`.
fn resolve(readings: &mut Map<String, Value>) -> Result<(), String> {
    for _ in 0..DEEPEST {
        let known = readings.clone();
        let mut left = false;
        for value in readings.values_mut() {
            left |= resolve_in(value, &known)?;
        }
        if !left {
            return Ok(());
        }
    }
    Err("readings name each other in a circle".to_owned())
}

fn resolve_in(value: &mut Value, known: &Map<String, Value>) -> Result<bool, String> {
    if let Some(name) = value.as_str() {
        let named = known.get(name).cloned();
        *value = named.ok_or_else(|| format!("there is no reading {name:?} to refer to"))?;
        return Ok(true);
    }
    match value
        .get_mut("counter")
        .and_then(|counter| counter.get_mut("rate"))
    {
        Some(rate) => resolve_in(rate, known),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn gpu_settings_override_the_settings_of_all_gpus() {
        let all =
            json!({"uuid": "GPU-{place:02x}", "readings": {"a": 1, "b": {"ramp": {"from": 0}}, "c": 3}});
        let own = json!({"readings": {"a": null, "b": {"ramp": {"to": 5}}, "c": 4}});
        assert_eq!(
            gpu(&all, Some(&own), 10).expect("a GPU"),
            json!({"uuid": "GPU-0a", "readings": {"b": {"ramp": {"from": 0, "to": 5}}, "c": 4}})
        );
    }

    #[test]
    fn null_in_a_gpu_patch_still_removes_keys_after_merging() {
        let mut file = json!({"each": {"0": {"x": 1}}, "gone": 1, "f": {"sine": {"mean": 1}}});
        patch(
            &mut file,
            json!({"each": {"0": {"a": null}}, "gone": null, "f": {"steps": [[0, 1]]}}),
        );
        without_nulls(&mut file);
        assert_eq!(
            file,
            json!({"each": {"0": {"x": 1, "a": null}}, "f": {"steps": [[0, 1]]}})
        );
        assert_eq!(
            gpu(&json!({"a": 5, "b": 6}), file["each"].get("0"), 0),
            Ok(json!({"b": 6, "x": 1}))
        );
    }

    #[test]
    fn reading_given_as_a_name_refers_to_that_reading() {
        let all = json!({"readings": {"power": 7, "same": "power", "energy": {"counter": {"rate": "same"}}}});
        assert_eq!(
            gpu(&all, None, 0).expect("a GPU")["readings"],
            json!({"power": 7, "same": 7, "energy": {"counter": {"rate": 7}}})
        );
        let circle = json!({"readings": {"a": "b", "b": "a"}});
        assert!(gpu(&circle, None, 0).is_err());
        assert!(gpu(&json!({"readings": {"a": "nowhere"}}), None, 0).is_err());
    }
}
