//! The GPUs of the machine and their properties, as of the last pass.

use std::{collections::BTreeMap, fmt, sync::Arc};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::Problem;
use pulsetrain_semconv::Metric;

/// The driver and its GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// The driver.
    pub driver: DriverState,
    /// Its GPUs, by index; those that were lost stay until the driver no longer counts them.
    pub gpus: Vec<Gpu>,
    /// The time at which this state was read.
    pub time_unix_nanos: UnixNanos,
}

/// The state of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DriverState {
    /// The driver has not been queried yet.
    #[default]
    Unknown,
    /// No driver is installed or loaded.
    Absent(Problem),
    /// It answers.
    Present(Driver),
    /// It has not answered for too long.
    Silent,
}

/// The driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Its version: `580.82.07`.
    pub version: String,
    /// The version of NVML.
    pub nvml_version: String,
    /// The newest CUDA version that it supports: 1000 times the major number plus 10 times the minor; 0 if unknown.
    pub cuda_version: i32,
}

/// The vendor of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vendor {
    /// NVIDIA.
    #[default]
    Nvidia,
    /// AMD.
    Amd,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpu {
    /// The vendor.
    pub vendor: Vendor,
    /// The NVML index; CUDA may number the GPUs differently.
    pub index: u32,
    /// The UUID, `GPU-...`; if it is not known, the PCI address or `index:2`.
    pub uuid: String,
    /// The model.
    pub name: String,
    /// The PCI address: `00000000:19:00.0`.
    pub pci_bus_id: String,
    /// The minor number of `/dev/nvidiaN`.
    pub minor_number: Option<u32>,
    /// The serial number of the board.
    pub serial: Option<String>,
    /// The version of the VBIOS.
    pub vbios_version: Option<String>,
    /// The architecture: `Hopper`.
    pub architecture: Option<String>,
    /// The CUDA compute capability.
    pub compute_capability: Option<(i32, i32)>,
    /// The version of its NVLinks: `4.0`.
    pub nvlink_version: Option<&'static str>,
    /// The position in a rack.
    pub platform: Option<Platform>,
    /// The NVLink fabric that it is registered with.
    pub fabric: Option<Fabric>,
    /// The compute partition mode of an AMD GPU, such as `SPX` (one partition) or `CPX` (one partition per chiplet).
    pub compute_partition: Option<String>,
    /// The memory partition mode of an AMD GPU, such as `NPS1` or `NPS4`.
    pub memory_partition: Option<String>,
    /// Whether MIG is on; `None` if the GPU does not support it.
    pub mig: Option<bool>,
    /// The MIG instances that the GPU is split into.
    pub instances: Vec<MigInstance>,
    /// The processes on the GPU, as far as the driver lists them.
    pub processes: Vec<GpuProcess>,
    /// The metrics that the GPU does not have, with the reasons.
    pub unavailable: Vec<Unavailable>,
    /// The reason that the GPU cannot be read; `None` if it can.
    pub trouble: Option<GpuTrouble>,
}

/// The reason that a GPU cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GpuTrouble {
    /// It has fallen off the bus or needs a reset (`GPU_IS_LOST`, `RESET_REQUIRED`).
    Lost,
    /// Every call to the driver fails (`UNKNOWN` and others).
    DriverError,
    /// A call to the driver has not returned for too long.
    Hangs,
    /// The kernel has trouble with its interrupts (`IRQ_ISSUE`).
    NoInterrupts,
    /// Its power cables are not connected (`INSUFFICIENT_POWER`).
    NoPower,
    /// This process may not use it (`NO_PERMISSION`, `OPERATING_SYSTEM`): it belongs to another job or container.
    NotPermitted,
}

/// A position in a rack, in the numbering of the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// The serial number of the chassis.
    pub chassis_serial_number: String,
    /// The slot in the chassis.
    pub slot: u8,
    /// The compute tray among those of the chassis.
    pub tray: u8,
    /// The host in the slot.
    pub host: u8,
    /// The module that the GPU is on.
    pub module: u8,
}

/// A position in an NVLink fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// The UUID of the fabric, as `nvidia-smi` writes it.
    pub cluster_uuid: String,
    /// The id of the clique: the GPUs of the fabric that can reach each other.
    pub clique_id: u32,
}

/// A MIG device: an instance of a split GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigInstance {
    /// The index among the MIG devices of the GPU.
    pub index: u32,
    /// The UUID, `MIG-...`.
    pub uuid: String,
    /// The profile: `1g.10gb`.
    pub profile: String,
    /// The GPU instance.
    pub gpu_instance_id: u32,
    /// The compute instance inside it.
    pub compute_instance_id: u32,
}

/// A process on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuProcess {
    /// The process id: in the PID namespace of the host, or in that of this process if the driver translates it (open kernel
    /// modules since 535.113).
    pub pid: u32,
    /// Memory of the GPU that it uses, in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
    /// The GPU instance that the process runs on.
    pub gpu_instance_id: Option<u32>,
    /// The compute instance inside it.
    pub compute_instance_id: Option<u32>,
}

/// Telemetry that a GPU does not provide.
#[derive(Clone, Debug, PartialEq)]
pub struct Unavailable {
    /// The metric.
    pub metric: &'static Metric,
    /// The call, field or file that was read, such as `nvmlDeviceGetFanSpeed_v2`.
    pub call: &'static str,
    /// The reason.
    pub reason: Reason,
    /// The meaning of the absence for this metric.
    pub meaning: &'static str,
    /// Whether another call or another part of the GPU provides the metric.
    pub partly: bool,
}

