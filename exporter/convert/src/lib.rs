//! Converts OTLP to Perfetto traces ([`PerfettoMapper`]), and Perfetto traces, Chrome JSON traces and exports of Nsight
//! Systems to OTLP ([`convert_perfetto`], [`convert_chrome_json`], [`convert_nsight`]).
//!
//! Both directions share one vocabulary: the reader restores the output of the mapper with [`AttributePolicy::Full`].
//! `PERFETTO.md` in the folder of this crate lists the conversions.

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
