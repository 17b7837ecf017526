//! Writes one panel as Perses JSON. The options are those of the plugins that match Perses 0.52.

use serde_json::{Map, Value, json};

use super::super::{
    definition::PanelKind,
    model::{Dashboard, Panel, PanelQuery, Step},
};

/// The colors of states, from the first to the last one.
const STATE_COLORS: [&str; 8] = [
    "#37872D", "#1F60C4", "#E0B400", "#8F3BB8", "#FA6400", "#C4162A", "#6D9EEB", "#B877D9",
];

/// Returns a panel.
pub(crate) fn write(panel: &Panel, dashboard: &Dashboard) -> Value {
    let mut spec = json!({
        "display": {"name": title(panel), "description": panel.description},
        "plugin": {"kind": plugin(panel.kind), "spec": options(panel)},
        "queries": queries(panel, dashboard),
    });
    if let Some(link) = &panel.link {
        let parameters: Vec<_> = dashboard
            .variables
            .iter()
            .map(|(name, _)| format!("${{{name}:queryparam}}"))
            .collect();
        spec["links"] = json!([{
            "name": format!("Open {}", link.name.replace('-', " ")),
            "renderVariables": true,
            "targetBlank": false,
            "url": format!("/projects/{}/dashboards/{}?{}", super::PROJECT, link.name, parameters.join("&")),
        }]);
    }
    json!({"kind": "Panel", "spec": spec})
}

/// Returns the title, with the unit if Perses cannot show it with the values.
fn title(panel: &Panel) -> String {
    match panel.unit.symbol {
        "" => panel.title.clone(),
        symbol => format!("{} ({symbol})", panel.title),
    }
}

fn plugin(kind: PanelKind) -> &'static str {
    match kind {
        PanelKind::Stat => "StatChart",
        PanelKind::Gauge => "GaugeChart",
        PanelKind::Timeseries | PanelKind::Stacked => "TimeSeriesChart",
        PanelKind::Bars => "BarChart",
        PanelKind::Heatmap => "HeatMapChart",
        PanelKind::StateTimeline => "StatusHistoryChart",
        PanelKind::Table => "Table",
        PanelKind::Traces => "TraceTable",
        PanelKind::Text => "Markdown",
    }
}

/// Returns the queries. A heatmap draws exactly one query, of a native histogram, so it has no fallback to classic buckets.
fn queries(panel: &Panel, dashboard: &Dashboard) -> Vec<Value> {
    let drawn = if panel.kind == PanelKind::Heatmap {
        1
    } else {
        panel.queries.len()
    };
    panel.queries[..drawn]
        .iter()
        .map(|query| one_query(panel, query, dashboard))
        .collect()
}

fn one_query(panel: &Panel, query: &PanelQuery, dashboard: &Dashboard) -> Value {
    let (kind, plugin) = if panel.kind == PanelKind::Traces {
        let spec = json!({"limit": 20, "query": initial_values(&query.expr, dashboard)});
        ("TraceQuery", json!({"kind": "TempoTraceQuery", "spec": spec}))
    } else {
        let spec = json!({"query": query.expr, "seriesNameFormat": query.legend});
        (
            "TimeSeriesQuery",
            json!({"kind": "PrometheusTimeSeriesQuery", "spec": spec}),
        )
    };
    json!({"kind": kind, "spec": {"plugin": plugin}})
}

/// Writes the initial values of variables into a TraceQL query: the Tempo plugin of Perses 0.52 does not replace variables.
fn initial_values(query: &str, dashboard: &Dashboard) -> String {
    dashboard
        .variables
        .iter()
        .fold(query.to_owned(), |query, (name, variable)| {
            query.replace(&format!("${name}"), variable.text.as_deref().unwrap_or(".*"))
        })
}

