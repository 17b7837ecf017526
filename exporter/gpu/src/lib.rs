//! The telemetry of the GPUs of a training job, and their attribution to runs, ranks, jobs and pods.
//!
//! [`GpuSource`] has two halves. `driver_thread` runs on its own threads and sends one pass over all GPUs per interval, read by
//! [`nvml`] or [`amd`], whichever the machine has; `driver` has the events that both send. `record` runs with the other sources and turns the passes into series; it does not
//! depend on the vendor. Between them is a queue, so a driver that hangs blocks only its own thread. [`survey`] reads the GPUs
//! once, for a list of them. `imex` reads the state of IMEX on another thread. [`workload`] finds the run, the rank, the job and
//! the pod of the processes on a GPU.

pub mod amd;
mod attribution;
mod companion;
mod config;
mod driver;
mod driver_thread;
mod imex;
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
pub use imex::{ImexConfig, ImexProgram};
pub use inventory::{
    Driver, DriverState, Fabric, Gpu, GpuProcess, GpuTrouble, Inventory, MigInstance, MissingMetric,
    Platform, Reason, Unavailable, Vendor, list_missing,
};
pub use notice::GpuNotice;
pub use release::{DriverRelease, DriverUse};
pub use replay::{GpuLabels, GpuReadings, GpuRecorder};
pub use source::{GpuSource, survey};
