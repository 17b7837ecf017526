//! The compute side of the driver (KFD): the architecture of a GPU, and the processes that compute on it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::card::Card;
use crate::GpuProcess;

const NODES: &str = "class/kfd/kfd/topology/nodes";
pub(super) const PROCESSES: &str = "class/kfd/kfd/proc";
pub(super) const ABSENT: &str = "the kernel has no compute driver (KFD)";

/// A GPU as the compute driver lists it.
#[derive(Clone, Debug)]
pub(super) struct ComputeNode {
    /// The name of the GPU in the files of processes.
    gpu_id: String,
    /// `0000:0c:00.0`.
    pci_address: String,
    /// The target version, such as 90402 for `gfx942`.
    target_version: u64,
}

/// Returns the GPUs among the nodes of the topology; CPUs have the `gpu_id` 0.
pub(super) fn nodes(sysfs: &Path) -> Vec<ComputeNode> {
    let listed = fs::read_dir(sysfs.join(NODES)).into_iter().flatten().flatten();
    listed
        .filter_map(|entry| ComputeNode::read(&entry.path()))
        .collect()
}

impl ComputeNode {
    fn read(folder: &Path) -> Option<Self> {
        let gpu_id = fs::read_to_string(folder.join("gpu_id")).ok()?.trim().to_owned();
        if gpu_id == "0" {
            return None;
        }
        let properties = fs::read_to_string(folder.join("properties")).ok()?;
        let property = |name: &str| {
            let value = |line: &str| {
                line.strip_prefix(name)?
                    .strip_prefix(' ')?
                    .trim()
                    .parse::<u64>()
                    .ok()
            };
            properties.lines().find_map(value)
        };
        // Bus, device and function, as the kernel's PCI_DEVID and PCI_DEVFN pack them.
        let location = property("location_id")?;
        let pci_address = format!(
            "{:04x}:{:02x}:{:02x}.{:x}",
            property("domain").unwrap_or_default(),
            location >> 8 & 0xff,
            location >> 3 & 0x1f,
            location & 7
        );
        Some(Self {
            gpu_id,
            pci_address,
            target_version: property("gfx_target_version").unwrap_or_default(),
        })
    }

    pub(super) fn is_of(&self, card: &Card) -> bool {
        self.pci_address == card.pci_address
    }

    /// Returns the architecture as compilers name it: `gfx942`.
    pub(super) fn architecture(&self) -> Option<String> {
        let (major, minor, step) = (
            self.target_version / 10_000,
            self.target_version / 100 % 100,
            self.target_version % 100,
        );
        (major > 0).then(|| format!("gfx{major}{minor:x}{step:x}"))
    }

    /// Returns the processes that compute on the GPU, in the PID namespace of the host, with their memory.
    pub(super) fn processes(&self, sysfs: &Path) -> io::Result<Vec<GpuProcess>> {
        let file = format!("vram_{}", self.gpu_id);
        let process = |folder: PathBuf| {
            let pid = folder.file_name()?.to_str()?.parse().ok()?;
            // A process that has ended in the meantime, or does not use this GPU.
            let memory = fs::read_to_string(folder.join(&file)).ok()?;
            Some(GpuProcess {
                pid,
                memory_bytes: memory.trim().parse().ok(),
                gpu_instance_id: None,
                compute_instance_id: None,
            })
        };
        let listed = fs::read_dir(sysfs.join(PROCESSES))?.flatten();
        let mut processes: Vec<GpuProcess> = listed.filter_map(|entry| process(entry.path())).collect();
        processes.sort_by_key(|process| process.pid);
        Ok(processes)
    }
}
