//! The table of faults: a new fault is one row in the file of its kind.

mod gpu;
mod job;
mod learning;
mod reinforcement;

use super::FaultRow;

/// The rows of all files.
pub(super) static TABLES: [&[FaultRow]; 4] = [job::ROWS, learning::ROWS, gpu::ROWS, reinforcement::ROWS];
