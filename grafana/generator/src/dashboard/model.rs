//! A dashboard after the checks: with numbers for thresholds, states for `$state` and a position for each panel.

use std::collections::BTreeSet;

use super::{
    definition::{Annotation, Data, PanelKind, Variable},
    layout::Position,
    unit::Unit,
};

/// A dashboard.
#[derive(Clone, Debug)]
pub(crate) struct Dashboard {
    /// The name of its files, without extension.
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) variables: Vec<(String, Variable)>,
    pub(crate) annotations: Vec<(String, Annotation)>,
    pub(crate) rows: Vec<Row>,
}

/// A row of panels.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) title: String,
    /// Height in rows of the grid.
    pub(crate) height: u32,
    pub(crate) panels: Vec<Panel>,
}

/// A panel.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// The title as an identifier, unique in the dashboard.
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) kind: PanelKind,
    pub(crate) unit: &'static Unit,
    pub(crate) queries: Vec<PanelQuery>,
    /// The color of values below the first step, then steps in ascending order; empty without thresholds.
    pub(crate) steps: Vec<Step>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    /// The position, relative to the top of the row.
    pub(crate) position: Position,
    pub(crate) link: Option<Link>,
    /// The names of the values 1, 2, ... of a state timeline; empty if each series is a state of its own.
    pub(crate) states: Vec<&'static str>,
    /// The labels of a table: its first columns.
    pub(crate) columns: Vec<String>,
    pub(crate) text: String,
    pub(crate) data: Data,
}

/// A query of a panel.
#[derive(Clone, Debug)]
pub(crate) struct PanelQuery {
    pub(crate) expr: String,
    pub(crate) legend: String,
    pub(crate) exemplar: bool,
    /// Whether the query applies only where the previous query has no data.
    pub(crate) fallback: bool,
    /// The unit of its column in a table.
    pub(crate) unit: &'static Unit,
    /// The Prometheus names of the metrics that it selects.
    pub(crate) metrics: BTreeSet<String>,
}

/// The color of values from a limit up to the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The lower limit, or `None` for all values below the next step.
    pub(crate) from: Option<f64>,
    pub(crate) color: Color,
}

/// The state of a value as a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    Good,
    Warning,
    Critical,
}

impl Color {
    /// The color in RGB, readable on light and dark pages.
    pub(crate) fn rgb(self) -> &'static str {
        match self {
            Self::Good => "#37872D",
            Self::Warning => "#FA6400",
            Self::Critical => "#C4162A",
        }
    }
}

/// A link to another dashboard, which keeps the selection.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The name of its files.
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Dashboard {
    /// Iterates over all panels, from top to bottom.
    pub(crate) fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.rows.iter().flat_map(|row| &row.panels)
    }

    /// Returns whether a panel queries traces or shows exemplars.
    pub(crate) fn needs_tempo(&self) -> bool {
        self.panels()
            .any(|panel| panel.kind == PanelKind::Traces || panel.queries.iter().any(|query| query.exemplar))
    }
}
