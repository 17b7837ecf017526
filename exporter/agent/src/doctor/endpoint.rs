//! Checks the receivers: whether each signal is accepted, and whether their clocks agree with the local one.

use std::{borrow::Cow, time::Duration};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Problem, Sink, clock};
use pulsetrain_sinks::{HostAnswer, OtlpConfig, OtlpSink, Protocol, SignalConfig, ask_host};
use tokio::net::TcpStream;

use super::{
    DoctorArguments,
    finding::{Findings, Level, Subject},
    variables,
};
use crate::{
    config::{Config, SinkConfig},
    failure::Failure,
    topology,
};

/// The tolerated clock skew: spans of ranks are compared on one time axis, and a Date header has a resolution of a second.
const SKEW: Duration = Duration::from_secs(2);

/// The advice for a receiver that accepts a connection and does not answer.
const NO_ANSWER: &str =
    "look at the receiver's log: it takes connections and does not answer; --timeout allows it more time";
/// The advice for a receiver that accepts no connection in time.
const NO_CONNECTION: &str =
    "check the address, and let the firewalls on the way to it pass this port; --timeout allows it more time";
/// The advice for a receiver that accepts a request with a message.
const OTHER_ANSWER: &str = "check that this is the receiver that you mean, and read its log";
/// The advice for a failure whose cause is unknown.
const OTHER_FAILURE: &str = "look at the receiver's log for the reason";

/// The variables that can set a receiver.
const NAMED_BY: [&str; 4] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
];

/// The variables that can turn a signal off.
const SWITCHES: &str = "OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_LOGS_EXPORTER";

/// A receiver to check.
pub(super) struct EndpointTarget {
    pub(super) config: OtlpConfig,
    origin: Origin,
}

/// The setting that names a receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The command line or the configuration.
    Named,
    /// Variables of the environment.
    Variables,
    /// None: the default receiver, which may be unintended.
    Default,
}

/// Returns the receivers from the command line, or else from the configuration, or else from the environment.
pub(super) fn targets(
    arguments: &DoctorArguments,
    config: Option<&Config>,
    findings: &mut Findings,
) -> Result<Vec<EndpointTarget>, Failure> {
    if !arguments.to.is_empty() {
        return arguments
            .to
            .iter()
            .map(|target| topology::otlp_target(target).map(named))
            .collect();
    }
    if let Some(config) = config {
        return Ok(of_config(config));
    }
    if arguments.config.is_some() {
        // The configuration cannot be read, which is a finding.
        return Ok(Vec::new());
    }
    let is_named = NAMED_BY
        .iter()
        .any(|name| variable(name).is_some_and(|value| !value.is_empty()));
    let origin = if is_named {
        Origin::Variables
    } else {
        Origin::Default
    };
    match OtlpConfig::from_env(variable) {
        Ok(config) => Ok(vec![EndpointTarget { config, origin }]),
        Err(first) => {
            for problem in faults_of_variables(first.problem()) {
                findings.add(
                    Level::Wrong,
                    environment_place(),
                    problem,
                    "correct it, or unset it",
                );
            }
            Ok(Vec::new())
        }
    }
}

/// Returns the fault of each variable alone, after the first fault of all together.
fn faults_of_variables(first: Problem) -> Vec<Problem> {
    let mut faults = vec![first];
    for own in variables::names().filter(|name| name.starts_with("OTEL_EXPORTER_OTLP_")) {
        let alone = OtlpConfig::from_env(|name| variable(name).filter(|_| name == own));
        if let Err(error) = alone {
            faults.push(error.problem());
        }
    }
    let mut distinct = Vec::new();
    for fault in faults {
        if !distinct.contains(&fault) {
            distinct.push(fault);
        }
    }
    distinct
}

/// Returns the sinks of a configuration; an invalid sink is reported with the configuration.
fn of_config(config: &Config) -> Vec<EndpointTarget> {
    let sinks = config.sinks.iter().filter_map(|(_, sink)| match sink {
        SinkConfig::Otlp(otlp) => topology::otlp_config(otlp).ok(),
        _ => None,
    });
    sinks
        .filter(|config| OtlpSink::new(config).is_ok())
        .map(named)
        .collect()
}

fn named(config: OtlpConfig) -> EndpointTarget {
    EndpointTarget {
        config,
        origin: Origin::Named,
    }
}

