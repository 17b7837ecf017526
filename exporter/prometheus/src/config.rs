//! The settings of the Prometheus endpoint.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use pulsetrain_net::{Exposure, ListenAddress};

use super::PrometheusError;

/// The settings of the Prometheus endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusConfig {
    /// The listen address: TCP or a Unix socket. Default `127.0.0.1:9464`, the port that OpenTelemetry reserves for it.
    pub listen: ListenAddress,
    /// The permissions of a Unix socket. A scraper needs write permission.
    pub socket_mode: u32,
    /// Access control: remote clients, TLS and credentials. Default: this machine only, without TLS and
    /// credentials.
    pub exposure: Exposure,
    /// The path of the page. Default `/metrics`.
    pub path: String,
    /// The resource attributes that become labels of every series. All others are in `target_info` only.
    /// Default `train.run.id`, `train.run.name`, `service.instance.id`, `host.name`, `train.rank`,
    /// `train.attempt`: after a restart, the counters of a rank start at zero in new series.
    pub resource_labels: Vec<String>,
    /// Whether every series has the labels `otel_scope_name`, `otel_scope_version` and
    /// `otel_scope_schema_url`. Default false, as in Prometheus' own OTLP receiver.
    pub scope_labels: bool,
    /// The maximum number of series. Points of further series are rejected and counted. A histogram with all
    /// its buckets is one series. Internal metrics (`pulsetrain.*`) have a reserve beyond the limit. Default
    /// 200,000, about 60 MB.
    pub series_limit: usize,
    /// The maximum memory of series, names, help texts and resources in bytes. Points beyond it are rejected
    /// and counted. The allocator adds 10 to 30 percent. Default 256 MiB.
    pub max_bytes: usize,
    /// The time without points after which a series ends, or `None` for no limit. Default 24 hours, longer
    /// than the time between two evaluations. At `series_limit` or `max_bytes`, the stalest series end
    /// earlier, but not before 5 minutes.
    pub series_stale_after: Option<Duration>,
    /// The time without telemetry after which all series of a resource (a run, a rank) end. Default 10
    /// minutes, longer than a checkpoint.
    pub stale_after: Duration,
    /// The time without progress after which a connection is closed. Default 2 minutes, longer than most
    /// scrape intervals, so that scrapers keep their connections.
    pub idle_timeout: Duration,
    /// The translation of names to Prometheus names. Default [`Translation::UnderscoreEscapingWithSuffixes`].
    pub translation: Translation,
}

/// The translation of names to Prometheus names: OpenTelemetry's `translation_strategy`.
///
/// Characters that a client cannot read are escaped by the scheme that it requests, or with underscores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Translation {
    /// `gpu.power` in watts is `gpu_power_watts`, the default of Prometheus and the Collector.
    #[default]
    UnderscoreEscapingWithSuffixes,
    /// `gpu.power` in watts is `gpu_power`.
    UnderscoreEscapingWithoutSuffixes,
    /// `gpu.power` in watts is `gpu.power_watts`.
    NoUtf8EscapingWithSuffixes,
    /// `gpu.power` is `gpu.power`.
    NoTranslation,
}

impl Default for PrometheusConfig {
    fn default() -> Self {
        let labels = [
            "train.run.id",
            "train.run.name",
            "service.instance.id",
            "host.name",
            "train.rank",
            "train.attempt",
        ];
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464).into(),
            socket_mode: 0o660,
            exposure: Exposure::default(),
            path: "/metrics".to_owned(),
            resource_labels: labels.map(str::to_owned).to_vec(),
            scope_labels: false,
            series_limit: 200_000,
            max_bytes: 256 << 20,
            series_stale_after: Some(Duration::from_secs(24 * 3600)),
            stale_after: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            translation: Translation::default(),
        }
    }
}

impl PrometheusConfig {
    /// Returns whether the series kept under these settings are those kept under `other`, which differs only
    /// in how they are served.
    pub fn has_same_series_settings(&self, other: &Self) -> bool {
        let Self {
            listen,
            socket_mode,
            exposure,
            path,
            idle_timeout,
            ..
        } = other.clone();
        let served_alike = Self {
            listen,
            socket_mode,
            exposure,
            path,
            idle_timeout,
            ..self.clone()
        };
        served_alike == *other
    }

    /// Validates the settings without side effects.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), PrometheusError> {
        if !self.path.starts_with('/') || self.path.contains(['?', '#', ' ']) {
            return Err(PrometheusError::Setting {
                name: "path",
                value: self.path.clone(),
                expected: "give a path that starts with a slash, such as /metrics",
            });
        }
        if self.idle_timeout < Duration::from_secs(1) {
            return Err(PrometheusError::Setting {
                name: "idle_timeout",
                value: format!("{:?}", self.idle_timeout),
                expected: "no scraper is as fast as that: give 1s or more",
            });
        }
        if let Some(address) = self.listen.tcp() {
            self.exposure.check_address(address)?;
        }
        Ok(())
    }
}

impl Translation {
    /// Returns whether names keep characters that Prometheus before version 3 does not accept.
    pub(crate) fn keeps_utf8(self) -> bool {
        matches!(self, Self::NoUtf8EscapingWithSuffixes | Self::NoTranslation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_address_or_path_keeps_the_series_and_a_changed_limit_does_not() {
        let kept = PrometheusConfig::default();
        let moved = PrometheusConfig {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9465).into(),
            path: "/other".to_owned(),
            ..PrometheusConfig::default()
        };
        assert!(kept.has_same_series_settings(&moved));
        let smaller = PrometheusConfig {
            series_limit: 7,
            ..moved
        };
        assert!(!kept.has_same_series_settings(&smaller));
    }

    #[test]
    fn settings_that_prevent_scraping_are_rejected() {
        let hasty = PrometheusConfig {
            idle_timeout: Duration::from_millis(100),
            ..PrometheusConfig::default()
        };
        let error = hasty.check().unwrap_err().to_string();
        assert!(
            error.contains("idle_timeout is \"100ms\"") && error.contains("give 1s or more"),
            "{error}"
        );
        assert!(PrometheusConfig::default().check().is_ok());
    }
}
