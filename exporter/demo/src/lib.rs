//! A simulated training job, whose telemetry is as that of a real one.
//!
//! [`Demo`] yields the telemetry of the job in the order of its time, without a clock: `job` plans what the job does
//! (steps, checkpoints, evaluations, restarts), `faults` what goes wrong and when, `gpus` how the GPUs fare meanwhile, and
//! `telemetry` records all of it through [`pulsetrain_record::Recorder`], as every source does. The same configuration gives
//! the same bytes. [`Truth`] states what went wrong, for tests of verdicts. [`DemoSource`] runs the job in real time.

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
