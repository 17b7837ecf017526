//! What GPUs there are, as the driver said last: for whoever asks what is there rather than how it does.

use std::fmt;

use pulsetrain_semconv::Metric;

/// The driver and its GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// The driver.
    pub driver: DriverState,
    /// Its GPUs, by index; those that were lost stay until the driver no longer counts them.
    pub gpus: Vec<Gpu>,
    /// When it was so, in nanoseconds since 1970.
    pub time_unix_nanos: u64,
}

/// Whether there is a driver that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DriverState {
    /// Not asked yet.
    #[default]
    Unknown,
    /// There is none that could be asked.
    Absent {
        /// What is missing.
        why: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// It answers.
    Present(Driver),
    /// It was asked and has not answered for longer than it should take.
    Silent,
}

/// The driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// Its version: `580.82.07`.
    pub version: String,
    /// The version of NVML.
    pub nvml_version: String,
    /// The newest CUDA that it can: 1000 times the major number plus 10 times the minor; 0 where it does not say.
    pub cuda_version: i32,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpu {
    /// NVML's number of it; CUDA may count otherwise.
    pub index: u32,
    /// The UUID, `GPU-...`; the PCI address where there is none.
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
    /// The NVLink fabric that it is registered with.
    pub fabric: Option<Fabric>,
    /// Whether the GPU is split; nothing where it cannot be.
    pub mig: Option<bool>,
    /// The instances that it is split into.
    pub instances: Vec<MigInstance>,
    /// Who uses it, as far as the driver lets us see.
    pub processes: Vec<GpuProcess>,
    /// What it does not tell, and why.
    pub unavailable: Vec<Unavailable>,
    /// Whether it has stopped answering: fallen off the bus, or needs a reset.
    pub lost: bool,
}

/// A place in an NVLink fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// The UUID of the fabric, as `nvidia-smi` writes it.
    pub cluster_uuid: String,
    /// The number of the GPUs in it that reach each other.
    pub clique_id: u32,
}

/// A MIG device: an instance of a split GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigInstance {
    /// Its number among the MIG devices of its GPU.
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
    /// The process, in the driver's own PID namespace.
    pub pid: u32,
    /// Memory of the GPU that it uses, in bytes; nothing where the driver does not say.
    pub memory_bytes: Option<u64>,
    /// The GPU instance that it is on.
    pub gpu_instance_id: Option<u32>,
    /// The compute instance inside it.
    pub compute_instance_id: Option<u32>,
}

/// Telemetry that a GPU does not give.
#[derive(Clone, Debug, PartialEq)]
pub struct Unavailable {
    /// The metric.
    pub metric: &'static Metric,
    /// The call or the field that was asked: `nvmlDeviceGetFanSpeed_v2`.
    pub call: &'static str,
    /// Why.
    pub reason: Reason,
    /// What that means for this metric.
    pub meaning: &'static str,
    /// Whether the metric has a value from elsewhere: another part of the GPU, another call.
    pub partly: bool,
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// The GPU or the driver does not have it.
    NotSupported,
    /// We may not ask.
    NoPermission,
    /// The driver's library is older than the call.
    MissingSymbol,
    /// The GPU does not answer at all.
    GpuLost,
    /// It should be there, and nothing was there now.
    NoData,
    /// The driver failed.
    DriverError,
    /// The configuration has turned it off.
    TurnedOff,
}

impl Reason {
    /// As an attribute's value.
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
