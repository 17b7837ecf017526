//! Derives signals from other signals on their way from sources to sinks.
//!
//! Each is a [`Stage`](pulsetrain_pipeline::Stage) of the pipeline. It decodes batches through the borrowed
//! view, adds batches of its own, and holds items back only to add attributes to them. [`EnergyStage`]
//! attributes GPU energy to training steps. [`SignalsStage`] derives throughput, efficiency and health from
//! them.

mod config;
mod energy;
mod health;
mod points;
mod rank_signals;
mod run_resource;
mod signals;
mod spans;
mod steps;
#[cfg(test)]
mod test_trainer;
mod wall_clock;

pub use config::SignalsConfig;
pub use energy::{EnergyConfig, EnergyStage};
pub use signals::SignalsStage;

/// The instrumentation scope of derived telemetry.
pub const SCOPE: &str = "pulsetrain.derive";
