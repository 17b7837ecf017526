//! Training logs: one file or folder a format, one row of [`FORMATS`] a format.
//!
//! A format ([`LogFormat`]) says how to recognise its files and parses bytes into a [`Recorder`](pulsetrain_record::Recorder);
//! [`LogReader`] gives it the bytes of an input.

mod absl;
mod clean;
mod detect;
mod encoding;
mod format;
mod format_list;
mod generic;
mod huggingface;
mod kempnerforge;
mod leading_time;
mod line_clock;
mod lines;
mod literal;
mod maxtext;
mod megatron;
mod pace;
mod parser;
mod printed;
mod ranked;
mod reader;
#[cfg(test)]
pub(crate) mod sampled;
mod spans;
mod surogate;
pub(crate) mod time;
mod torchspec;
mod torchtitan;
mod trainers;
mod tunix;

pub use detect::{parse_with_every_format, recognise};
pub use encoding::{unreadable, without_mark};
pub use format::{Begin, HEAD_BYTES, IDENTITY_PATIENCE, Identity, LogFormat};
pub use format_list::{FORMATS, format_by_name, format_names};
pub use generic::{KeyRole, KeyUse, key_notices, suggest_mapping};
pub use pace::{MOST_RECORDS, Pace, PacedBy, Survey};
pub use parser::{LogParser, ReadTime, Window};
pub use reader::{LogReader, ReadLimits};
