//! Perfetto traces of what is happening now: rotating files, and a recorder that keeps the last minutes in memory.
//!
//! Both hold the batches of a while (`held`) and draw them as `convert` would (`perfetto`), so that a span that ends late still
//! stands around its children. `files` rewrites its newest file as it grows, by a rename: whoever opens it finds a whole trace.
//! `recorder` draws when it is asked.

mod files;
mod held;
mod names;
#[cfg(test)]
mod one_span;
mod recorder;
mod replace;

pub use files::{PerfettoFiles, PerfettoFilesConfig, PerfettoFilesSink};
pub use recorder::{FlightRecorder, FlightRecorderConfig, FlightRecorderSink, Recording};
