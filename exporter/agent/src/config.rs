//! The configuration file of the agent: one YAML file of sources, sinks and limits.
//!
//! `section` makes the types, whose doc comments are what `--print-config` prints; `read` fills them, with the environment
//! expanded; `check` compares them with the system; `fault` is an error with its place and its remedy.

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

pub(crate) use self::{
    check::{check, mapped},
    derive::DeriveConfig,
    disk_queue::DiskQueueSetting,
    drawing::{Attributes, DrawingSection},
    exposure::{AuthSection, ExposureKeys, ServerTlsSection},
    fault::Fault,
    file::FileSection,
    gpu::{GPUS, GpuSection},
    limits::{HealthConfig, LimitsConfig, TelemetryConfig},
    log::LogSection,
    mapping::load_mapping,
    named::Named,
    otlp::OtlpSection,
    perfetto::PerfettoSection,
    port_owner::port_owner,
    print::print,
    quantity::{Size, Time},
    read::{load, load_with_faults},
    sinks::{PrometheusSection, SinkConfig, TranslationName},
    source_list::{AGENT_SOURCE, warnings},
    sources::{LogsSection, ReceiverSection, SourceConfig},
    spanned::{Location, Spanned},
};

section::section! {
    /// What the agent reads, where it sends it, and how much it allows itself.
    ///
    /// ${NAME} and ${NAME:-default} are replaced by variables of the environment, ${file:PATH} by the content of a file without the
    /// line break at its end, $$ by a dollar sign. SIGHUP reads the file again: what has not changed continues undisturbed.
    pub(crate) struct Config {
        /// Further files with sources and sinks, or folders of such files (*.yaml). Relative paths of this key and of
        /// ${file:PATH} start at the folder of this file.
        include: Vec<Spanned<String>> = Vec::new(),
        /// Where telemetry comes from: a name of your choice, below it the kind of source.
        sources: Named<SourceConfig> = Named::default(),
        /// The GPUs of this machine.
        gpu: GpuSection = GpuSection::default(),
        /// Where telemetry goes to: a name of your choice, below it the kind of sink.
        sinks: Named<SinkConfig> = sinks::default(),
        /// What is computed from what passes by.
        derive: DeriveConfig = DeriveConfig::default(),
        /// How Perfetto traces are drawn.
        perfetto: DrawingSection = DrawingSection::default(),
        /// How much may wait, and how long.
        limits: LimitsConfig = LimitsConfig::default(),
        /// Where the agent remembers how far it has read each log, so that a restart neither repeats nor loses anything.
        /// Where it is not given: pulsetrain in $XDG_STATE_HOME, or in .local/state of the home.
        state_folder: Option<Spanned<String>> = None,
        /// The messages of the agent on standard error.
        log: LogSection = LogSection::default(),
        /// The agent's own metrics.
        telemetry: TelemetryConfig = TelemetryConfig::default(),
        /// Where others ask whether the agent lives.
        health: HealthConfig = HealthConfig::default(),
    }
}

impl Config {
    /// The default with one source: what `--print-config` prints.
    pub(crate) fn example() -> Self {
        Self {
            sources: sources::example(),
            ..Self::default()
        }
    }
}
