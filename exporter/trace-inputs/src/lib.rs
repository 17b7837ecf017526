//! Reads files of any format as OTLP ([`read_input`]): OTLP itself, answers of trace stores, Zipkin, Tunix traces, Perfetto
//! traces ([`convert_perfetto`]), Chrome JSON traces ([`convert_chrome_json`]) and exports of Nsight Systems
//! ([`convert_nsight`]).
//!
//! [`convert_perfetto`] restores the OTLP of a trace that `pulsetrain-to-perfetto` wrote with all attributes; the `PERFETTO.md`
//! of that crate lists the conversions.

mod chrome_json;
mod clocks;
mod error;
mod from_perfetto;
mod input;
mod nsight;
mod report;

pub use chrome_json::convert_chrome_json;
pub use clocks::{ClockAlignment, MovedClock};
pub use error::ConvertError;
pub use from_perfetto::{PerfettoConversion, PerfettoTrace, convert_perfetto};
pub use input::{ReadOptions, has_suffix, read_input};
pub use nsight::{NsightConversion, NsightError, NsightExport, convert_nsight};
pub use pulsetrain_perfetto::ReadCounts;
pub use report::InputReport;
