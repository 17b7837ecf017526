//! GPUs of a training job: what they measure, and whose they are.
//!
//! [`GpuSource`] has two halves. [`driver`] runs on threads of its own and hands over what it was told: one pass over all GPUs
//! a tick, read by [`nvml`] or [`amd`], whichever the machine has. [`record`] runs with the other sources, and makes series of
//! it; it knows no vendor. Between them is a queue, so a driver that hangs holds up its own thread only. [`survey`] looks once,
//! for those who ask what is there. [`workload`] finds the run, the rank, the job and the pod behind the processes on a GPU.

pub mod amd;
mod attribution;
mod config;
mod driver;
mod inventory;
mod notice;
pub mod nvml;
mod reading;
mod record;
mod release;
mod replay;
mod source;
pub mod workload;

pub use attribution::{GpuAttribution, NoAttribution, OwnedAttribute, OwnedValue, Subject};
pub use config::{GpuConfig, GpuSemconv};
pub use inventory::{
    Driver, DriverState, Fabric, Gpu, GpuProcess, GpuTrouble, Inventory, MigInstance, MissingMetric, Reason,
    Unavailable, Vendor, list_missing,
};
pub use notice::GpuNotice;
pub use release::{DriverRelease, DriverUse};
pub use replay::{GpuLabels, GpuReadings, GpuRecorder};
pub use source::{GpuSource, survey};
