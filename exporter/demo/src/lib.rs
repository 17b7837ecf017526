//! A simulated training job with the telemetry of a real one.
//!
//! [`Demo`] yields the telemetry of the job in the order of its time, without a clock: `job` plans the activities of the job
//! (steps, checkpoints, evaluations, restarts), `faults` the faults, `gpus` simulates the GPUs, and `telemetry` records all of it
//! through [`pulsetrain_record::Recorder`], as every source does. The same configuration gives the same bytes. [`Truth`] is the
//! ground truth of a fault, for tests of verdicts. [`DemoSource`] runs the job in real time.

mod batch_sender;
mod config;
mod counts;
mod demo;
mod faults;
mod gpus;
mod job;
mod random;
mod source;
mod telemetry;
mod truth;

pub use config::{ConfigError, DemoConfig, Workload};
pub use counts::{DemoCounts, SeriesCounter};
pub use demo::Demo;
pub use faults::{Fault, FaultRow, Scope};
pub use source::{DemoProgress, DemoSource};
pub use truth::{Subject, Truth};
