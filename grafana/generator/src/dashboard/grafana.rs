//! Writes a dashboard as Grafana JSON: the classic model, which Grafana 10 to 13 read.
//!
//! The rules of `dashboard-linter` hold by construction: data sources are variables, every panel has title, description and
//! unit, variables are loaded again when the time range changes, and the dashboard is not editable.

mod panel;

use serde_json::{Value, json};

use super::{
    definition::{Annotation, Variable},
    model::Dashboard,
};

/// The version of the classic model.
const SCHEMA_VERSION: u32 = 42;

/// The tag that all dashboards have, by which they link to each other.
const TAG: &str = "pulsetrain";

/// Returns a reference to the Prometheus that the user has selected.
fn prometheus() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

/// Returns a reference to the Tempo that the user has selected.
fn tempo() -> Value {
    json!({"type": "tempo", "uid": "${tempo}"})
}

/// Returns the dashboard as Grafana imports it.
pub(crate) fn write(dashboard: &Dashboard) -> Value {
    json!({
        "annotations": {"list": annotations(dashboard)},
        "description": dashboard.description,
        "editable": false,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "id": null,
        "links": [menu()],
        "liveNow": false,
        "panels": panels(dashboard),
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "tags": [TAG],
        "templating": {"list": templating(dashboard)},
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "title": format!("Pulsetrain / {}", dashboard.title),
        "uid": dashboard.uid,
        "version": 1,
        "weekStart": "",
    })
}

/// Returns the menu of the other dashboards, which keep time range and variables.
fn menu() -> Value {
    json!({
        "asDropdown": true,
        "icon": "external link",
        "includeVars": true,
        "keepTime": true,
        "tags": [TAG],
        "targetBlank": false,
        "title": "Pulsetrain",
        "tooltip": "Other dashboards of Pulsetrain with the same selection",
        "type": "dashboards",
        "url": "",
    })
}

/// Returns all panels with their places. The panels of a row follow the row, which is a panel of its own.
fn panels(dashboard: &Dashboard) -> Vec<Value> {
    let (mut panels, mut id, mut y) = (Vec::new(), 0, 0);
    for row in &dashboard.rows {
        id += 1;
        panels.push(json!({
            "collapsed": false,
            "gridPos": {"h": 1, "w": 24, "x": 0, "y": y},
            "id": id,
            "panels": [],
            "title": row.title,
            "type": "row",
        }));
        y += 1;
        for panel in &row.panels {
            id += 1;
            panels.push(panel::write(panel, dashboard, id, y));
        }
        y += row.height;
    }
    panels
}

fn templating(dashboard: &Dashboard) -> Vec<Value> {
    let mut list = vec![data_source("datasource", "Data source", "prometheus")];
    if dashboard.needs_tempo() {
        list.push(data_source("tempo", "Tempo data source", "tempo"));
    }
    list.extend(
        dashboard
            .variables
            .iter()
            .map(|(name, definition)| variable(name, definition)),
    );
    list
}

fn data_source(name: &str, label: &str, kind: &str) -> Value {
    json!({
        "current": {"text": "default", "value": "default"},
        "hide": 0,
        "includeAll": false,
        "label": label,
        "multi": false,
        "name": name,
        "options": [],
        "query": kind,
        "refresh": 1,
        "regex": "",
        "skipUrlSync": false,
        "type": "datasource",
    })
}

fn variable(name: &str, variable: &Variable) -> Value {
    if let Some(text) = &variable.text {
        return json!({
            "current": {"text": text, "value": text},
            "description": variable.description,
            "hide": 0,
            "label": variable.label,
            "name": name,
            "options": [{"selected": true, "text": text, "value": text}],
            "query": text,
            "skipUrlSync": false,
            "type": "textbox",
        });
    }
    let label = variable.values.as_deref().unwrap_or_default();
    let series = variable.of.as_deref().unwrap_or_default();
    let query = format!("label_values({series}, {label})");
    let mut json = json!({
        "current": {"selected": true, "text": ["All"], "value": ["$__all"]},
        "datasource": prometheus(),
        "description": variable.description,
        "hide": 0,
        "includeAll": true,
        "label": variable.label,
        "multi": true,
        "name": name,
        "options": [],
        "query": {"qryType": 1, "query": query, "refId": format!("variable-{name}")},
        // Refresh on every change of the time range.
        "refresh": 2,
        "regex": "",
        "skipUrlSync": false,
        // Ascending, in alphabetical or numerical order.
        "sort": if variable.numeric { 3 } else { 1 },
        "type": "query",
    });
    if let Some(value) = variable.all.value() {
        json["allValue"] = json!(value);
    }
    json
}

fn annotations(dashboard: &Dashboard) -> Vec<Value> {
    let built_in = json!({
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": true,
        "hide": true,
        "iconColor": "rgba(0, 211, 255, 1)",
        "name": "Annotations & Alerts",
        "type": "dashboard",
    });
    let own = dashboard
        .annotations
        .iter()
        .map(|(_, definition)| annotation(definition));
    std::iter::once(built_in).chain(own).collect()
}

fn annotation(annotation: &Annotation) -> Value {
    json!({
        "datasource": prometheus(),
        "enable": true,
        "expr": annotation.expr.trim(),
        "hide": false,
        "iconColor": annotation.color,
        "name": annotation.title,
        "step": "30s",
        "tagKeys": "",
        "textFormat": annotation.text,
        "titleFormat": annotation.title,
        "useValueForTime": false,
    })
}