/// A metric that a GPU does not provide, with the meaning of its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingMetric {
    /// The name of the metric.
    pub name: &'static str,
    /// The meaning of the absence if the reason is [`Reason::NotSupported`].
    pub meaning: &'static str,
}

/// The reason that a metric has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// The GPU or the driver does not support the metric.
    NotSupported,
    /// The agent has no permission.
    NoPermission,
    /// The driver's library is older than the call.
    MissingSymbol,
    /// The GPU does not answer at all.
    GpuLost,
    /// The metric is supported, but the driver has no data now.
    NoData,
    /// The driver failed.
    DriverError,
    /// The configuration disables it.
    TurnedOff,
}

impl Vendor {
    /// Returns the name of the vendor.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
        }
    }
}

impl Gpu {
    /// Returns a GPU that was not opened yet: only its index and perhaps its PCI address are known.
    pub(super) fn unopened(index: u32, pci_bus_id: Option<String>) -> Self {
        Self {
            index,
            uuid: pci_bus_id.clone().unwrap_or_else(|| format!("index:{index}")),
            pci_bus_id: pci_bus_id.unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Sets the trouble of a GPU. The `Arc` is replaced only if the trouble has changed.
    pub(super) fn set_trouble(gpu: &mut Arc<Self>, trouble: GpuTrouble) {
        if gpu.trouble != Some(trouble) {
            Arc::make_mut(gpu).trouble = Some(trouble);
        }
    }

    /// Returns the metrics that the GPU does not provide at all, each once, by reason.
    pub fn missing(&self) -> BTreeMap<Reason, Vec<MissingMetric>> {
        let mut missing = BTreeMap::<Reason, Vec<MissingMetric>>::new();
        for row in self.unavailable.iter().filter(|row| !row.partly) {
            let metrics = missing.entry(row.reason).or_default();
            let name = row.metric.name;
            if metrics.iter().all(|known| known.name != name) {
                let meaning = row.meaning;
                metrics.push(MissingMetric { name, meaning });
            }
        }
        missing
    }

    /// Returns whether the GPU is observed; GPUs that belong to other jobs are not.
    pub(super) fn is_ours(&self) -> bool {
        self.trouble != Some(GpuTrouble::NotPermitted)
    }
}

impl GpuTrouble {
    /// Returns the recommended action.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Lost => {
                "look for Xid messages in the kernel log (79: it fell off the bus); drain the machine, stop every program on the \
                 GPU and this agent, then reset it with nvidia-smi --gpu-reset, or reboot"
            }
            Self::DriverError => {
                "look for NVRM and Xid in the kernel log; drain the machine, stop every program on the GPU and this agent, then \
                 reset it with nvidia-smi --gpu-reset, or reboot"
            }
            Self::Hangs => {
                "look for Xid 119, 120 (GSP) and NVRM in the kernel log; nvidia-smi hangs as well then. If it stays, drain the \
                 machine and reboot"
            }
            Self::NoInterrupts => {
                "look for NVRM in the kernel log; check the settings of the BIOS and the IOMMU, and reboot"
            }
            Self::NoPower => "connect the power cables of the GPU",
            Self::NotPermitted => {
                "no action is needed if it belongs to another job or container; otherwise give this process its /dev/nvidia*"
            }
        }
    }

    /// Returns the value of `gpu.fault`, or `None` if the trouble is not a fault.
    pub(super) fn fault(self) -> Option<&'static str> {
        match self {
            Self::Lost => Some("lost"),
            Self::DriverError | Self::NoInterrupts | Self::NoPower => Some("driver_error"),
            Self::Hangs => Some("unresponsive"),
            Self::NotPermitted => None,
        }
    }

    /// Returns whether the GPU may become visible again only after NVML is loaded again.
    pub(super) fn may_require_nvml_reload(self) -> bool {
        matches!(self, Self::Lost | Self::DriverError)
    }
}

impl fmt::Display for GpuTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lost => "no longer answers (GPU is lost)",
            Self::DriverError => "cannot be read: the driver fails at every call",
            Self::Hangs => "does not answer: a call of the driver does not return",
            Self::NoInterrupts => "cannot be read: the kernel has trouble with its interrupts",
            Self::NoPower => "cannot be read: its power is insufficient",
            Self::NotPermitted => "is not observed: this process may not use it",
        })
    }
}

impl Reason {
    /// Returns the reason as the value of an attribute.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotSupported => "not_supported",
            Self::NoPermission => "no_permission",
            Self::MissingSymbol => "missing_symbol",
            Self::GpuLost => "gpu_lost",
            Self::NoData => "no_data",
            Self::DriverError => "driver_error",
            Self::TurnedOff => "turned_off",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Lists metrics that are missing for the same reason, grouped by meaning:
/// `gpu.fan.speed, gpu.fan.speed_ratio (not_supported: the GPU has no fan of its own)`.
pub fn list_missing(reason: Reason, metrics: &[MissingMetric]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for metric in metrics {
        // The other reasons need no explanation: an older driver, a call that is not allowed.
        let meaning = match reason {
            Reason::NotSupported => metric.meaning,
            _ => "",
        };
        match groups.iter_mut().find(|(known, _)| *known == meaning) {
            Some((_, names)) => names.push(metric.name),
            None => groups.push((meaning, vec![metric.name])),
        }
    }
    let listed = groups.into_iter().map(|(meaning, names)| match meaning {
        "" => format!("{} ({reason})", names.join(", ")),
        meaning => format!("{} ({reason}: {meaning})", names.join(", ")),
    });
    listed.collect::<Vec<_>>().join("; ")
}
