//! Where telemetry comes from.
//!
//! [`logs`] holds one file for each log format, and reads event files too; all of them record into a
//! [`Recorder`](pulsetrain_record::Recorder). [`receiver`] serves clients that send OTLP.

pub mod logs;
pub mod receiver;

mod attribute_part;
mod conversion;
mod error;
mod inferred_timezone;
mod said;
mod tags;
mod tensorboard;
#[cfg(test)]
mod test_message;
mod tunix_otel;
mod tunix_trace;
mod wandb;

pub use error::SourceError;
pub use inferred_timezone::infer as infer_timezone;
pub use tensorboard::options_of_file;
pub use tunix_trace::{TunixConversion, Version as TunixVersion, convert_tunix_trace};
