//! Signals computed from other signals, while these pass from the sources to the sinks.
//!
//! Each is a [`Stage`](pulsetrain_pipeline::Stage) of the pipeline: it reads the batches that pass through the borrowed view,
//! adds batches of its own, and holds items back only where it has something to write on them. [`EnergyStage`] says what
//! each training step took of its GPUs.

mod energy;
mod histogram;
mod origin;
mod points;
mod spans;

pub use energy::{EnergyConfig, EnergyStage};
