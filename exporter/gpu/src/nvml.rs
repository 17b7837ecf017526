//! GPUs, as NVIDIA's management library (NVML) sees them.
//!
//! [`NvmlSource`] has two halves. `driver` runs on threads of its own, calls NVML and nothing else, and hands over what it
//! was told: one pass over all GPUs a tick. `record` runs with the other sources, and makes series of it. Between them is a
//! queue, so a driver that hangs holds up its own thread only. [`survey`] looks once, for those who ask what is there.

mod belonging;
mod config;
mod driver;
mod inventory;
mod notice;
mod reading;
mod record;
mod release;
mod replay;
mod source;
mod table;

pub use belonging::{Belonging, NoBelonging, OwnedAttribute, OwnedValue, Subject};
pub use config::{GpuSemconv, NvmlConfig};
pub use inventory::{
    Driver, DriverState, Fabric, Gpu, GpuProcess, GpuTrouble, Inventory, MigInstance, MissingMetric, Reason,
    Unavailable, list_missing,
};
pub use notice::GpuNotice;
pub use release::{DriverRelease, DriverUse};
pub use replay::{GpuLabels, GpuReadings, GpuRecorder};
pub use source::{NvmlSource, survey};
pub use table::{TableRow, markdown, table};