/// Sends an empty request of each signal, and compares the clocks.
pub(super) async fn check(target: &EndpointTarget, timeout: Duration, findings: &mut Findings) {
    let mut sink = match OtlpSink::new(&target.config) {
        Ok(sink) => sink,
        Err(error) => {
            let place = place(target, Signal::Metrics);
            let otherwise = "name files that exist and can be read";
            return findings.add(Level::Wrong, place, error.problem(), otherwise);
        }
    };
    for notice in target.config.notices() {
        let otherwise = "correct the variable, or unset it";
        findings.add(Level::Warning, environment_place(), notice.clone(), otherwise);
    }
    if target.config.signals().is_empty() {
        let place = Subject::Environment(SWITCHES.to_owned());
        return findings.warn(place, "none: no signal is sent", "unset one of them");
    }
    // One cause is one finding, even if it concerns several signals of a host.
    let (mut reported, mut silent) = (Vec::new(), Vec::new());
    for signal in target.config.signals().iter() {
        let host = host(target, signal);
        if silent.contains(&host) {
            continue;
        }
        let empty = Batch::new(signal, 0, Vec::new());
        let outcome = match tokio::time::timeout(timeout, sink.deliver(&empty)).await {
            Ok(delivery) => outcome(delivery),
            Err(_) => Err(timed_out(target.config.signal(signal), timeout).await),
        };
        let place = place(target, signal);
        let key = match &outcome {
            Ok(what) => (place.to_string(), what.clone()),
            Err(failed) => {
                if !failed.is_answer {
                    silent.push(host.clone());
                }
                (host, failed.advice.as_deref().unwrap_or(&failed.what).to_owned())
            }
        };
        let is_explained = outcome.is_err() && is_explained(target, signal, findings);
        if !is_explained && !reported.contains(&key) {
            report(target, place, outcome, findings);
            reported.push(key);
        }
    }
    if !silent.contains(&host(target, Signal::Metrics))
        && let Some(answer) = ask_host(target.config.signal(Signal::Metrics), "/", timeout).await
    {
        check_clock(
            place(target, Signal::Metrics),
            &answer,
            clock::unix_now(),
            findings,
        );
    }
}

/// Returns whether a finding about the variables of the receiver of a signal explains why it fails.
fn is_explained(target: &EndpointTarget, signal: Signal, findings: &Findings) -> bool {
    let own = format!(
        "OTEL_EXPORTER_OTLP_{}_ENDPOINT",
        signal.as_str().to_ascii_uppercase()
    );
    let has_own = variable(&own).is_some_and(|value| !value.is_empty());
    match target.origin {
        Origin::Named => false,
        Origin::Variables if has_own => findings.concern(&own),
        Origin::Variables => findings.concern(NAMED_BY[0]),
        Origin::Default => NAMED_BY.iter().any(|name| findings.concern(name)),
    }
}

/// A request that failed or was accepted with a message, and the advice of the sink.
struct Failed {
    what: String,
    advice: Option<Cow<'static, str>>,
    is_accepted: bool,
    /// Whether the receiver answered; if not, the other signals of its host fail in the same way.
    is_answer: bool,
}

fn report(target: &EndpointTarget, place: Subject, outcome: Result<String, Failed>, findings: &mut Findings) {
    match outcome {
        Ok(what) => findings.fine(place, what),
        Err(failed) if failed.is_accepted => findings.warn(place, failed.what, OTHER_ANSWER),
        Err(Failed { what, advice, .. }) if target.origin != Origin::Default => {
            findings.wrong(place, what, advice.unwrap_or(Cow::Borrowed(OTHER_FAILURE)));
        }
        Err(Failed { what, .. }) => findings.warn(
            place,
            format!("no receiver is named, and at the default {what}"),
            "set OTEL_EXPORTER_OTLP_ENDPOINT, or give --to or --config",
        ),
    }
}

fn outcome(delivery: Delivery) -> Result<String, Failed> {
    let is_answer = !matches!(delivery, Delivery::Unreachable(_));
    let is_partial = matches!(delivery, Delivery::Partial { .. });
    // The finding has the subject, the URL, as its place.
    let Problem { what, remedy, .. } = match delivery {
        Delivery::Delivered => return Ok("takes an empty request".to_owned()),
        Delivery::Partial { problem, .. }
        | Delivery::Refused(problem)
        | Delivery::Denied(problem)
        | Delivery::TooLarge(problem)
        | Delivery::Unsupported(problem)
        | Delivery::Retry { problem, .. }
        | Delivery::Unreachable(problem) => problem,
    };
    // An answer with advice, such as a web page, does not accept anything.
    let is_accepted = is_partial && remedy.is_none();
    Err(Failed {
        what: match is_accepted {
            true => format!("takes an empty request, and answers: {what}"),
            false => what,
        },
        advice: remedy,
        is_accepted,
        is_answer,
    })
}

