//! Checks for variables of OpenTelemetry that contradict each other.

use super::{
    finding::{Findings, Subject},
    variables::Variables,
};
use crate::import::resource;

/// The infixes of the variables of each signal; the empty one is for all signals.
const SIGNALS: [&str; 4] = ["", "TRACES_", "METRICS_", "LOGS_"];

/// The settings of these variables, after `OTEL_EXPORTER_OTLP_` and the infix.
const SETTINGS: [&str; 9] = [
    "CERTIFICATE",
    "CLIENT_CERTIFICATE",
    "CLIENT_KEY",
    "COMPRESSION",
    "ENDPOINT",
    "HEADERS",
    "INSECURE",
    "PROTOCOL",
    "TIMEOUT",
];

/// The other variables of OpenTelemetry and of Pulsetrain that Pulsetrain reads.
const OTHERS: [&str; 9] = [
    "OTEL_LOGS_EXPORTER",
    "OTEL_METRICS_EXPORTER",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SDK_DISABLED",
    "OTEL_SERVICE_NAME",
    "OTEL_TRACES_EXPORTER",
    "PULSETRAIN_ATTEMPT",
    "PULSETRAIN_HEADERS",
    "PULSETRAIN_RUN_ID",
];

/// The largest distance of a name to that of a known variable which it misspells, in letters.
const MISSPELT: usize = 2;

/// The default ports of OTLP.
const GRPC_PORT: &str = "4317";
const HTTP_PORT: &str = "4318";

/// Checks the variables.
pub(super) fn check(variables: Variables<'_>, findings: &mut Findings) {
    let environment = Environment { variables };
    for signal in SIGNALS {
        environment.check_port(signal, findings);
        environment.check_path(signal, findings);
        environment.check_tls(signal, findings);
    }
    environment.check_resource(findings);
    environment.check_service(findings);
    environment.check_switch(findings);
}

/// Finds names that misspell a known variable, such as `OTEL_EXPORTER_OTLP_ENPOINT`.
pub(super) fn check_names(names: impl Iterator<Item = String>, findings: &mut Findings) {
    let of_signal =
        |infix: &'static str| SETTINGS.map(|setting| format!("OTEL_EXPORTER_OTLP_{infix}{setting}"));
    let known: Vec<String> = SIGNALS
        .into_iter()
        .flat_map(of_signal)
        .chain(OTHERS.map(str::to_owned))
        .collect();
    for name in names.filter(|name| !known.contains(name)) {
        let upper = name.to_ascii_uppercase();
        let near = known
            .iter()
            .map(|known| (strsim::damerau_levenshtein(&upper, known), known))
            .min();
        if let Some((0..=MISSPELT, known)) = near {
            findings.warn(
                place(&[&name]),
                "no variable has this name, so it has no effect",
                rename(known),
            );
        }
    }
}

/// Returns the fix of a misspelt name.
pub(super) fn rename(known: &str) -> String {
    format!("rename it to {known}")
}

struct Environment<'a> {
    variables: Variables<'a>,
}

