//! The fake driver, built and installed, and what its calls take by themselves.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::threads::Cost;
use nvml_wrapper::{Nvml, enum_wrappers::device::TemperatureSensor};

/// Builds the fake driver and puts it into a folder, with the scenario of eight H100 beside it.
pub(crate) fn install(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
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
    let scenario = root.join("tests/fake-nvml/scenarios/h100x8.yaml");
    fs::copy(scenario, folder.join("scenario.yaml"))?;
    Ok(installed)
}

/// The share of a core that the fake itself takes at one pass a second: its mean call, times the calls of a pass of eight
/// GPUs. Most of it is the fields, each of which costs about what a call costs.
pub(crate) fn cost_of_calls(library: &Path) -> Result<f64, Box<dyn Error>> {
    const ROUNDS: u32 = 20_000;
    /// Calls and fields of a pass of one GPU, as `record_calls` of a scenario counts them.
    const ASKED_IN_A_PASS: f64 = 60.0;
    const GPUS: f64 = 8.0;
    let nvml = Nvml::builder().lib_path(library.as_os_str()).init()?;
    let device = nvml.device_by_index(0)?;
    let before = Cost::now()?;
    for _ in 0..ROUNDS / 4 {
        device.utilization_rates()?;
        device.power_usage()?;
        device.temperature(TemperatureSensor::Gpu)?;
        device.total_energy_consumption()?;
    }
    let each = Cost::now()?.since(&before).total(1) / f64::from(ROUNDS);
    Ok(each * ASKED_IN_A_PASS * GPUS)
}
