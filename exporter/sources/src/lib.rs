//! Where telemetry comes from.
//!
//! [`logs`] holds one file for each log format, and reads event files too; all of them record into a
//! [`Recorder`](pulsetrain_record::Recorder). [`receiver`] serves clients that send OTLP.

pub mod logs;
pub mod receiver;

mod chrome_json;
mod error;
mod inferred_timezone;
mod perfetto;
mod said;
mod tags;
mod tensorboard;
#[cfg(test)]
mod test_message;
mod tunix_otel;
mod tunix_trace;
mod wandb;

pub use chrome_json::convert_chrome_json;
pub use error::SourceError;
pub use inferred_timezone::infer as infer_timezone;
pub use perfetto::{PerfettoConversion, convert_perfetto};
pub use tensorboard::options_of_file;
