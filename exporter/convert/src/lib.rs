//! OTLP as Perfetto traces ([`PerfettoMapper`]), and Perfetto and Chrome JSON traces as OTLP ([`convert_perfetto`],
//! [`convert_chrome_json`]).
//!
//! Both directions share one vocabulary: what the mapper writes with [`AttributePolicy::Full`], the reader restores. `PERFETTO.md`
//! next to this crate lists what becomes what.

mod chrome_json;
mod clocks;
mod error;
mod from_perfetto;
mod to_perfetto;
mod vocabulary;

pub use chrome_json::convert_chrome_json;
pub use clocks::{ClockAlignment, MovedClock};
pub use error::ConvertError;
pub use from_perfetto::{PerfettoConversion, PerfettoTrace, convert_perfetto};
pub use pulsetrain_perfetto::ReadCounts;
pub use to_perfetto::{
    AttributePolicy, ClockSkew, PerfettoConfig, PerfettoError, PerfettoMapper, PerfettoParts, PerfettoSummary,
};