impl Environment<'_> {
    /// Returns the name and the value of a setting of one signal, or of the setting of all signals if the signal has
    /// none.
    fn setting(&self, signal: &str, what: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}{what}");
        let of_all = format!("OTEL_EXPORTER_OTLP_{what}");
        [own, of_all]
            .into_iter()
            .find_map(|name| self.variables.get(&name).map(|value| (name, value)))
    }

    /// Returns the endpoint that is set for exactly this signal.
    fn endpoint(&self, signal: &str) -> Option<(String, String)> {
        let name = format!("OTEL_EXPORTER_OTLP_{signal}ENDPOINT");
        self.variables.get(&name).map(|value| (name, value))
    }

    /// Finds gRPC at the port of HTTP, and HTTP at the port of gRPC.
    fn check_port(&self, signal: &str, findings: &mut Findings) {
        let Some((name, endpoint)) = self.setting(signal, "ENDPOINT") else {
            return;
        };
        if ["grpc://", "grpcs://"]
            .iter()
            .any(|scheme| endpoint.starts_with(scheme))
        {
            // A wrong scheme is reported with the receiver.
            return;
        }
        let own = |setting: &str| format!("OTEL_EXPORTER_OTLP_{signal}{setting}");
        let has_own = |signal: &&str| {
            let is_set = |what| {
                self.setting(signal, what)
                    .is_some_and(|(name, _)| name.contains(*signal))
            };
            is_set("ENDPOINT") || is_set("PROTOCOL")
        };
        if signal.is_empty() && SIGNALS[1..].iter().all(has_own) {
            // No signal uses the settings of all signals alone.
            return;
        }
        let (by, variable, protocol) = match self.setting(signal, "PROTOCOL") {
            Some((name, protocol)) => (format!("{name}={protocol}"), name, protocol),
            None => (
                "no protocol is set, which means http/protobuf".to_owned(),
                "OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(),
                "http/protobuf".to_owned(),
            ),
        };
        if name != own("ENDPOINT") && variable != own("PROTOCOL") {
            // The settings of all signals are reported once.
            return;
        }
        let expected = match (protocol == "grpc", port(&endpoint)) {
            (true, Some(HTTP_PORT)) => ("gRPC", GRPC_PORT, "http/protobuf"),
            (false, Some(GRPC_PORT)) => ("HTTP", HTTP_PORT, "grpc"),
            _ => return,
        };
        let (kind, right, other) = expected;
        findings.wrong(
            place(&[&name, &variable]),
            format!("{name}={endpoint}, but {by}: receivers do not speak {kind} at that port"),
            format!("use port {right}, or {}={other}", own("PROTOCOL")),
        );
    }

    /// Finds a path in an endpoint that exporters append themselves.
    fn check_path(&self, signal: &str, findings: &mut Findings) {
        let Some((name, endpoint)) = self.endpoint(signal) else {
            return;
        };
        let signal_path = ["/v1/traces", "/v1/metrics", "/v1/logs"]
            .into_iter()
            .find(|path| endpoint.trim_end_matches('/').ends_with(path));
        if let (Some(path), "") = (signal_path, signal) {
            findings.wrong(
                place(&[&name]),
                format!(
                    "{endpoint} ends with {path}, which is added to the endpoint of all signals once more"
                ),
                format!("take {path} off"),
            );
        }
    }

    fn check_tls(&self, signal: &str, findings: &mut Findings) {
        let Some((name, endpoint)) = self.endpoint(signal) else {
            return;
        };
        let insecure = self
            .setting(signal, "INSECURE")
            .filter(|(_, value)| value == "true");
        if let Some((insecure, _)) = insecure.filter(|_| endpoint.starts_with("https://")) {
            findings.warn(
                place(&[&name, &insecure]),
                format!("{name} is https:// and {insecure} is true: the scheme wins, and TLS is used"),
                format!("unset {insecure}, or write http://"),
            );
        }
        let certificate = self.setting(signal, "CERTIFICATE");
        if let Some((certificate, _)) = certificate.filter(|_| endpoint.starts_with("http://")) {
            findings.warn(
                place(&[&name, &certificate]),
                format!("{certificate} is set, but {name} is http://: nothing is encrypted"),
                format!("write https:// in {name}"),
            );
        }
    }

    /// Finds attributes that cannot be parsed, with which every command fails.
    fn check_resource(&self, findings: &mut Findings) {
        if let Err(error) = resource::from_env(|name| self.variables.get(name)) {
            let message = error.to_string();
            findings.wrong(
                place(&["OTEL_RESOURCE_ATTRIBUTES"]),
                message.lines().next().unwrap_or_default(),
                "write OTEL_RESOURCE_ATTRIBUTES=key=value,key=value, or unset it",
            );
        }
    }

    /// Finds two different names of the service.
    fn check_service(&self, findings: &mut Findings) {
        let attributes = self.variables.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let named = attributes
            .split(',')
            .find_map(|pair| pair.trim().strip_prefix("service.name="));
        let (Some(service), Some(named)) = (self.variables.get("OTEL_SERVICE_NAME"), named) else {
            return;
        };
        if service != named {
            findings.warn(
                place(&["OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"]),
                format!("the service is {service} and {named}: OTEL_SERVICE_NAME wins"),
                "keep one of them",
            );
        }
    }

    /// Finds variables that disable the telemetry of other programs although a receiver is set.
    fn check_switch(&self, findings: &mut Findings) {
        let has_endpoint = SIGNALS.iter().any(|signal| self.endpoint(signal).is_some());
        let name = "OTEL_SDK_DISABLED";
        if has_endpoint && self.variables.get(name).as_deref() == Some("true") {
            findings.warn(
                place(&[name]),
                format!("{name}=true disables OpenTelemetry's SDKs; Pulsetrain still sends to the endpoint"),
                format!("unset {name} if you want the trainer's own telemetry"),
            );
        }
    }
}

