//! Formats of training logs and event files: bytes in, values out.
//!
//! `logs` holds one file or folder for each text format and defines what a format is ([`LogFormat`]); `tensorboard`, `wandb` and
//! `tunix_trace` read binary files. All of them record into a [`Recorder`](pulsetrain_record::Recorder). [`FORMATS`] lists them.

mod error;
mod inferred_timezone;
mod logs;
mod seen_ids;
mod tags;
mod tensorboard;
#[cfg(test)]
mod test_message;
mod tunix_trace;
mod wandb;

pub use error::FormatError;
pub use inferred_timezone::{
    NEWEST_BYTES, infer as infer_timezone, infer_after_change as infer_timezone_after_change,
};
pub use logs::{
    FORMATS, HEAD_BYTES, HEADER_TIMEOUT, KeyUse, LeftLineReaders, LeftLineShapes, LogFormat, LogParser,
    LogReader, MAX_RECORDS, Pace, PacedBy, ParserFactory, ReadLimits, ReadTime, RunHeader, Survey, Window,
    detect, format_by_name, format_names, found_keys, key_notices, parse_with_every_format, suggest_mapping,
    suggestion_command, suggestion_hint, unreadable, unused_notice, without_byte_order_mark,
};
pub use pulsetrain_mapping::Mapping;
pub use tensorboard::FORMAT as TENSORBOARD;
pub use tunix_trace::{TunixConversion, Version as TunixVersion, convert_tunix_trace};
pub use wandb::FORMAT as WANDB;
