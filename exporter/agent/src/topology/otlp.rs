//! OTLP sinks: from the environment, from a target on the command line, or from a section of the configuration.

use std::sync::Arc;

use pulsetrain_otlp::Signals;
use pulsetrain_pipeline::{Problem, Sink};
use pulsetrain_sinks::{AttributesSink, OtlpConfig, OtlpSink, SinkError};

use super::variable;
use crate::{
    config::{Location, OtlpSection, SinkConfig},
    failure::Failure,
    log::{self, Subject},
    signal_selection,
};

/// Returns the receivers of the environment; none if it disables every signal.
///
/// # Errors
/// Returns an error for an endpoint or a header that cannot be used.
pub(super) fn receivers_of_environment() -> Result<Vec<OtlpConfig>, Failure> {
    let config = OtlpConfig::from_env(variable).map_err(Failure::usage)?;
    report(Subject::Program, &config);
    Ok(config.by_receiver())
}

/// Returns the sink of a target.
///
/// # Errors
/// Returns an error for a header or a certificate that cannot be used.
pub(super) fn otlp(config: &OtlpConfig) -> Result<Box<dyn Sink>, Failure> {
    report(Subject::Program, config);
    sink(config)
}

/// Returns the sinks of a section, one for each receiver.
///
/// # Errors
/// Returns an error for a setting, a certificate or a token that cannot be used.
pub(super) fn open(section: &OtlpSection) -> Result<Vec<Box<dyn Sink>>, SinkError> {
    let config = otlp_config(section)?;
    // Faults of the rules were reported by the check, as for the settings.
    let rules = section.attributes.rules().ok().flatten().map(Arc::new);
    let sink = |config: &OtlpConfig| {
        let sink: Box<dyn Sink> = Box::new(OtlpSink::new(config)?);
        Ok(match &rules {
            Some(rules) => Box::new(AttributesSink::new(sink, Arc::clone(rules))),
            None => sink,
        })
    };
    config.by_receiver().iter().map(sink).collect()
}

/// Checks a section and the files that it refers to, without a connection. Faults of the settings have a place of their own.
///
/// # Errors
/// Returns the place and the fault of a setting.
pub(super) fn check(section: &OtlpSection) -> Result<Result<(), SinkError>, (Location, Problem)> {
    section.settings()?;
    section.attributes.rules()?;
    Ok(otlp_config(section)
        .and_then(|config| OtlpSink::new(&config))
        .map(drop))
}

/// Returns the settings of an OTLP sink: those of the section override those of the environment.
///
/// # Errors
/// Returns an error for an invalid setting.
pub(crate) fn otlp_config(section: &OtlpSection) -> Result<OtlpConfig, SinkError> {
    let endpoint = section.endpoint.as_ref().map(|endpoint| endpoint.value.as_str());
    // Faults were reported by the check with their places, before anything was started.
    let settings = section.settings().unwrap_or_default();
    let config = OtlpConfig::from_section(endpoint, &settings, variable)?;
    Ok(selected(config, section.signals.as_ref().map(|list| list.0)))
}

/// Returns the settings of an OTLP target of the command line: a URL, with or without a prefix of signals.
///
/// # Errors
/// Returns an error for an invalid target.
pub(crate) fn otlp_target(target: &str) -> Result<OtlpConfig, Failure> {
    let (signals, url) = signal_selection::split(target)?;
    let config = OtlpConfig::from_url(url, variable).map_err(Failure::usage)?;
    Ok(selected(config, signals))
}

/// Returns the failure for settings that an OTLP client cannot use.
pub(super) fn client_failure(error: SinkError) -> Failure {
    match error {
        SinkError::Tls { .. } | SinkError::NoAuthorities { .. } => Failure::failed(error),
        other => Failure::usage(other),
    }
}

fn selected(config: OtlpConfig, signals: Option<Signals>) -> OtlpConfig {
    match signals {
        Some(signals) => config.with_signals(signals),
        None => config,
    }
}

/// Returns the sink of a receiver.
///
/// # Errors
/// Returns an error for a certificate that cannot be used.
pub(super) fn sink(config: &OtlpConfig) -> Result<Box<dyn Sink>, Failure> {
    Ok(Box::new(OtlpSink::new(config).map_err(client_failure)?))
}

/// Logs the notices about a sink of the configuration: once for each configuration, whether it can be opened or not.
pub(crate) fn report_notices(name: &str, sink: &SinkConfig) {
    if let SinkConfig::Otlp(section) = sink
        && let Ok(config) = otlp_config(section)
    {
        report(Subject::Sink(name), &config);
    }
}

/// Logs the variables that are ignored, and credentials that are sent unencrypted.
fn report(subject: Subject<'_>, config: &OtlpConfig) {
    for notice in config.notices() {
        log::warn(subject, notice);
    }
}
