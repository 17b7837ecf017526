//! The fake driver's library: built once, copied for each driver, without the symbols that an older driver lacks.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use memchr::memmem;
use serde_json::Value;

use crate::cargo_build::cargo_build;

/// Copies the library so that a lookup of the `missing` symbols fails.
///
/// A library cannot hide its own symbols, so the copy has other names in its symbol table.
pub(super) fn copy(to: &Path, missing: &[String]) {
    let mut library = fs::read(built()).expect("the fake driver can be read");
    for symbol in missing {
        strike_out(&mut library, symbol);
    }
    fs::write(to, library).expect("the fake driver can be copied");
}

/// Returns the symbols that a scenario, or a scenario that it extends, declares missing.
pub(super) fn missing_symbols(scenario: &Path) -> Vec<String> {
    let text = fs::read_to_string(scenario).expect("a scenario can be read");
    let scenario_itself: Value = serde_saphyr::from_str(&text).expect("a scenario is YAML");
    if let Some(missing) = scenario_itself["missing_symbols"].as_array() {
        return missing
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
    }
    match scenario_itself["extends"].as_str() {
        Some(below) => missing_symbols(&scenario.with_file_name("").join(below)),
        None => Vec::new(),
    }
}

fn strike_out(library: &mut [u8], symbol: &str) {
    let entry = [b"\0", symbol.as_bytes(), b"\0"].concat();
    let places: Vec<_> = memmem::find_iter(library, &entry).collect();
    for place in &places {
        library[place + 1] = b'X';
    }
    assert!(
        !places.is_empty(),
        "the fake driver has no symbol {symbol} that could be missing"
    );
}

/// Returns the library, which the first call builds.
fn built() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        cargo_build(&["--package", "pulsetrain-fake-nvml"], |message| {
            let is_library = message["target"]["name"] == "pulsetrain_fake_nvml";
            message["filenames"][0].as_str().filter(|_| is_library)
        })
    })
}