/// Returns the failure of a request without an answer in time: the host accepts connections, or it does not.
async fn timed_out(config: &SignalConfig, timeout: Duration) -> Failed {
    let to = config.proxy.as_ref().map_or(&config.endpoint, |proxy| &proxy.uri);
    let default = if to.scheme_str() == Some("https") { 443 } else { 80 };
    let address = format!(
        "{}:{}",
        to.host().unwrap_or_default(),
        to.port_u16().unwrap_or(default)
    );
    let connected = tokio::time::timeout(timeout, TcpStream::connect(address)).await;
    let (what, advice) = match connected {
        Ok(Ok(_)) => ("gave no answer", NO_ANSWER),
        _ => ("takes no connection", NO_CONNECTION),
    };
    Failed {
        what: format!("{what} within {} s", timeout.as_secs_f64()),
        advice: Some(advice.into()),
        is_accepted: false,
        is_answer: false,
    }
}

/// Compares the receiver's clock with the local one. A Date header is truncated to seconds, and was current at some
/// moment during the request.
fn check_clock(place: Subject, answer: &HostAnswer, now: Duration, findings: &mut Findings) {
    let Some(theirs) = answer.clock else { return };
    let earliest = now.saturating_sub(answer.took).as_secs_f64() - 1.0;
    let latest = now.as_secs_f64();
    let theirs = theirs.as_secs_f64();
    let skew = if theirs < earliest {
        theirs - earliest
    } else {
        (theirs - latest).max(0.0)
    };
    let direction = if skew < 0.0 { "slow" } else { "fast" };
    let what = format!(
        "its clock is at least {:.0} s {direction} against ours",
        skew.abs()
    );
    if skew.abs() > SKEW.as_secs_f64() {
        findings.wrong(
            place,
            what,
            "synchronize both hosts by NTP or PTP (chronyc tracking); otherwise timestamps of points are wrong, and spans of \
             ranks do not line up",
        );
    } else {
        findings.fine(place, "its clock agrees with ours within a second");
    }
}

fn environment_place() -> Subject {
    Subject::Environment("OTEL_EXPORTER_OTLP_*".to_owned())
}

/// Returns the address of a receiver for messages, with its path if it has one.
pub(super) fn place(target: &EndpointTarget, signal: Signal) -> Subject {
    let config = target.config.signal(signal);
    let mut text = config.endpoint.to_string();
    if config.protocol == Protocol::Grpc {
        text = text.replacen("http", "grpc", 1);
    }
    Subject::Endpoint(text.trim_end_matches('/').to_owned())
}

/// Returns the host, the port and the protocol of a receiver.
fn host(target: &EndpointTarget, signal: Signal) -> String {
    let SignalConfig {
        endpoint, protocol, ..
    } = target.config.signal(signal);
    let host = endpoint.authority().map(ToString::to_string);
    format!("{protocol:?} {}", host.unwrap_or_default())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    fn level(theirs: f64, now: f64, took: f64) -> Level {
        let mut findings = Findings::default();
        let mut answer = HostAnswer::default();
        answer.clock = Some(Duration::from_secs_f64(theirs));
        answer.took = Duration::from_secs_f64(took);
        let place = Subject::Endpoint("here".to_owned());
        check_clock(place, &answer, Duration::from_secs_f64(now), &mut findings);
        findings.all()[0].level
    }

    #[test]
    fn date_resolution_and_slow_response_are_not_clock_skew() {
        assert_eq!(level(1000.0, 1000.99, 0.0), Level::Ok);
        assert_eq!(level(1000.0, 1004.9, 4.0), Level::Ok);
        assert_eq!(level(1002.0, 1000.5, 0.1), Level::Ok);
        assert_eq!(level(1010.0, 1000.0, 0.1), Level::Wrong);
        assert_eq!(level(990.0, 1000.0, 0.1), Level::Wrong);
    }
}
