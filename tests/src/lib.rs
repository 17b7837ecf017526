//! The harness of the end-to-end tests: the real binary, simulated inputs and endpoints, and third-party programs that check
//! the output.
//!
//! Every server listens on loopback on a free port; tests wait for it by a condition and stop it by its pid. An error in a
//! helper is a failed test, so it panics with a description of the operation.

mod alertmanager;
mod cargo_build;
mod certificates;
mod clock;
mod collector;
mod corpus;
mod document;
mod exposition;
mod fake_endpoint;
mod fake_nvml;
mod fake_sysfs;
mod folder;
mod forward_proxy;
pub mod http;
mod items;
mod jaeger;
mod judge;
mod kill_timing;
mod loopback;
pub mod otlp;
mod ports;
mod process;
mod prometheus;
mod pulsetrain;
mod recorded_tempo;
mod small_disk;
mod surogate_log;
mod surogate_run;
mod surogate_writer;
mod tempo;
mod terminal;
mod tls_front;
mod trace_processor;
mod unprivileged;
mod victoria_metrics;
mod wait;

pub use alertmanager::Alertmanager;
pub use certificates::Certificates;
pub use clock::unix_nanos;
pub use collector::Collector;
pub use corpus::corpus;
pub use document::{workspace_path, write_table};
pub use exposition::{ExposedFamily, ExposedSample, Exposition, read_page};
pub use fake_endpoint::{Answer, FakeEndpoint, Received};
pub use fake_nvml::{FakeNvml, NvmlCall};
pub use fake_sysfs::{AmdModel, FakeSysfs, GpuMetrics};
pub use folder::Folder;
pub use forward_proxy::ForwardProxy;
pub use items::Items;
pub use jaeger::Jaeger;
pub use judge::Judge;
pub use kill_timing::{Progress, spin, wait_until_begun};
pub use ports::free_port;
pub use process::Process;
pub use prometheus::{Prometheus, promtool, promtool_check};
pub use pulsetrain::{Finished, Import, command, convert, semconv, send_traces, with_default_signals};
pub use recorded_tempo::{
    RecordedTempo, query_parameter, recorded_tempo_answer, recorded_tempo_body, recorded_tempo_requests,
};
pub use small_disk::SmallDisk;
pub use surogate_log::{Record, SurogateLog};
pub use surogate_run::SurogateRun;
pub use surogate_writer::{SurogateWriter, record_at, surogate_records, surogate_time};
pub use tempo::Tempo;
pub use terminal::{Terminal, on_terminal};
pub use tls_front::TlsFront;
pub use trace_processor::TraceProcessor;
pub use unprivileged::as_unprivileged;
pub use victoria_metrics::VictoriaMetrics;
pub use wait::{repeat_for, wait_at_most, wait_until};
