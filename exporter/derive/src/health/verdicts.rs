//! The detectors, one file for each family of conditions. Each file defines its thresholds; the README of the crate has the table.

mod checkpoint;
mod gpus;
mod leak;
mod numbers;
mod progress;
mod silence;
mod waits;

pub(crate) use self::{
    checkpoint::SlowCheckpoint,
    gpus::{GpuReading, GpuVerdicts},
    leak::MemoryLeaks,
    numbers::Numbers,
    progress::{StallDetector, StallKind},
    silence::SilentRanks,
    waits::Waits,
};
