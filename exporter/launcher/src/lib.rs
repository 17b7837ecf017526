//! Runs a program unchanged, with a copy of its output: its terminal, signals, job control and exit code stay its own.
//!
//! The process that the user starts is the *keeper* ([`keep`]): one thread that starts the others, forwards signals and
//! keys, and waits. Nothing that parses or sends runs in it, so it has no reason to fail.
//!
//! ```text
//! keeper ──┬─ trainer                 in the process group of the keeper, or on a terminal of its own
//!          ├─ copier, one a stream    trainer's pipe or terminal -> the original output, and a copy -> exporter
//!          ├─ witness                 reports the signals that reach more processes than the keeper
//!          └─ exporter                a program of the caller, which reads the copy ([`CopiedOutput`])
//! ```
//!
//! Each process may be killed without harm to the trainer:
//!
//! - A *copier* is a fork of the keeper that reads, writes and does nothing else. It has a process group of its own and
//!   blocks all signals. The keeper holds both ends of its stream and starts another copier in its place.
//! - The *keeper* does not copy: after its death, the copiers and the exporter continue until the trainer ends.
//! - The *exporter* gets its copy through a pipe that is written without waiting. If it hangs, the copy is dropped and
//!   counted; if it dies, the copy ends.
//!
//! The alternative to copiers is a keeper that copies, and an exporter that continues when the keeper dies. It needs
//! non-blocking writes to an output that other programs share, and leaves the trainer to the process that is most likely
//! to be killed. Descriptors that stay with the trainer, and a reader next to it, exist only for files.
//!
//! This crate knows no telemetry.

mod arrivals;
mod copied_output;
mod copier;
mod exporter;
mod frames;
mod job;
mod keeper;
mod keys;
mod process;
mod signals;
mod terminal;
mod trainer;
mod witness;

pub use copied_output::{Chunk, Chunks, CopiedOutput, TrainerEnd};
pub use exporter::Handover;
pub use keeper::{Incident, Launch, keep};
pub use process::rename_process;
pub use signals::ignore_file_size_signal;
