//! The list of all queries of all dashboards, for tests that run them against real programs.

use super::{
    definition::{Data, PanelKind},
    model::Dashboard,
};

/// A query of a dashboard.
#[derive(Clone, Debug)]
pub struct DashboardQuery {
    /// The name of the dashboard's files, without extension.
    pub dashboard: String,
    /// The panel, or `annotation NAME`, or `variable NAME`.
    pub place: String,
    /// The query, with thresholds and states filled in and with variables as they are in the files.
    pub expr: String,
    /// The language of the query.
    pub language: Language,
    /// The program that must run so that the query has data.
    pub data: Data,
    /// Whether the query applies only where the previous query has no data.
    pub fallback: bool,
}

/// The language of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// PromQL, for Prometheus.
    PromQl,
    /// TraceQL, for Tempo.
    TraceQl,
    /// A selector of series in PromQL, for `/api/v1/series`: the values of a variable.
    Selector,
}

/// Returns the queries of a dashboard: those of panels, then of annotations, then of variables.
pub(crate) fn list(dashboard: &Dashboard) -> Vec<DashboardQuery> {
    let query = |place: String, expr: &str, language, data: &Data| DashboardQuery {
        dashboard: dashboard.name.clone(),
        place,
        expr: expr.to_owned(),
        language,
        data: data.clone(),
        fallback: false,
    };
    let of_panels = dashboard.panels().flat_map(|panel| {
        let language = if panel.kind == PanelKind::Traces {
            Language::TraceQl
        } else {
            Language::PromQl
        };
        panel.queries.iter().map(move |of_panel| DashboardQuery {
            fallback: of_panel.fallback,
            ..query(panel.title.clone(), &of_panel.expr, language, &panel.data)
        })
    });
    let of_annotations = dashboard.annotations.iter().map(|(name, annotation)| {
        query(
            format!("annotation {name}"),
            annotation.expr.trim(),
            Language::PromQl,
            &annotation.data,
        )
    });
    let of_variables = dashboard.variables.iter().filter_map(|(name, variable)| {
        let series = variable.of.as_deref()?;
        Some(query(
            format!("variable {name}"),
            series,
            Language::Selector,
            &variable.data,
        ))
    });
    of_panels.chain(of_annotations).chain(of_variables).collect()
}
