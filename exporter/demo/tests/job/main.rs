//! The telemetry of the simulated job, read back from its batches.

mod faults;
mod healthy;
mod read;
