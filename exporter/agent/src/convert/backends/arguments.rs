//! The arguments of `convert` for trace stores.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use pulsetrain_backends::BackendOptions;
use pulsetrain_net::client::{ClientTls, Identity, NamedFile};
use pulsetrain_pipeline::Problem;

use crate::{config::parsed_time, failure::Failure};

/// The header by which Tempo, Mimir and Loki distinguish tenants.
const TENANT: &str = "X-Scope-OrgID";

/// The trace and metric stores to query.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tempo, Jaeger and Prometheus")]
pub(crate) struct BackendArguments {
    /// Fetch traces from this Tempo, such as http://localhost:3200
    #[arg(long, value_name = "URL")]
    pub(crate) tempo: Option<String>,

    /// Fetch traces from this Jaeger, such as http://localhost:16686
    #[arg(long, value_name = "URL")]
    pub(crate) jaeger: Option<String>,

    /// Add the metrics of the same time range from this Prometheus, such as http://localhost:9090
    #[arg(long, value_name = "URL", requires = "selectors")]
    pub(crate) prometheus: Option<String>,

    /// The TraceQL query that selects traces in Tempo
    #[arg(long, value_name = "TRACEQL", requires = "tempo")]
    pub(crate) query: Option<String>,

    /// The trace with this id. May be a comma-separated list, or repeated
    #[arg(long = "trace-id", value_name = "ID", value_delimiter = ',', value_parser = trace_id)]
    pub(crate) trace_ids: Vec<String>,

    /// The traces of this service in Jaeger
    #[arg(long, value_name = "NAME", requires = "jaeger")]
    pub(crate) service: Option<String>,

    /// Only traces with this operation of the service
    #[arg(long, value_name = "NAME", requires = "service")]
    pub(crate) operation: Option<String>,

    /// A series selector, which returns every scraped sample, or a PromQL expression, which is evaluated at intervals. May be
    /// repeated
    #[arg(
        long = "match",
        id = "selectors",
        value_name = "SELECTOR",
        requires = "prometheus"
    )]
    pub(crate) selectors: Vec<String>,

    /// How far back to search, without --window
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(crate) since: Duration,

    /// The maximum number of traces of a search
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = at_least_one)]
    pub(crate) limit: usize,

    /// The number of traces to fetch in parallel
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = at_least_one)]
    pub(crate) parallel: usize,

    /// The timeout of each request
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,

    /// The tenant of a multi-tenant store (X-Scope-OrgID)
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,

    /// Trust the certificate authorities in this PEM file instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// The client certificate for mutual TLS, a PEM file
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub(crate) client_certificate: Option<PathBuf>,

    /// The private key of the client certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    pub(crate) client_key: Option<PathBuf>,

    /// A header of every request, `Name: value`. May be repeated. The environment variable has one header per line, and keeps
    /// secrets out of the process list
    #[arg(long = "header", value_name = "HEADER", env = "PULSETRAIN_HEADERS", hide_env_values = true,
        value_delimiter = '\n', value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
}

impl BackendArguments {
    /// Returns whether metrics are requested from Prometheus.
    pub(in crate::convert) fn asks_for_metrics(&self) -> bool {
        self.prometheus.is_some()
    }

    /// Checks that concern several arguments.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let names_traces = !self.trace_ids.is_empty();
        if self.tempo.is_some() && self.query.is_none() && !names_traces {
            return Err(Failure::usage(
                "--tempo needs to know which traces: give --query '{ resource.service.name = \"trainer\" }' or --trace-id",
            ));
        }
        if self.jaeger.is_some() && self.service.is_none() && !names_traces {
            return Err(Failure::usage(
                "--jaeger needs to know which traces: give --service NAME or --trace-id",
            ));
        }
        if names_traces && self.tempo.is_none() && self.jaeger.is_none() {
            return Err(Failure::usage(
                "--trace-id needs to know who has the trace: give --tempo or --jaeger",
            ));
        }
        Ok(())
    }

    /// Returns the options of the requests to the stores.
    pub(super) fn options(&self) -> BackendOptions {
        let identity = self.client_certificate.as_ref().zip(self.client_key.as_ref());
        let tenant = self.tenant.iter().map(|id| (TENANT.to_owned(), id.clone()));
        BackendOptions {
            headers: self.headers.iter().cloned().chain(tenant).collect(),
            timeout: self.timeout,
            max_traces: self.limit,
            tls: ClientTls {
                authority: self.ca.as_ref().map(|path| named("--ca", path)),
                identity: identity.map(|(certificate, key)| Identity {
                    certificate: named("--client-certificate", certificate),
                    key: named("--client-key", key),
                }),
                ..ClientTls::default()
            },
            variable: |name| std::env::var(name).ok(),
        }
    }
}

fn named(option: &str, path: &Path) -> NamedFile {
    NamedFile {
        variable: option.to_owned(),
        path: path.to_owned(),
    }
}

fn trace_id(text: &str) -> Result<String, Problem> {
    let digits = text.trim();
    let is_id = (1..=32).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_id {
        Ok(format!("{:0>32}", digits.to_ascii_lowercase()))
    } else {
        Err("is not a trace id: write up to 32 hexadecimal digits".into())
    }
}

fn header(text: &str) -> Result<(String, String), Problem> {
    let (name, value) = text
        .split_once(':')
        .ok_or("is not a header: write it like 'Authorization: Bearer TOKEN'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn duration(text: &str) -> Result<Duration, Problem> {
    match parsed_time(text)? {
        Duration::ZERO => Err("must be longer than zero".into()),
        duration => Ok(duration),
    }
}

fn at_least_one(text: &str) -> Result<usize, Problem> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "is not a number above zero".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_without_leading_zeros_matches() {
        assert_eq!(trace_id("1A").unwrap(), format!("{:0>32}", "1a"));
        for text in ["", "xyz", &"1".repeat(33)] {
            assert!(trace_id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        assert_eq!(
            header("Authorization: Bearer a:b"),
            Ok(("Authorization".to_owned(), "Bearer a:b".to_owned()))
        );
        assert!(header("Authorization").is_err());
        assert!(duration("0s").is_err() && duration("1h").is_ok() && at_least_one("0").is_err());
    }
}
