//! Where telemetry comes from.
//!
//! A source reads what a training job says of itself and writes OTLP once, at the door. [`logs`] holds one file a log
//! format, and reads event files too; [`Recorder`] is what all of them record into; [`Run`] says whose telemetry it is.
//! [`nvml`] watches GPUs, and [`workload`] knows whose they are. [`receiver`] takes in what others send as OTLP.

pub mod logs;
pub mod nvml;
pub mod receiver;
pub mod workload;

mod attribute_part;
mod backends;
mod conversion;
mod cut;
mod emptied;
mod error;
mod ids;
mod in_order;
mod perfetto;
mod recorder;
mod run;
mod said;
mod skipped;
mod tags;
mod tensorboard;
#[cfg(test)]
mod test_message;
mod timezone;
mod tunix_otel;
mod tunix_trace;
mod wandb;

pub use backends::{
    BackendError, BackendOptions, JaegerBackend, PrometheusBackend, Samples, StoredAnswer, TempoBackend,
    TimeWindow, TraceSearch, begins_answer, convert_answer, read_answers,
};
pub use error::SourceError;
pub use ids::{eval_span, lifecycle_trace, step_span, step_trace};
pub use perfetto::{PerfettoConversion, convert_perfetto};
pub use recorder::{Counts, Recorder};
pub use run::Run;
pub use skipped::{Place, Problem, SkipReason, Skipped};
pub use tensorboard::options_of_file;
pub use timezone::{Timezone, TimezoneReason, UsedTimezone, infer as infer_timezone};
