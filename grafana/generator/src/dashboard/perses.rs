//! Writes a dashboard as Perses JSON, version 0.52, with the queries of its Grafana twin.
//!
//! Perses has no annotations and no exemplars, so these are in Grafana only.

mod panel;

use serde_json::{Map, Value, json};

use super::{definition::Variable, model::Dashboard};

/// The project that the dashboards belong to.
const PROJECT: &str = "pulsetrain";

/// The time of creation; constant, so that the generated files do not change.
const CREATED: &str = "2026-01-01T00:00:00Z";

/// Returns the dashboard as Perses stores it.
pub(crate) fn write(dashboard: &Dashboard) -> Value {
    let panels: Map<String, Value> = dashboard
        .panels()
        .map(|panel| (panel.key.clone(), panel::write(panel, dashboard)))
        .collect();
    json!({
        "kind": "Dashboard",
        "metadata": {
            "createdAt": CREATED,
            "name": dashboard.name,
            "project": PROJECT,
            "updatedAt": CREATED,
            "version": 0,
        },
        "spec": {
            "display": {"name": dashboard.title, "description": dashboard.description},
            "duration": "1h",
            "layouts": layouts(dashboard),
            "panels": panels,
            "refreshInterval": "30s",
            "variables": dashboard.variables.iter().map(|(name, definition)| variable(name, definition)).collect::<Vec<_>>(),
        },
    })
}

fn layouts(dashboard: &Dashboard) -> Vec<Value> {
    let layout = |row: &super::model::Row| {
        let items: Vec<Value> = row
            .panels
            .iter()
            .map(|panel| {
                let place = panel.position;
                json!({
                    "content": {"$ref": format!("#/spec/panels/{}", panel.key)},
                    "height": place.height,
                    "width": place.width,
                    "x": place.x,
                    "y": place.y,
                })
            })
            .collect();
        json!({
            "kind": "Grid",
            "spec": {"display": {"title": row.title, "collapse": {"open": true}}, "items": items},
        })
    };
    dashboard.rows.iter().map(layout).collect()
}

fn variable(name: &str, variable: &Variable) -> Value {
    let display = json!({"name": variable.label, "description": variable.description, "hidden": false});
    if let Some(text) = &variable.text {
        return json!({
            "kind": "TextVariable",
            "spec": {"display": display, "name": name, "value": text, "constant": false},
        });
    }
    let mut list = json!({
        "kind": "ListVariable",
        "spec": {
            "allowAllValue": true,
            "allowMultiple": true,
            "defaultValue": ["$__all"],
            "display": display,
            "name": name,
            "plugin": {
                "kind": "PrometheusLabelValuesVariable",
                "spec": {"labelName": variable.values, "matchers": [variable.of]},
            },
            "sort": if variable.numeric { "numerical-asc" } else { "alphabetical-asc" },
        },
    });
    if let Some(value) = variable.all.value() {
        list["spec"]["customAllValue"] = json!(value);
    }
    list
}
