//! The fake driver's library: built once, copied for each driver, and without the symbols that an older one lacks.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use memchr::memmem;
use serde_json::Value;

/// Copies the library, so that nobody who looks for one of the `missing` symbols finds it.
///
/// A library cannot hide its own symbols, so the copy's table of names has other names in their places.
pub(super) fn copy(to: &Path, missing: &[String]) {
    let mut library = fs::read(built()).expect("the fake driver can be read");
    for symbol in missing {
        strike_out(&mut library, symbol);
    }
    fs::write(to, library).expect("the fake driver can be copied");
}

/// The symbols that a scenario, or the one it stands on, says are missing.
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

/// Built by itself, as the binary under test is.
fn built() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(build)
}

fn build() -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--package", "pulsetrain-fake-nvml"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "the fake driver does not build");
    String::from_utf8(output.stdout)
        .expect("cargo writes UTF-8")
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "pulsetrain_fake_nvml")
        .find_map(|message| message["filenames"][0].as_str().map(PathBuf::from))
        .expect("cargo names the library it built")
}
