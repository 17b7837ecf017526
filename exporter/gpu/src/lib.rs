//! GPUs of a training job: what they measure, and whose they are.
//!
//! [`nvml`] reads NVIDIA GPUs through the driver's management library. [`workload`] finds the run, the rank, the job and
//! the pod behind the processes on a GPU.

pub mod nvml;
pub mod workload;
