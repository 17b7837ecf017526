//! Checks the GPUs: whether the driver answers, which values each GPU lacks and why, and whether its processes are visible.

use std::{fs::File, io, path::Path, time::Duration};

use pulsetrain_gpu::{DriverState, Gpu, GpuConfig, GpuTrouble, Inventory, Reason};
use pulsetrain_pipeline::Problem;

use super::finding::{Findings, Subject};
use crate::config::Config;

/// The paths by which the driver of NVIDIA is visible in the file system.
const DEVICE: &str = "/dev/nvidiactl";
const MODULE: &str = "/proc/driver/nvidia/version";

/// Queries the driver once.
pub(super) async fn survey(config: Option<&Config>, timeout: Duration) -> Inventory {
    let config = config.map_or_else(GpuConfig::default, |config| config.gpu.settings());
    let looked = tokio::task::spawn_blocking(move || pulsetrain_gpu::survey(&config, timeout)).await;
    looked.unwrap_or_default()
}

/// Reports the findings of an inventory.
pub(super) fn check(inventory: &Inventory, config: Option<&Config>, findings: &mut Findings) {
    if config.is_some_and(|config| !config.gpu.enabled) {
        let what = "the configuration turns GPUs off";
        if let DriverState::Absent { .. } = inventory.driver {
            return findings.fine(Subject::Driver, what);
        }
        findings.warn(Subject::Driver, what, "set gpu.enabled to true where they are");
    }
    match &inventory.driver {
        DriverState::Present(driver) => {
            // If the CUDA library is not mounted, as in a container for utilities, the driver cannot return its version.
            let cuda = match driver.cuda_version {
                0 => String::new(),
                version => format!(", CUDA up to {}.{}", version / 1000, version % 1000 / 10),
            };
            let nvml = match driver.nvml_version.as_str() {
                "" => String::new(),
                version => format!(", NVML {version}"),
            };
            let (gpus, version) = (inventory.gpus.len(), &driver.version);
            findings.fine(Subject::Driver, format!("{gpus} GPUs; driver {version}{nvml}{cuda}"));
        }
        DriverState::Absent(problem) => absent(problem, findings),
        DriverState::Silent | DriverState::Unknown => findings.wrong(
            Subject::Driver,
            "it does not answer",
            "look for NVRM and Xid in dmesg; nvidia-smi hangs as well then. Drain the machine and reset the GPUs, or reboot",
        ),
    }
    inventory.gpus.iter().for_each(|gpu| check_gpu(gpu, findings));
    if !inventory.gpus.is_empty() {
        check_processes(inventory, findings);
    }
}

/// Reports a missing driver, which is not a fault on a machine without NVIDIA hardware.
fn absent(problem: &Problem, findings: &mut Findings) {
    let (why, advice) = (&problem.what, problem.remedy.clone().unwrap_or_default());
    let has_module = Path::new(MODULE).exists();
    match File::options().read(true).write(true).open(DEVICE) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => findings.wrong(
            Subject::Driver,
            format!("{why}; {DEVICE} may not be opened"),
            "give this user read and write access to /dev/nvidia* (often the group video), or to the container its devices",
        ),
        Ok(_) => findings.wrong(
            Subject::Driver,
            format!("{why}, but {DEVICE} is there"),
            advice,
        ),
        Err(_) if has_module => findings.wrong(
            Subject::Driver,
            format!("{why}; the kernel has the driver, but there is no {DEVICE}"),
            "run nvidia-modprobe, or give the container its devices (--gpus all, runtime class nvidia)",
        ),
        Err(_) => findings.warn(
            Subject::Driver,
            format!("{why}, and no sign of one: GPUs are not observed, everything else works"),
            advice,
        ),
    }
}

fn check_gpu(gpu: &Gpu, findings: &mut Findings) {
    let place = Subject::Gpu(gpu.index);
    match gpu.trouble {
        Some(trouble @ GpuTrouble::NotPermitted) => {
            return findings.warn(place, format!("{} {trouble}", gpu.uuid), trouble.advice());
        }
        Some(trouble) => {
            return findings.wrong(
                place,
                format!("{} {} {trouble}", gpu.name, gpu.uuid),
                trouble.advice(),
            );
        }
        None => {}
    }
    findings.fine(place.clone(), format!("{} {}{}", gpu.name, gpu.uuid, split(gpu)));
    for (reason, metrics) in gpu.missing() {
        let what = pulsetrain_gpu::list_missing(reason, &metrics);
        match advice(reason) {
            Some(advice) => findings.warn(place.clone(), format!("does not report {what}"), advice),
            None => findings.fine(place.clone(), format!("does not have {what}")),
        }
    }
}

/// Returns the MIG instances of a GPU as text, or an empty text without MIG.
fn split(gpu: &Gpu) -> String {
    match gpu.mig {
        Some(true) if gpu.instances.is_empty() => {
            ", MIG is on without an instance: nothing can run on it".to_owned()
        }
        Some(true) => {
            let profiles: Vec<_> = gpu
                .instances
                .iter()
                .map(|instance| instance.profile.as_str())
                .collect();
            format!(", MIG instances {}", profiles.join(", "))
        }
        Some(false) | None => String::new(),
    }
}

/// Returns the remedy for a missing value, or `None` if the GPU does not have it.
fn advice(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::NotSupported | Reason::TurnedOff => None,
        Reason::NoPermission => Some(
            "run as root or with CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
        ),
        Reason::MissingSymbol => Some("the driver is older than the call: update it to have this"),
        Reason::GpuLost => Some("reset the GPU"),
        Reason::NoData => Some("no action is needed: it appears as soon as the driver has data"),
        _ => Some("look for NVRM in dmesg; if the error persists, update the driver"),
    }
}

/// Checks whether the owners of the processes on the GPUs can be identified.
fn check_processes(inventory: &Inventory, findings: &mut Findings) {
    let pids = inventory.gpus.iter().flat_map(|gpu| &gpu.processes);
    let hidden = pids
        .map(|process| process.pid)
        .find(|pid| is_hidden(&format!("/proc/{pid}/environ")));
    if let Some(pid) = hidden {
        findings.warn(
            Subject::Driver,
            format!("process {pid} on a GPU is another user's: its run and rank cannot be read"),
            "run the agent as the same user, or with CAP_SYS_PTRACE",
        );
    }
}

fn is_hidden(path: &str) -> bool {
    File::open(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}
