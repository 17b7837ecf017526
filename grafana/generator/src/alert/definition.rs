//! The file formats of `definitions/alerts/*.yaml`, `recording.yaml` and `links.yaml`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A group of alerts: one file in `definitions/alerts`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name of the group; the name of its file.
    #[serde(skip)]
    pub name: String,
    /// Evaluation interval of the rules, such as `30s`.
    pub interval: String,
    /// The alerts.
    pub alerts: Vec<Alert>,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    /// Name of the alert and of its runbook.
    pub name: String,
    /// PromQL that returns a series for each thing that is wrong; `${threshold.NAME}` is a number of `thresholds.yaml`.
    pub expr: String,
    /// Time for which the expression must hold, such as `10m`; `None` if one evaluation is enough.
    #[serde(rename = "for", default)]
    pub pending: Option<String>,
    /// Time for which the alert keeps firing after the expression has ended.
    #[serde(default)]
    pub keep_firing_for: Option<String>,
    /// The urgency of the alert.
    pub severity: Severity,
    /// One line: the problem, and where it is. Texts may refer to thresholds as well.
    pub summary: String,
    /// The meaning of the alert, and the first step of the operator.
    pub description: String,
    /// `uid` of the dashboard that shows it.
    pub dashboard: String,
    /// Cases for promtool.
    pub tests: Vec<AlertTest>,
    /// The way to make it fire in the demo.
    #[serde(default)]
    pub demo: Demo,
    /// Fault of a real agent that makes it fire, if the demo cannot: a name in `tests/tests/judges/grafana/agent_faults.rs`.
    #[serde(default)]
    pub agent: Option<String>,
}

/// The urgency of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The run has stopped or loses work: act now.
    Critical,
    /// The run is slow or in danger: act today.
    Warning,
    /// Worth knowing; no one is paged.
    Info,
}

impl Severity {
    /// The value of the label `severity`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// Series over time, and the times at which the alert fires on them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertTest {
    /// The scenario of the test.
    pub name: String,
    /// Time between two values of a series; one minute by default.
    #[serde(default)]
    pub interval: Option<String>,
    /// Series and their values in promtool's notation, such as `0x10 1x20`.
    pub series: BTreeMap<String, String>,
    /// Times at which the alert does not fire.
    #[serde(default)]
    pub silent: Vec<String>,
    /// A time at which it fires.
    #[serde(default)]
    pub fires: Option<Fires>,
    /// A later time at which it no longer fires.
    #[serde(default)]
    pub resolved: Option<String>,
}

/// An alert that fires in a test.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fires {
    /// The time.
    pub at: String,
    /// Its labels, without `alertname` and `severity`.
    pub labels: BTreeMap<String, String>,
    /// The value of the expression, as the annotations show it.
    pub value: f64,
}

/// The way to make an alert fire in the demo, or the reason why the demo cannot.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    /// Faults of `pulsetrain demo`, as on its command line; the first one is that of the alert.
    #[serde(default)]
    pub faults: Vec<String>,
    /// The workload; `sft` by default.
    #[serde(default)]
    pub workload: Option<String>,
    /// The reason why the demo has no such fault.
    #[serde(default)]
    pub none: Option<String>,
}

/// A recording rule.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Name of the series: `level:metric:operation`.
    pub record: String,
    /// PromQL.
    pub expr: String,
    /// The purpose of the rule; a comment in the definition only.
    pub description: String,
}

/// Recording rules: `definitions/recording.yaml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordingFile {
    /// Evaluation interval of the rules.
    pub(super) interval: String,
    /// The rules.
    pub(super) rules: Vec<Recording>,
}

/// The targets of the links in alerts: `definitions/links.yaml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Links {
    /// URL of the folder of runbooks, with a slash at its end.
    pub runbooks: String,
    /// URL of Grafana, without a slash at its end.
    pub grafana: String,
    /// `uid` of the Prometheus data source that Grafana-managed alerts query.
    pub datasource: String,
}
