//! Builds a package of the workspace as a user builds it: with its own features, without those that the tests enable.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

/// Runs `cargo build` with these arguments, and returns the first file of the target that `select` finds in cargo's messages.
pub(crate) fn cargo_build(arguments: &[&str], select: fn(&Value) -> Option<&str>) -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .arg("build")
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        // `tests/run --timings` sets this variable for the test programs; it would cause a rebuild of the dependencies.
        .env_remove("RUSTC_BOOTSTRAP")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "cargo build {arguments:?} fails");
    String::from_utf8(output.stdout)
        .expect("cargo writes UTF-8")
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| select(&message).map(PathBuf::from))
        .expect("cargo names the file that it built")
}
