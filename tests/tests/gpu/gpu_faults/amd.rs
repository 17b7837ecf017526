//! The agent on a machine with AMD GPUs: the page that Prometheus reads, and the findings of the doctor.

use pulsetrain_semconv::metric;
use pulsetrain_tests::{
    AmdModel, FakeSysfs, Folder, Judge, Process, command, free_port, promtool_check, wait_until,
};

use crate::gpu_faults::page::{fetch, samples};

#[test]
fn the_page_of_eight_mi300x_is_valid_and_has_every_gpu() {
    let Some(prometheus) = Judge::Prometheus.require_or_skip() else {
        return;
    };
    let (machine, folder, page) = (FakeSysfs::with(AmdModel::Mi300x, 8), Folder::new(), free_port());
    let gpu = format!(
        "gpu: {{library: {}, sysfs: {}, interval: 250ms}}\n",
        folder.path("libnvidia-ml.so.1").display(),
        machine.root().display()
    );
    let state = folder.path("state");
    let sinks = format!("sinks: {{page: {{prometheus: {{listen: 127.0.0.1:{page}}}}}}}\n");
    let config = folder.file(
        "agent.yaml",
        format!("state_folder: {}\n{gpu}{sinks}", state.display()),
    );

    let mut agent = Process::start("pulsetrain agent", command(["agent", "--config"]).arg(&config));
    agent.wait_until_ready(|| std::net::TcpStream::connect(("127.0.0.1", page)).is_ok());
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
    let (status, log) = agent.stop_with_log();
    assert!(status.success(), "{log}");
    assert!(log.contains("observing 8 GPUs (AMD Instinct MI300X OAM"), "{log}");

    let findings = command(["doctor", "--config"])
        .arg(&config)
        .output()
        .expect("it runs");
    let findings = String::from_utf8_lossy(&findings.stdout).into_owned();
    assert!(findings.contains("8 GPUs; driver 6.10.5"), "{findings}");
    assert!(
        findings.contains("AMD Instinct MI300X OAM GPU-21b6d61638a86f8c"),
        "{findings}"
    );
}
