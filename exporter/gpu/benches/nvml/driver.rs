//! The fake driver: its build, its installation, and the CPU time of its own calls.
#![allow(unsafe_code, reason = "the fake driver is a C library")]

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use libloading::{Library, Symbol};

/// Builds the fake driver and puts it into a folder, with a scenario of `tests/fake-nvml/scenarios`.
pub(crate) fn install(folder: &Path, scenario: &str) -> Result<PathBuf, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--package", "pulsetrain-fake-nvml"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(&root)
        .stderr(Stdio::inherit())
        .output()?;
    let messages = String::from_utf8(built.stdout)?;
    let library = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "pulsetrain_fake_nvml")
        .find_map(|message| message["filenames"][0].as_str().map(PathBuf::from))
        .ok_or("the fake driver does not build")?;
    let installed = folder.join("libnvidia-ml.so.1");
    fs::copy(library, &installed)?;
    let below = root
        .join("tests/fake-nvml/scenarios")
        .join(scenario)
        .canonicalize()?;
    fs::write(folder.join("scenario.yaml"), format!("extends: {below:?}\n"))?;
    Ok(installed)
}

/// The CPU time of the fake driver's calls, by its own count.
pub(crate) struct OwnWork(Library);

impl OwnWork {
    /// Starts the count of the fake driver.
    pub(crate) fn new(library: &Path) -> Result<Self, Box<dyn Error>> {
        // SAFETY: the library is ours, and the source has it loaded for as long as it watches.
        let own_work = Self(unsafe { Library::new(library) }?);
        own_work.nanos()?;
        Ok(own_work)
    }

    /// Returns the CPU time of all calls since the count was started, in nanoseconds.
    pub(crate) fn nanos(&self) -> Result<u64, Box<dyn Error>> {
        // SAFETY: the type is that of the function in `tests/fake-nvml/src/call/spent.rs`.
        let spent: Symbol<'_, extern "C" fn() -> u64> = unsafe { self.0.get(b"fakeNvmlSpentNanos\0") }?;
        Ok(spent())
    }
}
