//! The format of `definitions/dashboards/*.yaml`, `variables.yaml` and `annotations.yaml`.

use serde::Deserialize;

/// A dashboard: one file, named like the files that are generated from it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DashboardDefinition {
    /// Stable id of the dashboard in Grafana; links and alerts refer to it.
    pub(crate) uid: String,
    pub(crate) title: String,
    /// The question that it answers, and for whom.
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
    /// What it means, and what to do when it is bad.
    pub(crate) description: String,
    pub(crate) kind: Kind,
    /// The unit in UCUM, as in the registry; `none` for text, traces and states. `unit.rs` has the list.
    pub(crate) unit: String,
    #[serde(default)]
    pub(crate) queries: Vec<QueryDefinition>,
    pub(crate) thresholds: Option<Limits>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    /// Columns of 24.
    pub(crate) width: Option<u32>,
    /// Rows of the grid, some 30 pixels each.
    pub(crate) height: Option<u32>,
    /// The dashboard to go to from here, by the name of its file.
    pub(crate) link: Option<String>,
    /// An attribute with a closed set of values. The query selects one of them as `$state`; it is repeated for each.
    pub(crate) states: Option<String>,
    /// The labels by which the queries of a table aggregate: its first columns.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// The Markdown of a text panel.
    pub(crate) text: Option<String>,
    /// What has to run so that the panel has data.
    #[serde(default)]
    pub(crate) data: Data,
}

/// How a panel draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The newest value, large.
    Stat,
    /// The newest value on a dial; needs `max`.
    Gauge,
    /// Lines over time.
    Timeseries,
    /// Areas over time, one on the other.
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
    /// Whether the mean is that of all values since the start of the series, for what is too rare for a rate.
    #[serde(default)]
    pub(crate) since_start: bool,
    /// The name of a series, with `{{label}}` for the value of a label; the name of a column in a table.
    #[serde(default)]
    pub(crate) legend: String,
    /// Whether exemplars are shown, which link to traces.
    #[serde(default)]
    pub(crate) exemplar: bool,
    /// Whether it has data only where the query before has none.
    #[serde(default)]
    pub(crate) fallback: bool,
    /// The unit of a column, where it differs from that of the table.
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

/// What has to run so that a panel has data; the test against a real Prometheus reads it.
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
    /// An agent that follows the log of a mixture of experts by Surogate (`tests/corpus/surogate/training_moe.json`) in which one
    /// record is broken.
    Surogate,
    /// An agent that watches GPUs, real ones or those of `tests/fake-nvml`.
    Gpus,
    /// A Tempo that receives the spans of a demo of the workload rl.
    Tempo,
}

/// A variable of `variables.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    /// The name in queries and links, where it differs from the key of the entry.
    pub(crate) name: Option<String>,
    /// The name on the page.
    pub(crate) label: String,
    pub(crate) description: String,
    /// The label whose values it lists; with `of`.
    pub(crate) values: Option<String>,
    /// The series whose label it is, which may refer to other variables.
    pub(crate) of: Option<String>,
    /// What "All" means.
    #[serde(default)]
    pub(crate) all: All,
    /// Whether the values are numbers.
    #[serde(default)]
    pub(crate) numeric: bool,
    /// The initial value of a text that the user writes; instead of `values`.
    pub(crate) text: Option<String>,
    /// What has to run so that there are values.
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
    /// The values of the list, so that the filter of a variable before it holds.
    Listed,
}

impl All {
    /// Returns the value of "All", or `None` where it is the list of values.
    pub(crate) fn value(self) -> Option<&'static str> {
        match self {
            Self::Any => Some(".*"),
            Self::Listed => None,
        }
    }
}

/// An annotation of `annotations.yaml`: a mark on every panel where a query has a value.
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
    /// What has to run so that there are marks.
    #[serde(default)]
    pub(crate) data: Data,
}