pub(super) fn place(variables: &[&str]) -> Subject {
    Subject::Environment(variables.join(", "))
}

/// Returns the port of a URL.
fn port(endpoint: &str) -> Option<&str> {
    let (_, rest) = endpoint.split_once("://").unwrap_or(("", endpoint));
    let authority = rest.split(['/', '?']).next()?;
    let (_, port) = authority.rsplit_once(':')?;
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Vec<String> {
        let mut findings = Findings::default();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        };
        check(Variables(&variable), &mut findings);
        let all = findings.all().iter();
        all.map(|finding| format!("{} {}", finding.level, finding.what))
            .collect()
    }

    #[test]
    fn misspelt_variable_is_reported_with_the_known_name() {
        let fixes = |names: &[&str]| {
            let mut findings = Findings::default();
            check_names(names.iter().map(|name| (*name).to_owned()), &mut findings);
            let all = findings.all().iter();
            all.map(|finding| finding.advice.clone().unwrap_or_default())
                .collect::<Vec<_>>()
        };
        for (name, known) in [
            ("OTEL_EXPORTER_OTLP_ENPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
            ("OTEL_EXPORTER_OLTP_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"),
            (
                "OTEL_EXPORTER_OTLP_METRIC_ENDPOINT",
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            ),
            ("otel_service_name", "OTEL_SERVICE_NAME"),
            ("PULSETRAIN_RUNID", "PULSETRAIN_RUN_ID"),
        ] {
            assert_eq!(fixes(&[name]), [rename(known)]);
        }
        let others = [
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
            "OTEL_EXPORTER_ZIPKIN_ENDPOINT",
            "OTEL_LOG_LEVEL",
            "OTEL_PROPAGATORS",
            "PATH",
        ];
        assert_eq!(fixes(&others), [""; 0]);
    }

    #[test]
    fn protocol_that_mismatches_the_standard_port_is_reported() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert_eq!(found(&[endpoint]), [""; 0]);
        let wrong = found(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(
            wrong[0].starts_with("wrong ") && wrong[0].contains("do not speak gRPC"),
            "{wrong:?}"
        );
        let wrong = found(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317/")]);
        assert!(wrong[0].contains("do not speak HTTP"), "{wrong:?}");
        let own = [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://[::1]:4317"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
        ];
        assert_eq!(found(&own), [""; 0]);
        let of_each_signal = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"),
        ];
        assert_eq!(found(&of_each_signal), [""; 0]);
        for endpoint in [
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        ] {
            let variables = [
                (endpoint, "http://collector:4318"),
                ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ];
            let wrong = found(&variables);
            assert!(
                wrong.len() == 1 && wrong[0].contains("but OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn the_path_of_a_signal_belongs_to_the_endpoint_of_that_signal_alone() {
        let own = (
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            "http://collector:4318/v1/metrics",
        );
        assert_eq!(found(&[own]), [""; 0]);
        let of_all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/v1/metrics/");
        assert!(found(&[of_all])[0].contains("once more"));
    }

    #[test]
    fn disabled_signal_does_not_conflict_with_an_endpoint() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        assert_eq!(found(&[endpoint, ("OTEL_METRICS_EXPORTER", "none")]), [""; 0]);
    }

    #[test]
    fn conflicting_pairs_of_variables_are_reported() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector:4318");
        for (variables, words) in [
            (
                vec![endpoint, ("OTEL_EXPORTER_OTLP_INSECURE", "true")],
                "the scheme wins",
            ),
            (
                vec![
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
                    ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
                ],
                "nothing is encrypted",
            ),
            (
                vec![
                    ("OTEL_SERVICE_NAME", "a"),
                    ("OTEL_RESOURCE_ATTRIBUTES", "team=x,service.name=b"),
                ],
                "OTEL_SERVICE_NAME wins",
            ),
            (vec![endpoint, ("OTEL_SDK_DISABLED", "true")], "disables"),
        ] {
            let all = found(&variables);
            assert!(
                all.len() == 1 && all[0].starts_with("warning") && all[0].contains(words),
                "{all:?}"
            );
        }
    }
}
