//! A driver without a GPU: a copy of the fake NVML with a scenario and a clock that the test moves.
//!
//! Every copy is a library of its own, so that tests that run at the same time have drivers of their own. A program under test
//! gets [`FakeNvml::library`] where it asks for a path, or finds `libnvidia-ml.so.1` in [`FakeNvml::folder`].

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

/// A call that the driver was asked, where its scenario has `record_calls: true`.
#[derive(Clone, Debug, PartialEq)]
pub struct NvmlCall {
    /// The second of the scenario.
    pub second: f64,
    /// The function's name.
    pub name: String,
    /// The GPU, by its place in the scenario; none for a call about no GPU.
    pub gpu: Option<usize>,
}

impl FakeNvml {
    /// A driver with the scenario of that name in `fake-nvml/scenarios`, at rest at its second zero.
    pub fn start(scenario: &str) -> Self {
        Self::with(scenario, "")
    }

    /// The same with these changes on top: lines of YAML, as in a scenario.
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
        // The wrapper looks for the name without a version, the loader of other programs for the one with it.
        std::os::unix::fs::symlink("libnvidia-ml.so.1", folder.path().join("libnvidia-ml.so"))
            .expect("a link can be made");
        let clock = Clock::create(&folder.path().join("clock"));
        Self { folder, clock }
    }

    /// The library to load.
    pub fn library(&self) -> PathBuf {
        self.folder.path().join("libnvidia-ml.so.1")
    }

    /// The folder to look for libraries in: `LD_LIBRARY_PATH` of a program under test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes what the programs of `fake-nvml/tools` need: the scenario as JSON, and the device that clients hold.
    pub fn equip_tools(&self) {
        let folder = self.folder.path();
        let layers = serde_json::to_vec(&layers::read(&folder.join("scenario.yaml"))).expect("JSON");
        fs::write(folder.join("layers.json"), layers).expect("the scenario can be written");
        fs::write(folder.join("device"), "").expect("a file can be written");
    }

    /// Lets the scenario rest at a second.
    pub fn at(&self, second: f64) {
        self.clock.rest_at(second);
    }

    /// Lets the scenario go on from a second as real time does; what is stamped is stamped with the real time.
    pub fn run_from(&self, second: f64) {
        self.clock.run_from(second);
    }

    /// The nanoseconds since 1970 that a value of that second is stamped with.
    pub fn unix_nanos(&self, second: f64) -> u64 {
        self.clock.unix_nanos(second)
    }

    /// What the driver has been asked so far.
    pub fn calls(&self) -> Vec<NvmlCall> {
        let lines = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        let complete = lines.rfind('\n').map_or("", |end| &lines[..end]);
        complete.lines().map(call).collect()
    }
}

impl Drop for FakeNvml {
    /// Lets go of every call that hangs; whoever still asks gets what is at the end of all time.
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
