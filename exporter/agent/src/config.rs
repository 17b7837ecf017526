//! The configuration file of the agent: one YAML file of sources, sinks and limits.
//!
//! `section` defines the types, whose doc comments `--print-config` prints; `load` loads a file and those that it includes; `read`
//! deserializes one, with the environment expanded; `check` validates them against the system; `fault` is an error with its place and its remedy.

mod attribute_rules;
mod check;
mod derive;
mod disk_queue;
mod drawing;
mod exposure;
mod fault;
mod faults;
mod file;
mod file_values;
mod gpu;
mod include;
mod limits;
mod load;
mod log;
mod mapping;
mod named;
mod otlp;
mod perfetto;
mod port_owner;
mod print;
mod quantity;
mod rank;
mod read;
mod section;
mod signals;
mod sinks;
mod source_list;
mod sources;
mod spanned;
#[cfg(test)]
mod tests;
mod variables;

#[cfg(test)]
pub(crate) use self::quantity::Time;
pub(crate) use self::{
    check::{addresses, addresses_of_agent, check, mapped, readable},
    derive::DeriveConfig,
    disk_queue::{DiskQueueSection, DiskQueueSetting},
    drawing::{Attributes, DrawingSection},
    exposure::{AuthSection, ExposureKeys, ServerTlsSection},
    fault::{Fault, ValueError},
    file::FileSection,
    gpu::{GPUS, GpuSection},
    limits::{HealthConfig, LimitsConfig, TelemetryConfig},
    load::{load, load_with_faults},
    log::LogSection,
    mapping::load_mapping,
    named::Named,
    otlp::OtlpSection,
    perfetto::PerfettoSection,
    port_owner::{is_agent, port_owner},
    print::print,
    quantity::{Size, parsed_time},
    sinks::{PrometheusSection, SinkConfig, TranslationName},
    source_list::{AGENT_SOURCE, warnings},
    sources::{LogsSection, ReceiverSection, SourceConfig},
    spanned::{Location, Spanned},
    variables::environment,
};

section::section! {
    /// The configuration of the Pulsetrain agent: sources, sinks and limits.
    ///
    /// ${NAME} and ${NAME:-default} are replaced by environment variables, ${file:PATH} by the content of a file
    /// without its final line break, and $$ by a dollar sign. A changed file, or SIGHUP, reloads it; unchanged parts keep
    /// running.
    pub(crate) struct Config {
        /// Further files with sources and sinks, or folders of such files (*.yaml). Paths in this key and in ${file:PATH}
        /// are relative to the folder of this file.
        include: Vec<Spanned<String>> = Vec::new(),
        /// Reloads this file when its content changes, also through the links of a Kubernetes ConfigMap. Changes of included
        /// files need SIGHUP.
        reload_on_change: bool = true,
        /// The sources of telemetry: a name of your choice, and below it the kind of source.
        sources: Named<SourceConfig> = Named::default(),
        /// The GPUs of this machine.
        gpu: GpuSection = GpuSection::default(),
        /// The sinks of telemetry: a name of your choice, and below it the kind of sink.
        sinks: Named<SinkConfig> = sinks::default(),
        /// Signals that are computed from others.
        derive: DeriveConfig = DeriveConfig::default(),
        /// How Perfetto traces are drawn.
        perfetto: DrawingSection = DrawingSection::default(),
        /// Limits of queues, retries and shutdown.
        limits: LimitsConfig = LimitsConfig::default(),
        /// The folder for the checkpoints of logs and the disk queues, so that a restart neither repeats nor loses anything.
        /// Default: $STATE_DIRECTORY of systemd; or pulsetrain in $XDG_STATE_HOME, in .local/state of the home folder or in
        /// /var/lib. Without any of them the agent starts only if no required sink has a disk queue.
        state_folder: Option<Spanned<String>> = None,
        /// The messages of the agent on standard error.
        log: LogSection = LogSection::default(),
        /// The agent's own metrics.
        telemetry: TelemetryConfig = TelemetryConfig::default(),
        /// The HTTP health endpoint of the agent.
        health: HealthConfig = HealthConfig::default(),
    }
}

impl Config {
    /// Returns the default with one source, which `--print-config` prints.
    pub(crate) fn example() -> Self {
        Self {
            sources: sources::example(),
            ..Self::default()
        }
    }
}
