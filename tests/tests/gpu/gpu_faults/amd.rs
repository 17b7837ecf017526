//! The agent on a machine with AMD GPUs: the page for Prometheus, and the findings of the doctor.

use pulsetrain_pipeline::clock;
use pulsetrain_semconv::metric;
use pulsetrain_tests::{
    AmdModel, FakeSysfs, Folder, GpuMetrics, Judge, Process, command, free_port, http::is_open,
    promtool_check, some_or_return, wait_until,
};

use crate::gpu_faults::{
    page::{fetch, samples},
    scenarios::{assert_registered, assert_table, table},
};

/// The name of the agent's configuration.
const CONFIG: &str = "agent.yaml";

/// The name of a golden table, the model, and the format of its `gpu_metrics`; the last one is that of the first drivers.
const MODELS: [(&str, AmdModel, Option<u8>); 3] = [
    ("mi250x", AmdModel::Mi250x, None),
    ("mi300x", AmdModel::Mi300x, Some(9)),
    ("mi300x_first_driver", AmdModel::Mi300x, None),
];

/// Starts an agent that reads a machine and serves a page, with additional keys of `gpu`. Its configuration is in the folder.
fn start(machine: &FakeSysfs, folder: &Folder, page: u16, keys: &str) -> Process {
    // Another agent may use the default health address.
    let health = free_port();
    let library = folder.path("libnvidia-ml.so.1");
    let config = format!(
        "state_folder: {}\nhealth: {{listen: 127.0.0.1:{health}}}\n\
         gpu: {{library: {}, sysfs: {}, {keys}}}\n\
         sinks: {{page: {{prometheus: {{listen: 127.0.0.1:{page}}}}}}}\n",
        folder.path("state").display(),
        library.display(),
        machine.root().display()
    );
    let config = folder.file(CONFIG, config);
    let mut agent = Process::start("pulsetrain agent", command(["agent", "--config"]).arg(config));
    agent.wait_until_ready(|| is_open(page));
    agent
}

#[test]
fn each_amd_gpu_model_has_its_expected_series() {
    for (name, model, revision) in MODELS {
        let (machine, folder, page) = (FakeSysfs::with(model, 1), Folder::new(), free_port());
        machine.set_process(0, 4711, 1 << 30);
        if let Some(revision) = revision {
            machine.set_metrics(0, &GpuMetrics::of_mi300x(revision));
        }
        let agent = start(&machine, &folder, page, "interval: 100ms, semconv: both");
        let (begin, mut text) = (clock::now(), String::new());
        // The energy is sent after its counter agrees with the power.
        wait_until(&format!("{name} has its energy"), || {
            let joules = 143.0 * begin.elapsed().as_secs_f64();
            match revision {
                Some(revision) => {
                    let table = GpuMetrics::of_mi300x(revision);
                    machine.set_counted(model, 0, table, 143.0, joules);
                }
                None => machine.set_energy(model, 0, 143.0, joules),
            }
            text = fetch(page);
            let samples = samples(&text);
            let mut names = samples.keys().map(|(name, _)| name.as_str());
            names.any(|name| name == "gpu_energy_joules_total")
        });
        assert_registered(name, &samples(&text));
        assert_table(name, &table(&samples(&text)));
        agent.stop_well();
    }
}

#[test]
fn the_page_of_eight_mi300x_is_valid_and_has_every_gpu() {
    let prometheus = some_or_return!(Judge::Prometheus.require_or_skip());
    let (machine, folder, page) = (FakeSysfs::with(AmdModel::Mi300x, 8), Folder::new(), free_port());
    let agent = start(&machine, &folder, page, "interval: 250ms");
    wait_until("the last GPU is on the page", || {
        let is_last = |line: &str| line.starts_with("gpu_pcie_width") && line.contains("gpu_index=\"7\"");
        fetch(page).lines().any(is_last)
    });
    let text = fetch(page);
    let verdict = promtool_check(&prometheus, text.as_bytes());
    assert!(verdict.status.success(), "{verdict:?}");
    for (name, labels) in samples(&text).into_keys() {
        let is_known = metric::ALL
            .iter()
            .any(|own| name.starts_with(own.prometheus_name));
        assert!(is_known || name == "target_info", "{name} is in no registry");
        if name == "gpu_power_watts" {
            assert!(labels["gpu_id"].starts_with("GPU-21b6d616"), "{labels:?}");
        }
    }
    let gpus = samples(&text)
        .into_keys()
        .filter(|(name, _)| name == "gpu_power_watts");
    assert_eq!(gpus.count(), 8);
    let log = agent.stop_well();
    assert!(log.contains("observing 8 GPUs (AMD Instinct MI300X OAM"), "{log}");

    let findings = command(["doctor", "--config"])
        .arg(folder.path(CONFIG))
        .output()
        .expect("it runs");
    let findings = String::from_utf8_lossy(&findings.stdout).into_owned();
    assert!(findings.contains("8 GPUs; driver 6.10.5"), "{findings}");
    assert!(
        findings.contains("AMD Instinct MI300X OAM GPU-21b6d61638a86f8c"),
        "{findings}"
    );
}
