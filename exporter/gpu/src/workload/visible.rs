//! The GPUs that are visible to a process: `CUDA_VISIBLE_DEVICES`.
//!
//! The grammar is that of the CUDA programming guide, "Environment Variables": numbers or prefixes of UUIDs, in the order in
//! which CUDA numbers the GPUs; entries after an invalid one are not visible.

use crate::{Gpu, MigInstance};

/// The GPUs of a process, in CUDA's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VisibleDevices {
    /// All GPUs of the machine.
    #[default]
    All,
    /// These GPUs.
    Only(Vec<VisibleDevice>),
}

/// One GPU or instance in the format of the variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisibleDevice {
    /// By number, in the order of `CUDA_DEVICE_ORDER`.
    Index(u32),
    /// By a UUID or a prefix of it: `GPU-8f6a...`, `MIG-...`.
    Uuid(String),
    /// By GPU and instances, as drivers before R470 wrote it: `MIG-GPU-<uuid>/<instance>/<compute instance>`.
    Instance {
        /// The UUID of the GPU.
        gpu: String,
        /// The GPU instance.
        gpu_instance_id: u32,
        /// The compute instance.
        compute_instance_id: u32,
    },
}

/// The order of CUDA's GPU numbers, compared with NVML's. NVML numbers GPUs in the order of the bus, CUDA only if it is
/// configured so. Otherwise CUDA puts the fastest GPU first (CUDA programming guide, `CUDA_DEVICE_ORDER`), which makes no
/// difference among GPUs of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// CUDA's numbers equal NVML's.
    AsNvml,
    /// The GPU of a CUDA number is not known.
    Unknown,
}

impl VisibleDevices {
    /// Parses the value of the variable.
    pub fn parse(value: Option<&str>) -> Self {
        match value {
            None => Self::All,
            Some(value) => Self::Only(value.split(',').map_while(VisibleDevice::parse).collect()),
        }
    }

    /// Returns whether a GPU, or an instance of it, is visible.
    pub(super) fn has(&self, gpu: &Gpu, instance: Option<&MigInstance>, numbers: Numbers) -> bool {
        *self == Self::All || self.place(gpu, instance, numbers).is_some()
    }

    /// Returns whether the result depends on the order of CUDA's numbers.
    pub fn counts(&self) -> bool {
        let is_number = |device: &VisibleDevice| matches!(device, VisibleDevice::Index(_));
        match self {
            Self::All => true,
            Self::Only(devices) => devices.iter().any(is_number),
        }
    }

    /// Returns CUDA's number of a GPU in the process.
    pub(super) fn place(&self, gpu: &Gpu, instance: Option<&MigInstance>, numbers: Numbers) -> Option<usize> {
        let known = numbers == Numbers::AsNvml;
        match self {
            // A process on split GPUs sees one instance.
            Self::All => (instance.is_none() && known).then_some(gpu.index as usize),
            Self::Only(devices) => devices.iter().position(|device| match device {
                VisibleDevice::Index(_) => known && device.is(gpu, instance),
                _ => device.is(gpu, instance),
            }),
        }
    }
}

impl VisibleDevice {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim();
        if let Ok(index) = entry.parse() {
            return Some(Self::Index(index));
        }
        if let Some(old) = entry.strip_prefix("MIG-GPU-") {
            let mut parts = old.split('/');
            return Some(Self::Instance {
                gpu: format!("GPU-{}", parts.next()?),
                gpu_instance_id: parts.next()?.parse().ok()?,
                compute_instance_id: parts.next()?.parse().ok()?,
            });
        }
        let is_uuid = entry.starts_with("GPU-") || entry.starts_with("MIG-");
        is_uuid.then(|| Self::Uuid(entry.to_owned()))
    }

    fn is(&self, gpu: &Gpu, instance: Option<&MigInstance>) -> bool {
        match self {
            Self::Index(index) => instance.is_none() && *index == gpu.index,
            Self::Uuid(uuid) => {
                let parent = instance.map_or(&gpu.uuid, |instance| &instance.uuid);
                parent.starts_with(uuid.as_str())
            }
            Self::Instance {
                gpu: uuid,
                gpu_instance_id,
                compute_instance_id,
            } => instance.is_some_and(|instance| {
                gpu.uuid.starts_with(uuid.as_str())
                    && instance.gpu_instance_id == *gpu_instance_id
                    && instance.compute_instance_id == *compute_instance_id
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(index: u32, uuid: &str) -> Gpu {
        Gpu {
            index,
            uuid: uuid.to_owned(),
            ..Gpu::default()
        }
    }

    #[test]
    fn indices_and_uuid_prefixes_select_gpus_in_cuda_order() {
        let visible = VisibleDevices::parse(Some("3, GPU-8f6a,0"));
        assert_eq!(visible.place(&gpu(3, "GPU-0000"), None, Numbers::AsNvml), Some(0));
        assert_eq!(
            visible.place(&gpu(1, "GPU-8f6a2b41"), None, Numbers::AsNvml),
            Some(1)
        );
        assert_eq!(visible.place(&gpu(0, "GPU-1111"), None, Numbers::AsNvml), Some(2));
        assert_eq!(visible.place(&gpu(2, "GPU-2222"), None, Numbers::AsNvml), None);
    }

    #[test]
    fn entries_after_an_invalid_cuda_device_are_ignored() {
        let visible = VisibleDevices::parse(Some("1,-1,0"));
        assert_eq!(visible, VisibleDevices::Only(vec![VisibleDevice::Index(1)]));
        assert_eq!(VisibleDevices::parse(Some("")), VisibleDevices::Only(Vec::new()));
        assert!(VisibleDevices::parse(None).has(&gpu(7, "GPU-7"), None, Numbers::AsNvml));
        assert!(!VisibleDevices::parse(Some("NoDevFiles")).has(&gpu(0, "GPU-0"), None, Numbers::AsNvml));
    }

    #[test]
    fn mig_instances_are_selected_by_uuid_or_by_gpu_and_instance_id() {
        let instance = MigInstance {
            uuid: "MIG-aaaa-bbbb".to_owned(),
            gpu_instance_id: 7,
            compute_instance_id: 1,
            ..MigInstance::default()
        };
        let gpu = gpu(0, "GPU-1234-5678");
        for value in ["MIG-aaaa-bbbb", "MIG-GPU-1234-5678/7/1"] {
            let visible = VisibleDevices::parse(Some(value));
            assert!(visible.has(&gpu, Some(&instance), Numbers::Unknown), "{value}");
            assert!(!visible.has(&gpu, None, Numbers::AsNvml), "{value}");
        }
        assert!(!VisibleDevices::parse(Some("MIG-GPU-1234-5678/7/2")).has(
            &gpu,
            Some(&instance),
            Numbers::AsNvml
        ));
    }
}
