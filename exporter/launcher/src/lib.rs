//! Runs a program unchanged, with a copy of its output: its terminal, signals, job control and exit code stay its own.
//!
//! [`Trainer`] starts it, on a terminal of its own if there is one; its output is forwarded and copied to [`Chunks`];
//! [`SignalForwarder`] forwards signals. This crate knows no telemetry.

mod copy;
mod job;
mod signals;
mod terminal;
mod trainer;

pub use copy::{Chunk, Chunks, RunningCopies};
pub use signals::{HeldSignals, SignalForwarder};
pub use trainer::{Trainer, exit_code};
