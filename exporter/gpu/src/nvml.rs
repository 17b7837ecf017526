//! NVIDIA GPUs through the driver's management library (NVML).
//!
//! `library` loads NVML; `session` makes passes over all GPUs until NVML has to be loaded again; `worker` is the thread of one
//! GPU, so that a GPU that hangs does not block the others; `monitored` is the GPU in it, `probe` one pass over its rows; `rows`
//! is the table. `energy_lane` reads the energy counter between passes. `events` waits for events. `ffi` has the calls that the
//! wrapper lacks, and all unsafe code.

mod counters;
mod device;
mod energy_lane;
mod events;
mod ffi;
mod fields;
pub(crate) mod library;
mod monitored;
mod probe;
mod row;
pub(crate) mod rows;
mod samples;
pub(crate) mod session;
mod table;
mod worker;

pub use table::{TableRow, markdown, table};
