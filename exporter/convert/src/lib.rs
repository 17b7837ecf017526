//! OTLP as Perfetto traces ([`PerfettoMapper`]), and Perfetto traces, Chrome JSON traces and exports of Nsight Systems as OTLP
//! ([`convert_perfetto`], [`convert_chrome_json`], [`convert_nsight`]).
//!
//! Both directions share one vocabulary: what the mapper writes with [`AttributePolicy::Full`], the reader restores. `PERFETTO.md`
//! next to this crate lists what becomes what.

mod chrome_json;
mod clocks;
mod error;
mod from_perfetto;
mod nsight;
mod to_perfetto;
mod vocabulary;

pub use chrome_json::convert_chrome_json;
pub use clocks::{ClockAlignment, MovedClock};
pub use error::ConvertError;
pub use from_perfetto::{PerfettoConversion, PerfettoTrace, convert_perfetto};
pub use nsight::{NsightConversion, NsightError, NsightExport, convert_nsight};
pub use pulsetrain_perfetto::ReadCounts;
pub use to_perfetto::{
    AttributePolicy, ClockSkew, PerfettoConfig, PerfettoError, PerfettoMapper, PerfettoParts, PerfettoSummary,
};
