//! Training logs: one file or folder a format, one row of [`FORMATS`] a format.
//!
//! A format ([`LogFormat`]) detects its files and parses bytes into a [`Recorder`](pulsetrain_record::Recorder). [`LogReader`]
//! feeds a parser with the bytes of an input.

mod absl;
mod clean;
mod delimited;
mod detect;
mod diagnostics;
mod encoding;
mod envelope;
mod format;
mod format_list;
mod generic;
mod huggingface;
mod kempnerforge;
mod layers;
mod leading_time;
mod line_clock;
mod lines;
mod literal;
mod maxtext;
mod megatron;
mod nemo_lens;
mod pace;
mod parser;
mod prefix;
mod python_json;
mod rank_prefix;
mod reader;
#[cfg(test)]
pub(crate) mod sampled;
mod spans;
mod speakers;
mod surogate;
mod tag;
pub(crate) mod time;
mod timestamp;
mod torchspec;
mod torchtitan;
mod trainers;
mod tunix;

pub use detect::{detect, parse_with_every_format};
pub use encoding::{unreadable, without_byte_order_mark};
use format::Detect;
pub use format::{HEAD_BYTES, HEADER_TIMEOUT, LogFormat, ParserFactory, RunHeader};
pub use format_list::{FORMATS, format_by_name, format_names};
pub use generic::{
    KeyUse, LeftLineShapes, found_keys, key_notices, suggest_mapping, suggestion_command, suggestion_hint,
    unused_notice,
};
pub use lines::LeftLineReaders;
pub use pace::{MAX_RECORDS, Pace, PacedBy, Survey};
pub use parser::{LogParser, ReadTime, Window};
pub use reader::{LogReader, ReadLimits};