fn options(panel: &Panel) -> Value {
    let format = panel.unit.perses_format();
    let legend = json!({"mode": "list", "position": "bottom", "size": "small"});
    let mut options = match panel.kind {
        PanelKind::Stat => json!({"calculation": "last-number", "format": format, "sparkline": {}}),
        PanelKind::Gauge => json!({"calculation": "last-number", "format": format, "max": panel.max}),
        PanelKind::Timeseries | PanelKind::Stacked => time_series(panel, &format, &legend),
        PanelKind::Bars => {
            json!({"calculation": "last-number", "format": format, "mode": "value", "sort": "desc"})
        }
        PanelKind::Heatmap => json!({
            "countFormat": {"unit": "decimal", "shortValues": true},
            "showVisualMap": true,
            "yAxisFormat": format,
        }),
        PanelKind::StateTimeline => json!({"legend": legend, "mappings": mappings(panel)}),
        PanelKind::Table => return table(panel),
        PanelKind::Traces => json!({}),
        PanelKind::Text => json!({"text": panel.text}),
    };
    if !panel.steps.is_empty()
        && matches!(
            panel.kind,
            PanelKind::Stat | PanelKind::Gauge | PanelKind::Timeseries
        )
    {
        options["thresholds"] = thresholds(&panel.steps);
    }
    options
}

fn time_series(panel: &Panel, format: &Value, legend: &Value) -> Value {
    let is_stacked = panel.kind == PanelKind::Stacked;
    let mut y_axis = Map::from_iter([("format".to_owned(), format.clone())]);
    for (key, value) in [("min", panel.min), ("max", panel.max)] {
        if let Some(value) = value {
            y_axis.insert(key.to_owned(), json!(value));
        }
    }
    let mut visual = json!({
        "areaOpacity": if is_stacked { 0.6 } else { 0.0 },
        // A gap separates two attempts; no line connects them.
        "connectNulls": false,
        "display": "line",
        "lineWidth": 1.25,
    });
    if is_stacked {
        visual["stack"] = json!("all");
    }
    json!({"legend": legend, "visual": visual, "yAxis": y_axis})
}

fn thresholds(steps: &[Step]) -> Value {
    let lowest = steps.first().map(|step| step.color.rgb());
    let steps: Vec<Value> = steps
        .iter()
        .skip(1)
        .map(|step| json!({"color": step.color.rgb(), "value": step.from}))
        .collect();
    json!({"defaultColor": lowest, "mode": "absolute", "steps": steps})
}

/// Returns the texts and colors of states. A series that is a state of its own is red while it is 1.
fn mappings(panel: &Panel) -> Vec<Value> {
    let one = |value: usize, text: &str, color: &str| json!({"kind": "Value", "spec": {"value": value.to_string(), "result": {"color": color, "value": text}}});
    if panel.states.is_empty() {
        return vec![one(0, "no", "#37872D"), one(1, "yes", "#C4162A")];
    }
    let color = |index| STATE_COLORS[index % STATE_COLORS.len()];
    panel
        .states
        .iter()
        .enumerate()
        .map(|(index, state)| one(index + 1, state, color(index)))
        .collect()
}

/// Joins the queries of a table: a row for each combination of labels, a column for each query, without the time.
fn table(panel: &Panel) -> Value {
    let is_single = panel.queries.len() == 1;
    let values = panel.queries.iter().enumerate().map(|(index, query)| {
        let name = if is_single {
            "value".to_owned()
        } else {
            format!("value #{}", index + 1)
        };
        json!({"format": query.unit.perses_format(), "header": query.legend, "name": name})
    });
    let hidden = std::iter::once(json!({"hide": true, "name": "timestamp"}));
    let labels = panel.columns.iter().map(|label| json!({"name": label}));
    let transforms: Vec<Value> = if is_single {
        Vec::new()
    } else {
        let merged = panel
            .columns
            .iter()
            .map(|label| json!({"kind": "MergeIndexedColumns", "spec": {"column": label}}));
        let joined = json!({"kind": "JoinByColumnValue", "spec": {"columns": panel.columns}});
        merged.chain([joined]).collect()
    };
    json!({
        "columnSettings": labels.chain(values).chain(hidden).collect::<Vec<_>>(),
        "density": "compact",
        "transforms": transforms,
    })
}
