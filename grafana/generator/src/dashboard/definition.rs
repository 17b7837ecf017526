//! The format of `definitions/dashboards/*.yaml`, `variables.yaml` and `annotations.yaml`.

use serde::Deserialize;

/// A dashboard: one file, named like the files that are generated from it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DashboardDefinition {
    /// Stable id of the dashboard in Grafana; links and alerts refer to it.
    pub(crate) uid: String,
    pub(crate) title: String,
    /// The question that the dashboard answers, and its audience.
    pub(crate) description: String,
    /// Names of `variables.yaml`, in the order of the page; a variable follows those that it depends on.
    #[serde(default)]
    pub(crate) variables: Vec<String>,
    /// Names of `annotations.yaml`.
    #[serde(default)]
    pub(crate) annotations: Vec<String>,
    pub(crate) rows: Vec<RowDefinition>,
}

/// A row of panels under a title.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowDefinition {
    pub(crate) title: String,
    pub(crate) panels: Vec<PanelDefinition>,
}

/// A panel. Width and height have defaults by kind; panels flow from left to right.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PanelDefinition {
    pub(crate) title: String,
    /// The meaning of the panel, and the action if the value is bad.
    pub(crate) description: String,
    pub(crate) kind: PanelKind,
    /// The unit in UCUM, as in the registry; `none` for text, traces and states. `unit.rs` has the list.
    pub(crate) unit: String,
    #[serde(default)]
    pub(crate) queries: Vec<QueryDefinition>,
    pub(crate) thresholds: Option<Limits>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    /// Width, in columns of 24 per page.
    pub(crate) width: Option<u32>,
    /// Height, in rows of the grid of about 30 pixels each.
    pub(crate) height: Option<u32>,
    /// The dashboard that the panel links to, by the name of its file.
    pub(crate) link: Option<String>,
    /// An attribute with a closed set of values. The query selects one value as `$state`; the query is repeated for each value.
    pub(crate) states: Option<String>,
    /// The labels by which the queries of a table aggregate; they are its first columns.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// The Markdown of a text panel.
    pub(crate) text: Option<String>,
    /// The program that must run so that the panel has data.
    #[serde(default)]
    pub(crate) data: Data,
}

/// The visualization of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PanelKind {
    /// The newest value, large.
    Stat,
    /// The newest value on a dial; needs `max`.
    Gauge,
    /// Lines over time.
    Timeseries,
    /// Areas over time, stacked.
    Stacked,
    /// The newest values as bars.
    Bars,
    /// A distribution over time.
    Heatmap,
    /// States over time.
    StateTimeline,
    /// The newest values, a row for each combination of labels and a column for each query.
    Table,
    /// Traces that a TraceQL query finds.
    Traces,
    /// Markdown.
    Text,
}

/// A query: `expr`, or the mean or a quantile of a histogram, over `$__rate_interval` if nothing else is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryDefinition {
    /// PromQL, or TraceQL for traces.
    pub(crate) expr: Option<String>,
    /// The selector of a histogram whose mean is drawn.
    pub(crate) mean: Option<String>,
    /// A quantile, from 0 to 1, of the histogram that `of` selects.
    pub(crate) quantile: Option<f64>,
    pub(crate) of: Option<String>,
    /// The labels that the mean or quantile keeps.
    #[serde(default)]
    pub(crate) by: Vec<String>,
    /// Whether to draw the mean of all values since the start of the series, for values that are too rare for a rate.
    #[serde(default)]
    pub(crate) since_start: bool,
    /// The name of a series, with `{{label}}` for the value of a label; the name of a column in a table.
    #[serde(default)]
    pub(crate) legend: String,
    /// Whether exemplars are shown, which link to traces.
    #[serde(default)]
    pub(crate) exemplar: bool,
    /// Whether the query applies only where the previous query has no data.
    #[serde(default)]
    pub(crate) fallback: bool,
    /// The unit of a column, if it differs from that of the table.
    pub(crate) unit: Option<String>,
}

/// The values at which a panel turns orange and red.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Limits {
    /// High values are bad.
    Above(Levels),
    /// Low values are bad.
    Below(Levels),
}

/// Numbers, or `${threshold.NAME}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Levels {
    pub(crate) warning: Option<Number>,
    pub(crate) critical: Option<Number>,
}

/// A number, or a reference to one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Value(f64),
    Reference(String),
}

/// The program that must run so that a panel has data; the test against a real Prometheus reads this value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Any demo.
    #[default]
    Demo,
    /// `pulsetrain demo --workload sft`.
    Sft,
    /// `pulsetrain demo --workload rl`.
    Rl,
    /// The demo with this fault.
    Fault(String),
    /// `pulsetrain agent` with a receiver, a sink and its own telemetry.
    Agent,
    /// An agent with a sink whose receiver cannot be reached.
    DeadSink,
    /// An agent that follows a Surogate log of a mixture of experts (`tests/corpus/surogate/training_moe.json`) with one broken
    /// record.
    Surogate,
    /// An agent that monitors GPUs, real ones or those of `tests/fake-nvml`.
    Gpus,
    /// A Tempo that receives the spans of a demo of the workload rl.
    Tempo,
}

/// A variable of `variables.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    /// The name in queries and links, if it differs from the key of the entry.
    pub(crate) name: Option<String>,
    /// The name on the page.
    pub(crate) label: String,
    pub(crate) description: String,
    /// The label that provides the values; requires `of`.
    pub(crate) values: Option<String>,
    /// The series that have the label; the selector may refer to other variables.
    pub(crate) of: Option<String>,
    /// The meaning of "All".
    #[serde(default)]
    pub(crate) all: All,
    /// Whether the values are numbers.
    #[serde(default)]
    pub(crate) numeric: bool,
    /// The initial value of a text variable, which the user can edit; instead of `values`.
    pub(crate) text: Option<String>,
    /// The program that must run so that the variable has values.
    #[serde(default)]
    pub(crate) data: Data,
}

/// The value of "All" of a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum All {
    /// The regular expression `.*`, which also matches series without the label.
    #[default]
    Any,
    /// The values of the list, so that the filters of earlier variables apply.
    Listed,
}

impl All {
    /// Returns the value of "All", or `None` if it is the list of values.
    pub(crate) fn value(self) -> Option<&'static str> {
        match self {
            Self::Any => Some(".*"),
            Self::Listed => None,
        }
    }
}

/// An annotation of `annotations.yaml`: a mark on every panel at each time at which a query has a value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Annotation {
    /// The name on the page.
    pub(crate) title: String,
    pub(crate) expr: String,
    /// The text of a mark, with `{{label}}` for the value of a label.
    pub(crate) text: String,
    /// A color by its name in Grafana.
    pub(crate) color: String,
    /// The program that must run so that there are marks.
    #[serde(default)]
    pub(crate) data: Data,
}
