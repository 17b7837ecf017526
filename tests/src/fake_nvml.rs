//! A driver without a GPU: a copy of the fake NVML with a scenario and a clock that the test controls.
//!
//! Every copy is a separate library, so that tests that run at the same time have separate drivers. A program under test gets
//! [`FakeNvml::library`] as its configured path, or finds `libnvidia-ml.so.1` in [`FakeNvml::folder`].

mod clock;
mod layers;
mod library;

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use self::clock::Clock;

/// One driver with a scenario.
#[derive(Debug)]
pub struct FakeNvml {
    folder: TempDir,
    clock: Clock,
}

/// A call of the driver, recorded if its scenario has `record_calls: true`.
#[derive(Clone, Debug, PartialEq)]
pub struct NvmlCall {
    /// The second of the scenario.
    pub second: f64,
    /// The function's name.
    pub name: String,
    /// The GPU, by its index in the scenario; `None` for a call without a GPU.
    pub gpu: Option<usize>,
}

impl FakeNvml {
    /// Creates a driver with the scenario of that name in `fake-nvml/scenarios`, with its clock stopped at second zero.
    pub fn start(scenario: &str) -> Self {
        Self::with(scenario, "")
    }

    /// As [`start`](Self::start), with changes to the scenario: lines of YAML, as in a scenario.
    pub fn with(scenario: &str, changes: &str) -> Self {
        let folder = TempDir::new().expect("a folder for the driver can be made");
        let below = scenario_file(scenario);
        let complete = format!("extends: {below:?}\n{changes}\n");
        let path = folder.path().join("scenario.yaml");
        fs::write(&path, complete).expect("the scenario can be written");
        library::copy(
            &folder.path().join("libnvidia-ml.so.1"),
            &library::missing_symbols(&path),
        );
        // The NVML wrapper opens the name without a version, the loader of other programs the name with it.
        std::os::unix::fs::symlink("libnvidia-ml.so.1", folder.path().join("libnvidia-ml.so"))
            .expect("a link can be made");
        let clock = Clock::create(&folder.path().join("clock"));
        Self { folder, clock }
    }

    /// Returns the path of the library.
    pub fn library(&self) -> PathBuf {
        self.folder.path().join("libnvidia-ml.so.1")
    }

    /// Returns the folder of the library, for `LD_LIBRARY_PATH` of a program under test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the input files of the programs in `fake-nvml/tools`: the scenario as JSON, and the device that clients hold
    /// open.
    pub fn equip_tools(&self) {
        let folder = self.folder.path();
        let layers = serde_json::to_vec(&layers::read(&folder.join("scenario.yaml"))).expect("JSON");
        fs::write(folder.join("layers.json"), layers).expect("the scenario can be written");
        fs::write(folder.join("device"), "").expect("a file can be written");
    }

    /// Sets the clock to a second and stops it.
    pub fn at(&self, second: f64) {
        self.clock.rest_at(second);
    }

    /// Sets the clock to a second and lets it advance in real time; timestamps are then in real time.
    pub fn run_from(&self, second: f64) {
        self.clock.run_from(second);
    }

    /// Returns the timestamp of a second, in Unix nanoseconds.
    pub fn unix_nanos(&self, second: f64) -> u64 {
        self.clock.unix_nanos(second)
    }

    /// Returns the recorded calls so far.
    pub fn calls(&self) -> Vec<NvmlCall> {
        let lines = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        let complete = lines.rfind('\n').map_or("", |end| &lines[..end]);
        complete.lines().map(call).collect()
    }
}

impl Drop for FakeNvml {
    /// Releases every call that hangs; calls after this one see the end of the scenario.
    fn drop(&mut self) {
        self.clock.rest_at(f64::INFINITY);
    }
}

fn scenario_file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fake-nvml/scenarios");
    let path = folder.join(name).with_extension("yaml");
    assert!(path.exists(), "{} is not there", path.display());
    path
}

fn call(line: &str) -> NvmlCall {
    let mut words = line.split(' ');
    let second = words.next().and_then(|word| word.parse().ok());
    NvmlCall {
        second: second.expect("a recorded call begins with its second"),
        name: words.next().expect("a recorded call has a name").to_owned(),
        gpu: words
            .next()
            .map(|word| word.parse().expect("a recorded call ends with its GPU")),
    }
}
